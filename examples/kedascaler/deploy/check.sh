#!/usr/bin/env bash
# Renders the manifests with the tools that people use: kubectl kustomize, and helm, which go install builds (a minute or
# more the first time), and checks that the chart's defaults make the same objects as the kustomization. It needs Go and its
# module proxy; without kubectl it builds kustomize too. OUT=DIR keeps what was rendered.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
template() { "$work/bin/helm" template kedascaler chart --kube-version 1.35.0 "$@"; }
# same FILE: as kustomize writes it: sorted, without comments.
same() {
	mkdir "$work/same-$1"
	cp "$out/$1.yaml" "$work/same-$1/all.yaml"
	printf 'resources: [all.yaml]\nsortOptions: {order: legacy}\n' > "$work/same-$1/kustomization.yaml"
	kustomize "$work/same-$1"
}
# has TEXT FILE, lacks TEXT FILE
has() { grep -qF -- "$1" "$out/$2.yaml" || { echo "$2: has no $1"; exit 1; }; }
lacks() { ! grep -qF -- "$1" "$out/$2.yaml" || { echo "$2: has $1"; exit 1; }; }

install() { GOBIN=$work/bin GOWORK=off GOFLAGS=-mod=mod go install "$1"; }
kustomize() { if command -v kubectl > /dev/null; then kubectl kustomize "$1"; else "$work/bin/kustomize" build "$1"; fi; }

install helm.sh/helm/v3/cmd/helm@v3.19.0
command -v kubectl > /dev/null || install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1

kustomize kustomize > "$out/kustomize.yaml"
kustomize cert-manager > "$out/cert-manager.yaml"
for text in -unmanaged-certs cert-manager.io/inject-ca-from 'kind: ClusterTriggerAuthentication'; do has "$text" cert-manager; done
for text in clustertriggerauthentications mutatingwebhookconfigurations keda-kaito-scaler-ca; do lacks "$text" cert-manager; done
"$work/bin/helm" lint chart
template --namespace keda > "$out/helm.yaml"
diff -u <(same kustomize) <(same helm) || { echo "the chart's defaults are not the kustomization"; exit 1; }

template --namespace scalers --set keda.namespace=keda --set scalerName=mine --set service=mine --set crossNamespace=true \
	--set certs.caOverlap=48h --set 'certs.serverNames={scaler.example}' --set 'extraArgs={-scrape-ca=/ca/ca.crt}' \
	--set 'networkPolicy.egress[0].ports[0].port=16443' \
	--set 'volumes[0].name=ca' --set 'volumes[0].configMap.name=pods-ca' --set 'volumeMounts[0].name=ca' --set 'volumeMounts[0].mountPath=/ca' > "$out/elsewhere.yaml"
for text in -certs-namespace=keda -scaler-name=mine -service=mine -cross-namespace -ca-overlap=48h -scrape-ca=/ca/ca.crt 'mountPath: /ca' 'port: 16443' \
	-server-names=mine-webhook.scalers.svc,scaler.example "== 'mine'" 'kubernetes.io/metadata.name: keda'; do has "$text" elsewhere; done

template --namespace keda --set certs.managed=false --set webhook.caBundle=Q0E= \
	--set 'webhook.annotations.cert-manager\.io/inject-ca-from=keda/x' > "$out/unmanaged.yaml"
for text in -unmanaged-certs 'caBundle: Q0E=' 'inject-ca-from: keda/x' 'verbs: [list, watch]'; do has "$text" unmanaged; done
for text in clustertriggerauthentications keda-kaito-scaler-ca; do lacks "$text" unmanaged; done

template --namespace keda --set webhook.enabled=false --set metrics.enabled=false --set networkPolicy.enabled=false \
	--set podDisruptionBudget.enabled=false > "$out/least.yaml"
for text in MutatingWebhookConfiguration mutatingwebhookconfigurations -webhook tokenreviews NetworkPolicy PodDisruptionBudget; do lacks "$text" least; done
has -metrics-address=0 least
echo "rendered: $(grep -c '^kind:' "$out/kustomize.yaml") objects by kustomize, the same by helm; $(grep -c '^kind:' "$out/least.yaml") at the least"

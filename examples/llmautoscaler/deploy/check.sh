#!/usr/bin/env bash
# Renders the manifests with the tools that people use: kubectl kustomize, and helm, which go run builds (a minute or more
# the first time), and checks that the chart's defaults make the same objects as the kustomization. It needs Go and its
# module proxy; without kubectl it builds kustomize too. OUT=DIR keeps what was rendered.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$work}
tool() { GOWORK=off GOFLAGS=-mod=mod go run "$@"; }
helm() { tool helm.sh/helm/v3/cmd/helm@v3.19.0 "$@"; }
template() { helm template llmautoscaler chart --kube-version 1.35.0 "$@"; }
kustomize() { if command -v kubectl > /dev/null; then kubectl kustomize "$1"; else tool sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build "$1"; fi; }
# same FILE: as kustomize writes it: sorted, without comments. Left out are the namespace, which helm makes by itself, and
# the definition, which helm installs as it is in crds.
same() {
	mkdir "$work/same-$1"
	cp "$out/$1.yaml" "$work/same-$1/all.yaml"
	cat > "$work/same-$1/kustomization.yaml" << 'END'
resources: [all.yaml]
sortOptions: {order: legacy}
patches:
  - {target: {kind: Namespace}, patch: '{"$patch": delete, apiVersion: v1, kind: Namespace, metadata: {name: any}}'}
  - {target: {kind: CustomResourceDefinition}, patch: '{"$patch": delete, apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: any}}'}
END
	kustomize "$work/same-$1"
}
# has TEXT FILE, lacks TEXT FILE
has() { grep -qF -- "$1" "$out/$2.yaml" || { echo "$2: has no $1"; exit 1; }; }
lacks() { ! grep -qF -- "$1" "$out/$2.yaml" || { echo "$2: has $1"; exit 1; }; }

kustomize kustomize > "$out/kustomize.yaml"
helm lint chart
template --namespace inferscale-system > "$out/helm.yaml"
diff -u <(same kustomize) <(same helm) || { echo "the chart's defaults are not the kustomization"; exit 1; }

template --namespace inferscale-system --set 'namespaces={default,models}' --set 'secretNamespaces={models}' \
	--set podSelector='app in (a\,b)' --set 'extraArgs={-kube-api-qps=500}' > "$out/namespaces.yaml"
for text in -namespaces=default,models '-pod-selector=app in (a,b)' -kube-api-qps=500 'key: kubernetes.io/metadata.name' 'name: llmautoscaler-work'; do has "$text" namespaces; done

template --namespace inferscale-system --set webhook.enabled=false --set networkPolicy.enabled=false \
	--set podDisruptionBudget.enabled=false --set 'targets[0].apiGroup=apps' --set 'targets[0].resources={deployments}' > "$out/least.yaml"
for text in ValidatingWebhookConfiguration scaledobjects validatingwebhookconfigurations -webhook NetworkPolicy PodDisruptionBudget statefulsets llmautoscaler-work; do lacks "$text" least; done
echo "rendered: $(grep -c '^kind:' "$out/kustomize.yaml") objects by kustomize, the same by helm; $(grep -c '^kind:' "$out/least.yaml") at the least"

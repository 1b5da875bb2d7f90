#!/usr/bin/env bash
# Renders the manifests with the tools that people use: kubectl kustomize, and helm, which go run builds (a minute or more
# the first time). It needs Go and its module proxy; without kubectl it builds kustomize too. OUT=DIR keeps what was
# rendered.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-$(mktemp -d)}
[ -n "${OUT:-}" ] || trap 'rm -rf "$out"' EXIT
tool() { GOWORK=off GOFLAGS=-mod=mod go run "$@"; }
helm() { tool helm.sh/helm/v3/cmd/helm@v3.19.0 "$@"; }
kustomize() { if command -v kubectl > /dev/null; then kubectl kustomize "$1"; else tool sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build "$1"; fi; }

kustomize kustomize > "$out/kustomize.yaml"
helm lint chart
helm template llmautoscaler chart --kube-version 1.35.0 --namespace inferscale-system > "$out/helm.yaml"
helm template llmautoscaler chart --kube-version 1.35.0 --namespace other --set webhook.enabled=false --set 'secretNamespaces={models}' \
	--set 'namespaces={a,b}' --set podSelector='app in (a\,b)' --set 'extraArgs={-kube-api-qps=500}' > "$out/helm-other.yaml"
grep -q 'kind: ValidatingWebhookConfiguration' "$out/helm.yaml"
! grep -q 'kind: ValidatingWebhookConfiguration' "$out/helm-other.yaml"
grep -q -- '-namespaces=a,b' "$out/helm-other.yaml"
echo "rendered: $(grep -c '^kind:' "$out/kustomize.yaml") objects by kustomize, $(grep -c '^kind:' "$out/helm.yaml") by helm"

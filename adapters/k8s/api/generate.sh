#!/usr/bin/env bash
# Writes what is made of the types: the copies in zz_generated.deepcopy.go, here and in package policy, and the definition
# in crd/.
# It needs Go and its module proxy. OUT=DIR writes below DIR instead, to compare.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-$PWD}
policy=${OUT:-$PWD/../../..}/policy
export GOWORK=off GOFLAGS=
mkdir -p "$out/v1alpha1" "$out/crd" "$policy"
go run -modfile=go.tools.mod sigs.k8s.io/controller-tools/cmd/controller-gen \
	object paths=github.com/inferscale/inferscale/policy output:object:dir="$policy"
go run -modfile=go.tools.mod sigs.k8s.io/controller-tools/cmd/controller-gen \
	object crd paths=./v1alpha1 output:object:dir="$out/v1alpha1" output:crd:dir="$out/crd"

#!/usr/bin/env bash
# Writes what is made of the types: api/v1alpha1/zz_generated.deepcopy.go and the definition in deploy/crd/.
# It needs Go and its module proxy. OUT=DIR writes below DIR instead, to compare.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-$PWD}
export GOWORK=off GOFLAGS=
mkdir -p "$out/api/v1alpha1" "$out/deploy/crd"
go tool -modfile=../go.tools.mod controller-gen \
	object paths=./api/v1alpha1 output:object:dir="$out/api/v1alpha1" \
	crd output:crd:dir="$out/deploy/crd"

#!/usr/bin/env bash
# Writes what is made of externalscaler.proto: externalscaler.pb.go and externalscaler_grpc.pb.go.
# It needs Go 1.25 or newer, which an older Go fetches, and its module proxy; no protoc. OUT=DIR writes to DIR instead, to compare.
set -euo pipefail
cd "$(dirname "$0")"
out=${OUT:-$PWD}
export GOWORK=off GOFLAGS=
mkdir -p "$out"
tools=$PWD/internal/generate
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
(cd "$tools" && go build -o "$bin/generate" .)
"$bin/generate" -out "$out" -tools "$tools" externalscaler.proto

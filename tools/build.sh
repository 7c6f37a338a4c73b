#!/bin/sh
# Builds a static Postroom: tools/build.sh OUTPUT VERSION. The queue dashboard (asynqmon) embeds source maps
# of its scripts, 5 MB that only its developers need. So it is built from a copy of that module without them.
set -eu

work=bin/build
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"
module=github.com/hibiken/asynqmon
go=${GO:-go}

$go mod download "$module"
cp -r "$($go list -m -f '{{.Dir}}' "$module")" "$work/asynqmon"
chmod -R u+w "$work"
find "$work/asynqmon" -name '*.map' -delete
cp go.mod go.sum "$work/"
$go mod edit -replace "$module=./$work/asynqmon" "$work/go.mod"
CGO_ENABLED=0 $go build -modfile="$work/go.mod" -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$2" -o "$1" ./cmd/postroom

#!/bin/sh
# Runs every native fuzz target of the Go packages for FUZZTIME (default 30s) each, then sends the port a million
# mutated frames.
set -eu
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test "$pkg" -list '^Fuzz' | grep '^Fuzz' || true); do
    echo "fuzz $pkg $target"
    go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}"
  done
done
echo "a million mutated frames to the port"
NXVK_FUZZ_FRAMES="${NXVK_FUZZ_FRAMES:-1000000}" go test ./dispatch -run '^TestMutatedFrames$' -timeout 60m

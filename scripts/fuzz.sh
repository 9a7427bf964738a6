#!/bin/sh
# Runs every native fuzz target of the Go packages for FUZZTIME (default 30s) each.
set -eu
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test "$pkg" -list '^Fuzz' | grep '^Fuzz' || true); do
    echo "fuzz $pkg $target"
    go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}"
  done
done

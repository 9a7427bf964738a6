#!/bin/sh
# The Elixir tests: always those that need no Nx, by elixirc and ExUnit alone, over the real port; the whole
# suite by Mix where Nx can be had (NX_PATH, or Hex and its archive).
set -eu
cd "$(dirname "$0")/.."
elixir elixir/test/core.exs
if scripts/nx-reachable.sh; then
  (cd elixir && mix format --check-formatted && mix test test/nx)
else
  echo "SKIPPED the Elixir tests that need Nx: set NX_PATH (and COMPLEX_PATH, TELEMETRY_PATH) or install Hex"
fi

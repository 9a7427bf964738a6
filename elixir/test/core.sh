#!/bin/sh
# The tests that need no Nx: see core.exs.
set -eu

if ! command -v elixir >/dev/null; then
  echo "SKIPPED the Elixir core: there is no elixir"
  exit 0
fi

exec elixir "$(dirname "$0")/core.exs" "$@"

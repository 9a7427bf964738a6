#!/bin/sh
# Succeeds where Mix can have Nx: from NX_PATH, or from Hex (the archive is installed and `mix deps.get` works).
# Mix asks for the Hex archive as soon as a project names a Hex package, even an overridden one.
set -u
cd "$(dirname "$0")/../elixir"
command -v mix >/dev/null 2>&1 || exit 1
mix hex.info >/dev/null 2>&1 </dev/null || exit 1
[ -n "${NX_PATH:-}" ] && exit 0
mix deps.get >/dev/null 2>&1 </dev/null

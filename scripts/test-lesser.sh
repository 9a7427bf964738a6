#!/bin/sh
# The tests as on lesser devices: each set of features in turn is taken away from the device (NXVK_DISABLE), and what
# kernels are made and run is tested, the validation layers on where they are installed. Arguments are sets to
# try instead of all; NX=1 runs the Elixir suite over the port as well.
set -u
cd "$(dirname "$0")/.."
mkdir -p .cache
[ $# -gt 0 ] || set -- f64 int64 int16 int8 f16 f64,int64,int16,int8,f16
failed=
for off in "$@"; do
  log=.cache/test-lesser-$off.log
  echo "without $off"
  NXVK_DISABLE=$off go test -v -count=1 -timeout 30m ./device ./dispatch ./lower ./shaders ./spirv ./test ./test/devtest >"$log" 2>&1 || failed="$failed $off"
  grep -E '^(SKIPPED|ok |FAIL|--- FAIL|panic:)' "$log"
  if [ -n "${NX:-}" ]; then
    (cd elixir && NXVK_DISABLE=$off mix test test/nx) || failed="$failed $off(elixir)"
  fi
done
[ -z "$failed" ] || { echo "failed without:$failed"; exit 1; }

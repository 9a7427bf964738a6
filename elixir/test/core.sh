#!/bin/sh
# Compiles the modules that do not need Nx, and runs their tests: with Elixir alone, without Mix, Hex or Nx.
#
#   test/core.sh              all of test/core
#   test/core.sh FILE...      some of it
#   NXVK_STRESS=1000000 test/core.sh test/core/reaper_test.exs     with that many handles
set -eu
cd "$(dirname "$0")/.."

if ! command -v elixir >/dev/null; then
  echo "SKIPPED the Elixir core: there is no elixir"
  exit 0
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

elixirc --warnings-as-errors -o "$out" \
  lib/mix/tasks/*.ex \
  lib/nx_vulkan/application.ex lib/nx_vulkan/error.ex lib/nx_vulkan/wire.ex \
  lib/nx_vulkan/plan.ex lib/nx_vulkan/port.ex lib/nx_vulkan/port/*.ex \
  lib/nx_vulkan/handle.ex lib/nx_vulkan/nursery.ex lib/nx_vulkan/reaper.ex lib/nx_vulkan/reaper/*.ex \
  test/support/fake_port.ex test/support/reaper_stress.ex

elixir -pa "$out" test/core.exs "$@"

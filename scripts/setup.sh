#!/bin/sh
# Installs what `make test` and `make demo` need and what is missing: a Vulkan driver (lavapipe, Mesa's
# CPU driver, where the machine has no other), the validation layers, spirv-val, Erlang and Elixir.
# As root with apt (Debian) or pkg (FreeBSD) it does so; elsewhere it prints what to install. Prints
# nothing when all is there. Go itself is asked for, never installed.
#
#   scripts/setup.sh [vulkan] [beam] …     (both by default)
#
# Elixir must be 1.17 or later. Debian 12 has 1.14, so there it is built from Debian 13's source into
# .cache/toolchain (75 s on two cores), which scripts/env.sh puts on PATH.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cache=$top/.cache/toolchain
. "$top/scripts/env.sh"
[ $# -gt 0 ] || set -- vulkan beam

say() { echo "setup: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
root() { [ "$(id -u)" = 0 ]; }

have go || { say "Go 1.25 or later is needed (FreeBSD: pkg install go; Debian: golang from backports; macOS: brew install go)"; exit 1; }

has_driver() {
  for d in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/share/vulkan/icd.d /usr/local/etc/vulkan/icd.d /opt/homebrew/share/vulkan/icd.d; do
    ls "$d"/*.json >/dev/null 2>&1 && return 0
  done
  [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]
}

elixir_ok() {
  have elixir && elixir -e 'System.halt(if Version.match?(System.version(), ">= 1.17.0"), do: 0, else: 1)' >/dev/null 2>&1
}

# The first http(s) or file mirror of Debian that this machine's own apt is set up with.
mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk '$1=="deb"{for(i=2;i<=NF;i++) if($i ~ /^(https?|file|mirror).*debian\/?$/){print $i; exit}}'
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1=="URIs:"{for(i=2;i<=NF;i++) if($i ~ /debian\/?$/){print $i; exit}}'
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0 "$@" >>"$cache/apt.log" 2>&1; }

updated=
update() { [ -n "$updated" ] || { apt_get update; updated=1; }; }

# apt with one more source, in a lists directory of its own: the machine's own set-up stays as it is.
extra() { # name, "deb …" line, apt-get arguments
  name=$1 line=$2; shift 2
  mkdir -p "$cache/$name/lists/partial"
  echo "$line" >"$cache/$name/extra.list"
  (cd "$cache/$name" && apt_get -o "Dir::Etc::SourceList=$cache/$name/extra.list" -o "Dir::State::Lists=$cache/$name/lists" "$@")
}

debian() {
  mkdir -p "$cache"
  codename=$(. /etc/os-release; echo "${VERSION_CODENAME:-}")
  m=$(mirror | head -n 1)
  key="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
  for part in "$@"; do
    case $part in
    vulkan)
      pkgs=
      ldconfig -p | grep -q libvulkan.so.1 || pkgs="$pkgs libvulkan1"
      ls /usr/share/vulkan/explicit_layer.d/*validation*.json >/dev/null 2>&1 || pkgs="$pkgs vulkan-validationlayers"
      have spirv-val || pkgs="$pkgs spirv-tools"
      [ -z "$pkgs" ] || { say "installing$pkgs"; update; apt_get install -y --no-install-recommends $pkgs; }
      if ! has_driver; then
        say "installing lavapipe (mesa-vulkan-drivers), a CPU driver"
        update
        # Debian 12's own lavapipe is 22.3; its backports have 25.0, which is several times as fast.
        if [ "$codename" = bookworm ] && [ -n "$m" ] &&
          extra backports "deb $key $m bookworm-backports main" update &&
          extra backports "deb $key $m bookworm-backports main" install -y --no-install-recommends -t bookworm-backports mesa-vulkan-drivers; then :; else
          apt_get install -y --no-install-recommends mesa-vulkan-drivers
        fi
      fi
      has_driver || { say "no Vulkan driver could be installed, see $cache/apt.log"; exit 1; }
      ;;
    beam)
      elixir_ok && have erl && continue
      if ! have erl; then
        say "installing Erlang"
        update
        apt_get install -y --no-install-recommends erlang-base erlang-dev erlang-crypto erlang-ssl erlang-inets erlang-parsetools erlang-public-key erlang-syntax-tools erlang-tools erlang-runtime-tools erlang-eunit erlang-asn1 erlang-xmerl ||
          { say "Erlang could not be installed, see $cache/apt.log"; exit 1; }
      fi
      if ! have elixir && apt-cache policy elixir 2>/dev/null | grep -qE 'Candidate: 1\.(1[7-9]|[2-9][0-9])'; then
        say "installing Elixir"
        apt_get install -y --no-install-recommends elixir
      fi
      elixir_ok && continue
      [ -n "$m" ] || { say "no Debian mirror in apt's sources: install Elixir 1.17 or later"; exit 1; }
      have make || apt_get install -y --no-install-recommends make
      have xz || apt_get install -y --no-install-recommends xz-utils
      say "building Elixir from Debian 13's source (about a minute)"
      # The .dsc of a rebuilt package can be missing; the source itself comes all the same.
      extra elixir-src "deb-src $key $m trixie main" -o Dir::Etc::SourceParts=/dev/null update
      rm -f "$cache"/elixir-src/elixir-lang_*.orig.tar.*
      extra elixir-src "deb-src $key $m trixie main" -o Dir::Etc::SourceParts=/dev/null source --download-only elixir-lang || true
      tarball=$(ls "$cache"/elixir-src/elixir-lang_*.orig.tar.* 2>/dev/null | head -n 1)
      [ -n "$tarball" ] || { say "Elixir's source did not come, see $cache/apt.log"; exit 1; }
      rm -rf "$cache/elixir-build" && mkdir -p "$cache/elixir-build"
      tar xf "$tarball" -C "$cache/elixir-build" --strip-components=1 &&
        make -C "$cache/elixir-build" PREFIX="$cache/elixir" install >"$cache/elixir.log" 2>&1 || { say "Elixir did not build, see $cache/elixir.log"; exit 1; }
      rm -rf "$cache/elixir-build"
      PATH=$cache/elixir/bin:$PATH
      elixir_ok || { say "the Elixir that was built does not run, see $cache/elixir.log"; exit 1; }
      ;;
    esac
  done
}

freebsd() {
  pkgs=
  for part in "$@"; do
    case $part in
    vulkan) has_driver || pkgs="$pkgs vulkan-loader mesa-dri"; have spirv-val || pkgs="$pkgs spirv-tools" ;;
    beam) elixir_ok || pkgs="$pkgs elixir" ;;
    esac
  done
  [ -z "$pkgs" ] || { say "installing$pkgs"; pkg install -y $pkgs; }
}

if root && have apt-get; then debian "$@"
elif root && have pkg && [ "$(uname -s)" = FreeBSD ]; then freebsd "$@"
else
  ok=1
  for part in "$@"; do
    case $part in
    vulkan) has_driver || { ok=; say "no Vulkan driver found. Debian: apt-get install libvulkan1 mesa-vulkan-drivers vulkan-validationlayers spirv-tools; FreeBSD: pkg install vulkan-loader mesa-dri (and nvidia-driver or drm-kmod for a GPU); macOS: brew install molten-vk vulkan-loader"; } ;;
    beam) elixir_ok || { ok=; say "Elixir 1.17 or later on OTP 25 or later is needed. FreeBSD: pkg install elixir; macOS: brew install elixir; Debian 13: apt-get install elixir erlang-dev; Debian 12: run this as root"; } ;;
    esac
  done
  [ -n "$ok" ] || exit 1
fi

# Sourced, with $top set: what the project built for itself goes on PATH first.
[ -d "$top/.cache/toolchain/elixir/bin" ] && PATH=$top/.cache/toolchain/elixir/bin:$PATH
# Mix and Erlang want UTF-8.
export PATH LANG="${LANG:-C.UTF-8}" ELIXIR_ERL_OPTIONS="${ELIXIR_ERL_OPTIONS:-+fnu}"

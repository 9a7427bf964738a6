defmodule Nx.Vulkan.NxDoctest do
  # Nx's own documentation with the device as default backend and fallbacks refused. The printed strings must match:
  # there is no tolerance. What the port's CPU does is no fallback.
  use ExUnit.Case, async: false

  setup do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})

    Application.put_env(:nx_vulkan, :host_fallback, :raise)
    on_exit(fn -> Application.delete_env(:nx_vulkan, :host_fallback) end)
    :ok
  end

  doctest Nx
  doctest Nx.LinAlg
  doctest Nx.Random
  doctest Nx.Constants
end

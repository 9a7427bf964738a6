defmodule Nx.Vulkan.NxDoctest do
  # Nx's own doctests with the device as default backend. The strings must match: no tolerance.
  use ExUnit.Case, async: false

  setup do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})
    :ok
  end

  doctest Nx, except: [:moduledoc]
  doctest Nx.LinAlg
  doctest Nx.Random
  doctest Nx.Constants
end

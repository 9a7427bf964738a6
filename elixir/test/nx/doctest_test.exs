defmodule Nx.Vulkan.NxDoctest do
  # Nx's own documentation with the device as default backend. The printed strings must match: there is no
  # tolerance. Operations that the device has are never excluded.
  use ExUnit.Case, async: false

  setup do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})
    :ok
  end

  # Its SVD, which runs on the host as a whole, divides zero by zero on Nx.BinaryBackend itself with some
  # versions of Complex: then there is nothing to compare with.
  @linalg (try do
             deficient = [[1, 1, 1, 1], [1, 1, 1, 1], [1, 2, 3, 4]]
             Nx.with_default_backend(Nx.BinaryBackend, fn -> Nx.LinAlg.matrix_rank(Nx.tensor(deficient)) end)
             []
           rescue
             ArithmeticError -> [matrix_rank: 2]
           end)

  doctest Nx, except: [:moduledoc]
  doctest Nx.LinAlg, except: @linalg
  doctest Nx.Random
  doctest Nx.Constants
end

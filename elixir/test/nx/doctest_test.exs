defmodule Nx.Vulkan.NxDoctest do
  # Nx's own documentation with the device as default backend. The printed strings must match: there is no
  # tolerance. Operations that the device has are never excluded.
  use ExUnit.Case, async: false

  setup do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})
    :ok
  end

  # Its SVD, which runs on the host as a whole, divides by zero on Nx.BinaryBackend itself before OTP 27, where
  # -0.0 matches 0.0.
  @linalg if System.otp_release() >= "27", do: [], else: [matrix_rank: 2]

  doctest Nx, except: [:moduledoc]
  doctest Nx.LinAlg, except: @linalg
  doctest Nx.Random
  doctest Nx.Constants
end

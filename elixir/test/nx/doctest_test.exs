defmodule Nx.Vulkan.NxDoctest do
  # Nx's own documentation with the device as default backend and fallbacks refused. The printed strings must match:
  # there is no tolerance. What the port's CPU does is no fallback.
  use ExUnit.Case, async: false

  # With an example of complex numbers, which the BEAM computes still.
  @complex [
    nx:
      [as_type: 2, complex: 2, conjugate: 1, conv: 3, fft: 2, fft2: 2, ifft: 2, ifft2: 2, imag: 1] ++
        [irfft: 2, is_infinity: 1, is_nan: 1, phase: 1, real: 1, rfft: 2, sigil_MAT: 2],
    lin_alg: [adjoint: 1, cholesky: 1, determinant: 1, norm: 2, triangular_solve: 3],
    random: [normal: 4, uniform: 4]
  ]

  setup context do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})

    unless context[:complex] do
      Application.put_env(:nx_vulkan, :host_fallback, :raise)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :host_fallback) end)
    end

    :ok
  end

  doctest Nx, except: @complex[:nx]
  doctest Nx.LinAlg, except: @complex[:lin_alg]
  doctest Nx.Random, except: @complex[:random]
  doctest Nx.Constants

  doctest Nx, only: @complex[:nx], tags: [:complex]
  doctest Nx.LinAlg, only: @complex[:lin_alg], tags: [:complex]
  doctest Nx.Random, only: @complex[:random], tags: [:complex]
end

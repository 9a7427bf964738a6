defmodule Nx.Vulkan.VulkanoBackend do
  @moduledoc """
  The name under which an earlier package offered its backend; `Nx.Vulkan.Backend` under another name.

  Code written for it runs unchanged. Tensors made through this module hold `%Nx.Vulkan.Backend{}`, since Nx
  refuses to mix two backends in one operation.

      Nx.backend_transfer(t, Nx.Vulkan.VulkanoBackend)
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)

  New code names `Nx.Vulkan.Backend`.
  """

  @behaviour Nx.Backend

  for {name, arity} <- Nx.Backend.behaviour_info(:callbacks) do
    args = Macro.generate_arguments(arity, __MODULE__)
    @impl true
    defdelegate unquote(name)(unquote_splicing(args)), to: Nx.Vulkan.Backend
  end

  @doc """
  How sums and dots of f32 accumulate from now on, on every device and in every process.

    * `:compensated` (the default): at least as exact as |error| ≤ 2⁻²⁴ Σ|aᵢbᵢ|;
    * `:f32`: plain, the fastest;
    * `:f64`: in double precision.
  """
  @spec put_f32_matmul_accumulator(:compensated | :f32 | :f64) :: :ok
  def put_f32_matmul_accumulator(kind) when kind in [:compensated, :f32, :f64],
    do: Nx.Vulkan.Backend.Eager.put_accumulator(kind)

  def put_f32_matmul_accumulator(other) do
    raise ArgumentError, "the accumulator is :compensated, :f32 or :f64, got: #{inspect(other)}"
  end
end

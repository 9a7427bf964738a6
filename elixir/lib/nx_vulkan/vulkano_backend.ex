defmodule Nx.Vulkan.VulkanoBackend do
  @moduledoc """
  The name under which an earlier package offered its backend; `Nx.Vulkan.Backend` under another name.

  Code written for it runs unchanged. Tensors made through this module hold `%Nx.Vulkan.Backend{}`, since Nx
  refuses to mix two backends in one operation.

      Nx.backend_transfer(t, Nx.Vulkan.VulkanoBackend)
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)

  One thing differs: `Nx.backend_transfer/2` of a tensor that was made through this module leaves that tensor usable,
  as it was with that package (the option `transfer: :copy` of `Nx.Vulkan.Backend`).

  New code names `Nx.Vulkan.Backend`.
  """

  @behaviour Nx.Backend

  @impl true
  def init(opts), do: Nx.Vulkan.Backend.init(opts) |> Keyword.put_new(:transfer, :copy)

  # Tensors made without options, by Nx itself too, are this module's.
  for {name, args} <- [
        constant: [:out, :number],
        from_binary: [:out, :binary],
        iota: [:out, :axis],
        eye: [:out]
      ] do
    args = Enum.map(args, &Macro.var(&1, __MODULE__))
    @impl true
    def unquote(name)(unquote_splicing(args), opts),
      do: Nx.Vulkan.Backend.unquote(name)(unquote_splicing(args), init(opts))
  end

  @own [init: 1, constant: 3, from_binary: 3, iota: 3, eye: 2]

  for {name, arity} <- Nx.Backend.behaviour_info(:callbacks) -- @own do
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

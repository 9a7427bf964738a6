defmodule Nx.Vulkan.Plan do
  @moduledoc """
  Where an operation will run, known before it is sent.

  The port decides by operation, types and device whether an operation runs on the device (`:device`), on the CPU
  inside the port (`:host`), or not at all (`:none`: the caller must). For some operations shapes and attributes
  decide too (`detailed?/1`): large matrices may be the CPU's, and a reduction's function may be anything. The first
  use of a signature asks it; the answer is kept in ETS for as long as the port lives (its epoch), so that the hot
  path is one lookup. The caller can then count a fallback, or refuse it, before any data moves.
  """

  use GenServer

  alias Nx.Vulkan.Port

  @type tier :: :device | :host | :none

  @doc false
  def start_link(_), do: GenServer.start_link(__MODULE__, [], name: __MODULE__)

  @impl true
  def init(_) do
    # It owns the table, which outlives ports, and does nothing else.
    :ets.new(__MODULE__, [:named_table, :public, :set, read_concurrency: true])
    {:ok, nil}
  end

  # Chosen by size, or made of more than a name.
  @detailed [:conv, :fft, :ifft, :fft2, :ifft2, :rfft, :irfft, :reduce, :window_reduce] ++
              [:sort, :argsort, :top_k, :all_close, :cumulative_sum, :cumulative_product] ++
              [:cumulative_max, :cumulative_min, :window_scatter_max, :window_scatter_min] ++
              [:triangular_solve, :cholesky, :solve, :lu, :qr, :svd, :eigh, :determinant]

  # More signatures with details than this are forgotten together.
  @most 50_000

  @doc """
  Whether the tier of `op` hangs on shapes and attributes, besides types.
  """
  @spec detailed?(atom) :: boolean
  for op <- @detailed, do: def(detailed?(unquote(op)), do: true)
  def detailed?(_op), do: false

  @doc """
  The tier of `op` with a result of `type` and operands of `types`. `detail` is any term that tells signatures of
  operations apart where more decides (see `detailed?/1`), else `nil`. `request` makes the question's node and operand
  specs where the answer is not known yet.
  """
  @spec tier(Port.t(), atom, atom, [atom], term, (-> {tuple, [tuple]})) :: tier
  def tier(%Port{device: device, epoch: epoch} = port, op, type, types, detail, request) do
    key = {device, epoch, op, type, types, detail}

    case :ets.lookup(__MODULE__, key) do
      [{_, tier}] -> tier
      [] -> ask(port, key, request)
    end
  end

  defp ask(port, {device, epoch, _, _, _, _} = key, request) do
    {node, specs} = request.()

    case Port.call!(port, {:plan, node, specs}) do
      tier when tier in [:device, :host, :none] ->
        # Answers of this device's earlier ports.
        older = {{device, :"$1", :_, :_, :_, :_}, :_}
        :ets.select_delete(__MODULE__, [{older, [{:<, :"$1", epoch}], [true]}])
        if :ets.info(__MODULE__, :size) >= @most, do: forget_details()
        :ets.insert(__MODULE__, {key, tier})
        tier

      other ->
        raise Nx.Vulkan.Error,
          op: elem(node, 0),
          reason: :protocol,
          message: "plan of #{elem(node, 0)}: the port answered #{inspect(other)}"
    end
  end

  defp forget_details do
    :ets.select_delete(__MODULE__, [{{{:_, :_, :_, :_, :_, :"$1"}, :_}, [{:"/=", :"$1", nil}], [true]}])
  end
end

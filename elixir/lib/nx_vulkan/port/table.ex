defmodule Nx.Vulkan.Port.Table do
  @moduledoc """
  What outlives a port: who waits for which reply, epochs, and why each port ended.

  The tables are public and belong to this process, which does nothing else, so that a dying port takes none
  of them along.
  """

  use GenServer

  alias Nx.Vulkan.DeviceError

  @calls __MODULE__.Calls
  @facts __MODULE__

  @doc false
  def start_link(_), do: GenServer.start_link(__MODULE__, [], name: __MODULE__)

  @impl true
  def init(_) do
    :ets.new(@calls, [:named_table, :public, :set, write_concurrency: true])
    :ets.new(@facts, [:named_table, :public, :set, read_concurrency: true])
    Nx.Vulkan.Nursery.create()
    Nx.Vulkan.Handle.draw()
    once({Nx.Vulkan.Port, :ids}, fn -> :atomics.new(2, signed: true) end)
    {:ok, nil}
  end

  @doc """
  The counters that ids of tensors (1) and requests (2) come from: one pair for all devices and epochs, so that no id
  is used twice in the life of a node.
  """
  @spec ids() :: :atomics.atomics_ref()
  def ids, do: :persistent_term.get({Nx.Vulkan.Port, :ids})

  @doc false
  # Makes a persistent term that stays for the life of the node.
  @spec once(term(), (-> term())) :: :ok
  def once(key, make) do
    if :persistent_term.get(key, nil) == nil, do: :persistent_term.put(key, make.())
    :ok
  end

  @doc """
  Notes who waits for the reply to `req`.
  """
  @spec put_call(Nx.Vulkan.Wire.req(), reference(), Nx.Vulkan.Port.t()) :: true
  def put_call(req, ref, %{device: device, epoch: epoch}),
    do: :ets.insert(@calls, {req, ref, device, epoch})

  @doc """
  Takes who waits for the reply to `req`.
  """
  @spec take_call(Nx.Vulkan.Wire.req()) :: reference() | nil
  def take_call(req) do
    case :ets.take(@calls, req) do
      [{_, ref, _, _}] -> ref
      [] -> nil
    end
  end

  @doc """
  Forgets a call.
  """
  @spec delete_call(Nx.Vulkan.Wire.req()) :: true
  def delete_call(req), do: :ets.delete(@calls, req)

  @doc """
  Forgets the calls of earlier epochs: those whose callers died while they waited.
  """
  @spec forget_calls(non_neg_integer(), pos_integer()) :: true
  def forget_calls(device, epoch) do
    :ets.select_delete(@calls, [{{:_, :_, device, :"$1"}, [{:<, :"$1", epoch}], [true]}])
    true
  end

  @doc """
  How many calls wait.
  """
  @spec waiting() :: non_neg_integer()
  def waiting, do: :ets.info(@calls, :size)

  @doc """
  The next epoch of a device.
  """
  @spec next_epoch(non_neg_integer()) :: pos_integer()
  def next_epoch(device), do: :ets.update_counter(@facts, {:epoch, device}, 1, {{:epoch, device}, 0})

  @doc """
  Notes why a port ended.
  """
  @spec put_fault(DeviceError.t()) :: true
  def put_fault(%DeviceError{device: device, epoch: epoch} = error),
    do: :ets.insert(@facts, {{:fault, device, epoch}, error})

  @doc """
  Why the port of that epoch ended.
  """
  @spec fault(non_neg_integer(), pos_integer()) :: DeviceError.t()
  def fault(device, epoch) do
    case :ets.lookup(@facts, {:fault, device, epoch}) do
      [{_, error}] ->
        error

      [] ->
        %DeviceError{
          device: device,
          epoch: epoch,
          reason: :port_died,
          message: "the port of device #{device} (epoch #{epoch}) is gone"
        }
    end
  end
end

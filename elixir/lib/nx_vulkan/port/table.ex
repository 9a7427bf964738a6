defmodule Nx.Vulkan.Port.Table do
  @moduledoc """
  What outlives a port: who waits for which reply, epochs, and why each port ended.

  The tables are public and belong to this process, which does little else, so that a dying port takes none
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
    {:ok, %{}}
  end

  @doc """
  Watches the owner of a port: one that is killed cannot say that it is gone.
  """
  @spec watch(non_neg_integer(), pos_integer(), pid()) :: :ok
  def watch(device, epoch, owner), do: GenServer.cast(__MODULE__, {:watch, device, epoch, owner})

  @impl true
  def handle_cast({:watch, device, epoch, owner}, owners) do
    {:noreply, Map.put(owners, Process.monitor(owner), {device, epoch})}
  end

  @impl true
  def handle_info({:DOWN, ref, :process, _, _}, owners) do
    {{device, epoch}, owners} = Map.pop!(owners, ref)

    case :persistent_term.get({Nx.Vulkan.Port, device}, nil) do
      %Nx.Vulkan.Port{epoch: ^epoch} ->
        :persistent_term.put({Nx.Vulkan.Port, device}, {:restarting, fault(device, epoch)})

      _ ->
        :ok
    end

    {:noreply, owners}
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
  Notes that the calling process waits for the reply to `req`.
  """
  @spec put_call(Nx.Vulkan.Wire.req(), reference(), Nx.Vulkan.Port.t()) :: true
  def put_call(req, ref, %{device: device, epoch: epoch}),
    do: :ets.insert(@calls, {req, ref, device, epoch, self()})

  @doc """
  Takes who waits for the reply to `req`: nobody any more, if it has given up or died.
  """
  @spec take_call(Nx.Vulkan.Wire.req()) :: reference() | nil
  def take_call(req) do
    case :ets.take(@calls, req) do
      [{_, ref, _, _, pid}] -> if Process.alive?(pid), do: ref
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
    :ets.select_delete(@calls, [{{:_, :_, device, :"$1", :_}, [{:<, :"$1", epoch}], [true]}])
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

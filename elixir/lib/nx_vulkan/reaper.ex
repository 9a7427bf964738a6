defmodule Nx.Vulkan.Reaper do
  @moduledoc """
  Frees the tensors that nobody holds any more.

  It holds a reference to every handle (see `Nx.Vulkan.Handle`); a handle that only the reaper refers to belongs to no
  tensor. `Process.info(pid, :binary)` lists the binaries of a process as `{address, size, count of references}`, so:

    1. New handles wait in `Nx.Vulkan.Nursery`. They are drained, 256 at most, into a process of their own
       (`Nx.Vulkan.Reaper.Ward`), where their sizes, which differ, tell which address is which handle. From then on
       the address is the key.
    2. A ward looks again after 1, 2, 4, 8, 16 and 32 passes: most tensors die young. Then it gives what is left to
       `Nx.Vulkan.Reaper.Elder` and ends.
    3. The elder looks when what it holds has doubled, and at growing intervals while nothing happens.
    4. Ids of dead handles go to the device through `Nx.Vulkan.Reaper.Sender`, since writing to a busy port waits, and
       what frees memory must not.

  A handle whose count is above one for any reason is left alone, so that nothing is freed early. This process holds ids
  only, never handles: its own garbage keeps nothing alive.

  A pass takes place when 64 tensors or a big one were made, at least two milliseconds after the one before, and on a
  timer that slows down from 20 ms to one second. While there is nothing young, no timer runs.
  """

  use GenServer
  require Logger

  alias Nx.Vulkan.Nursery
  alias Nx.Vulkan.Reaper.{Elder, Sender, Ward}

  @batch 256
  @ages [1, 2, 4, 8, 16, 32]
  @last_age 32

  # Milliseconds.
  @gap 2
  @first_interval 20
  @last_interval 1_000

  @flags {__MODULE__, :flags}
  @awake 1
  @woken 2

  @stats [:drained, :freed, :old, :old_bytes, :passes, :elder_sweeps, :elder_us]

  @doc false
  def start_link(_), do: GenServer.start_link(__MODULE__, [], name: __MODULE__)

  @doc """
  Whether a new handle has to wake the reaper.
  """
  @spec asleep?() :: boolean()
  def asleep? do
    case :persistent_term.get(@flags, nil) do
      nil -> false
      flags -> :atomics.get(flags, @awake) == 0
    end
  end

  @doc """
  Wakes the reaper, once for many.
  """
  @spec wake() :: :ok
  def wake do
    with flags when flags != nil <- :persistent_term.get(@flags, nil),
         0 <- :atomics.exchange(flags, @woken, 1),
         pid when pid != nil <- Process.whereis(__MODULE__) do
      send(pid, :wake)
    end

    :ok
  end

  @doc """
  Looks at every handle now, and returns how many tensors were freed.

  Handles that are garbage in the heap of a process count as held until that process is collected.
  """
  @spec sweep(timeout()) :: non_neg_integer()
  def sweep(timeout \\ 60_000) do
    before = stats().freed
    :ok = GenServer.call(__MODULE__, :sweep, timeout)
    stats().freed - before
  end

  @doc """
  Counters since the start of the node.

    * `:drained`, `:freed` - handles seen, and of those dead;
    * `:old`, `:old_bytes` - tensors that the elder holds, and their bytes on the devices;
    * `:nursery` - handles that wait;
    * `:passes`, `:elder_sweeps`, `:elder_us` - how often it looked, and how long the elder took in all.
  """
  @spec stats() :: %{atom() => non_neg_integer()}
  def stats do
    counters = counters()

    @stats
    |> Enum.with_index(1)
    |> Map.new(fn {name, index} -> {name, :counters.get(counters, index)} end)
    |> Map.put(:nursery, Nursery.size())
  end

  @doc false
  @spec count(atom(), integer()) :: :ok
  for {name, index} <- Enum.with_index(@stats, 1) do
    def count(unquote(name), n), do: :counters.add(counters(), unquote(index), n)
  end

  @doc false
  @spec set(atom(), integer()) :: :ok
  for {name, index} <- Enum.with_index(@stats, 1), name in [:old, :old_bytes] do
    def set(unquote(name), n), do: :counters.put(counters(), unquote(index), n)
  end

  defp counters, do: :persistent_term.get({__MODULE__, :counters})

  @doc false
  # Takes the dead of one sweep, ids with their devices, to the senders.
  @spec bury([{pos_integer(), non_neg_integer()}]) :: :ok
  def bury([]), do: :ok

  def bury(dead) do
    count(:freed, length(dead))

    dead
    |> Enum.group_by(&elem(&1, 1), &elem(&1, 0))
    |> Enum.each(fn {device, ids} ->
      case Nursery.unmark(ids) do
        [] -> :ok
        ids -> Sender.free(device, ids)
      end
    end)
  end

  @impl true
  def init(_) do
    flags = :atomics.new(2, [])
    :persistent_term.put(@flags, flags)

    if :persistent_term.get({__MODULE__, :counters}, nil) == nil do
      counters = :counters.new(length(@stats), [:write_concurrency])
      :persistent_term.put({__MODULE__, :counters}, counters)
    end

    state = %{
      flags: flags,
      elder: Elder.start(self()),
      # pid of a ward => the pass it was born in
      wards: %{},
      pass: 0,
      next: now(),
      interval: @first_interval,
      timer: nil
    }

    {:ok, rest(pass(state))}
  end

  @impl true
  def handle_info(:wake, state) do
    if now() >= state.next,
      do: {:noreply, rest(pass(state))},
      else: {:noreply, schedule(state, state.next)}
  end

  def handle_info({:timeout, timer, :pass}, %{timer: {timer, _}} = state) do
    {:noreply, rest(pass(%{state | timer: nil}))}
  end

  def handle_info({:timeout, _, :pass}, state), do: {:noreply, state}

  def handle_info({:DOWN, _, :process, pid, reason}, %{elder: pid} = state) do
    Logger.error("nx_vulkan: the elder of the reaper ended: #{inspect(reason)}")
    {:noreply, %{state | elder: Elder.start(self())}}
  end

  def handle_info({:DOWN, _, :process, pid, reason}, state) do
    if reason not in [:normal, :noproc] do
      Logger.error("nx_vulkan: a ward of the reaper ended: #{inspect(reason)}")
    end

    {:noreply, %{state | wards: Map.delete(state.wards, pid)}}
  end

  def handle_info(_other, state), do: {:noreply, state}

  @impl true
  def handle_call(:sweep, _from, state) do
    state = drain(state)
    Enum.each([state.elder | Map.keys(state.wards)], &sweep_and_wait/1)
    # What the wards handed over meanwhile.
    sweep_and_wait(state.elder)
    {:reply, :ok, rest(state)}
  end

  defp sweep_and_wait(pid) do
    ref = Process.monitor(pid)
    send(pid, {:sweep, self(), ref})

    receive do
      {^ref, :swept} -> Process.demonitor(ref, [:flush])
      {:DOWN, ^ref, _, _, _} -> :ok
    end
  end

  defp pass(state) do
    :atomics.put(state.flags, @woken, 0)
    count(:passes, 1)
    before = map_size(state.wards)
    state = drain(%{state | pass: state.pass + 1})
    new? = map_size(state.wards) > before

    wards =
      Map.filter(state.wards, fn {pid, born} ->
        age = state.pass - born
        if age in @ages, do: send(pid, :sweep)
        age < @last_age
      end)

    interval = if new?, do: @first_interval, else: min(state.interval * 2, @last_interval)
    %{state | wards: wards, interval: interval, next: now() + @gap}
  end

  # Sets the timer while there is something young, else sleeps until somebody puts a handle.
  defp rest(state) do
    if map_size(state.wards) > 0 do
      :atomics.put(state.flags, @awake, 1)
      schedule(state, now() + state.interval)
    else
      :atomics.put(state.flags, @awake, 0)
      # A handle put before the flag fell has woken nobody.
      if Nursery.size() > 0, do: wake()
      state
    end
  end

  defp schedule(%{timer: {_, at}} = state, due) when at <= due, do: state

  defp schedule(state, due) do
    with {timer, _} <- state.timer, do: :erlang.cancel_timer(timer)
    %{state | timer: {:erlang.start_timer(due, self(), :pass, abs: true), due}}
  end

  defp drain(state), do: drain(state, Nursery.ids(@batch))

  defp drain(state, :"$end_of_table"), do: state

  defp drain(state, {ids, continuation}) do
    {pid, _} = Ward.start(ids, self(), state.elder)
    drain(%{state | wards: Map.put(state.wards, pid, state.pass)}, Nursery.more(continuation))
  end

  defp now, do: :erlang.monotonic_time(:millisecond)
end

defmodule Nx.Vulkan.Test.ReaperStress do
  @moduledoc """
  Makes, passes around and drops handles in many processes, and watches that none is freed early and none stays.

  It takes the place of the process that takes frees to a device, so it sees every free. Holders check that what they
  hold has not been freed.
  """

  use GenServer

  alias Nx.Vulkan.{Handle, Reaper}

  @device 930

  @doc """
  A port of a device that does not exist: enough to make handles.
  """
  @spec port() :: Nx.Vulkan.Port.t()
  def port do
    %Nx.Vulkan.Port{
      device: @device,
      epoch: 1,
      port: nil,
      owner: self(),
      ids: Nx.Vulkan.Port.Table.ids(),
      stamp: Handle.stamp(@device, 1)
    }
  end

  @doc """
  Starts to take the frees of `port/0`.
  """
  def start_link(_ \\ []),
    do: GenServer.start_link(__MODULE__, [], name: :"#{Nx.Vulkan.Reaper.Sender}.#{@device}")

  @doc """
  Whether a tensor has been freed.
  """
  @spec freed?(pos_integer()) :: boolean()
  def freed?(id), do: :ets.member(__MODULE__, id)

  @doc """
  How many tensors have been freed.
  """
  @spec freed() :: non_neg_integer()
  def freed, do: :ets.info(__MODULE__, :size)

  @doc """
  Makes `total` handles in `workers` processes; returns figures.

  Each worker keeps some of its handles in its heap, in closures, in an ETS table, in sub-binaries and in the mailboxes of
  others, drops them at random, and checks those it holds.
  """
  @spec run(pos_integer(), pos_integer()) :: map()
  def run(total, workers) do
    start = System.monotonic_time(:millisecond)
    before = Reaper.stats()
    freed_before = freed()
    table = :ets.new(:held, [:public, write_concurrency: true])
    checks = :counters.new(2, [:write_concurrency])
    each = div(total, workers)

    pids =
      for n <- 1..workers do
        spawn_monitor(fn ->
          :rand.seed(:exsss, {n, 2, 3})
          worker(each, %{port: port(), table: table, checks: checks, peers: [], held: %{}})
        end)
      end

    for {pid, _} <- pids, do: send(pid, {:peers, for({peer, _} <- pids, do: peer)})
    for {_, ref} <- pids, do: receive(do: ({:DOWN, ^ref, _, _, reason} -> :normal = reason))
    :ets.delete(table)
    made = each * workers
    freed_running = freed() - freed_before
    settle(made + freed_before, 100)
    stats = Reaper.stats()

    %{
      made: made,
      freed: freed() - freed_before,
      freed_while_running: freed_running,
      checks: :counters.get(checks, 1),
      early: :counters.get(checks, 2),
      ms: System.monotonic_time(:millisecond) - start,
      passes: stats.passes - before.passes,
      elder_sweeps: stats.elder_sweeps - before.elder_sweeps,
      elder_ms: div(stats.elder_us - before.elder_us, 1000)
    }
  end

  defp settle(_, 0), do: :ok

  defp settle(made, tries) do
    Reaper.sweep()
    # Frees are messages to this module's process.
    :sys.get_state(:"#{Nx.Vulkan.Reaper.Sender}.#{@device}", :infinity)
    if freed() < made, do: Process.sleep(20) && settle(made, tries - 1)
  end

  defp worker(count, state) do
    receive do
      {:peers, peers} -> make(count, %{state | peers: peers})
    end
  end

  defp make(0, state) do
    check(state)
    flush()
  end

  defp make(count, state) do
    bytes = Enum.random([4, 4, 4, 4, 64, 1_024, 8_192, 200_000])
    {id, handle} = Handle.new(state.port, bytes)

    state =
      case :rand.uniform(16) do
        n when n <= 8 ->
          state

        n when n <= 11 ->
          %{state | held: Map.put(state.held, id, handle)}

        12 ->
          %{state | held: Map.put(state.held, id, fn -> handle end)}

        13 ->
          %{state | held: Map.put(state.held, id, binary_part(handle, 0, 65))}

        14 ->
          :ets.insert(state.table, {{self(), id}, handle})
          %{state | held: Map.put(state.held, id, :table)}

        15 ->
          send(Enum.random(state.peers), {:take, id, handle})
          state

        16 ->
          %{state | held: Map.put(state.held, id, {:nested, [handle]})}
      end

    state = if rem(count, 64) == 0, do: state |> take() |> check() |> drop(), else: state
    Handle.keep(handle)
    make(count - 1, state)
  end

  defp take(state) do
    receive do
      {:take, id, handle} -> take(%{state | held: Map.put(state.held, id, handle)})
    after
      0 -> state
    end
  end

  defp flush do
    receive do
      _ -> flush()
    after
      0 -> :ok
    end
  end

  defp check(state) do
    early = Enum.count(state.held, fn {id, _} -> freed?(id) end)
    :counters.add(state.checks, 1, map_size(state.held))
    :counters.add(state.checks, 2, early)
    Enum.each(state.held, fn {_, holder} -> Handle.keep(holder) end)
    state
  end

  # Most die young, some live long.
  defp drop(state) do
    held =
      Map.filter(state.held, fn {id, holder} ->
        keep? = :rand.uniform(100) > if(rem(id, 50) == 0, do: 1, else: 30)
        if not keep? and holder == :table, do: :ets.delete(state.table, {self(), id})
        keep?
      end)

    %{state | held: held}
  end

  @impl true
  def init(_) do
    :ets.new(__MODULE__, [:named_table, :public, read_concurrency: true])
    {:ok, nil}
  end

  @impl true
  def handle_info({:free, ids}, state) do
    :ets.insert(__MODULE__, for(id <- ids, do: {id}))
    {:noreply, state}
  end
end

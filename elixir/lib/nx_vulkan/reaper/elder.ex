defmodule Nx.Vulkan.Reaper.Elder do
  @moduledoc """
  The process that holds the handles of tensors that have lived a while.

  A sweep costs in proportion to all that it holds (100,000 handles: tens of milliseconds), so it sweeps when what came since
  the last sweep outweighs what was left then, by number or by bytes on the device, and when it has been quiet: first
  after a second, then at doubling intervals up to a minute while nothing is found, and never for more than a fiftieth
  of the time.
  """

  alias Nx.Vulkan.{Handle, Reaper}
  alias Nx.Vulkan.Reaper.Ward

  @few 1_024
  @little 256 * 1024 * 1024
  @first_quiet 1_000
  @last_quiet 60_000
  @share 50

  @doc false
  @spec start(pid()) :: pid()
  def start(reaper) do
    {pid, _} =
      :erlang.spawn_opt(fn -> init(reaper) end, [:monitor, message_queue_data: :off_heap])

    pid
  end

  @doc false
  @spec adopt(pid(), Ward.entries()) :: :ok
  def adopt(elder, entries) do
    send(elder, {:adopt, entries})
    :ok
  end

  defp init(reaper) do
    loop(%{
      monitor: Process.monitor(reaper),
      entries: %{},
      new: 0,
      new_bytes: 0,
      left: 0,
      left_bytes: 0,
      quiet: @first_quiet,
      floor: 0
    })
  end

  defp loop(%{monitor: monitor} = state) do
    receive do
      {:adopt, entries} ->
        loop(adopted(state, entries))

      {:sweep, from, ref} ->
        {state, _} = sweep(state)
        send(from, {ref, :swept})
        loop(state)

      {:DOWN, ^monitor, _, _, _} ->
        Ward.give_back(state.entries)
    after
      wait(state) -> loop(idle(state))
    end
  end

  defp wait(%{entries: entries}) when entries == %{}, do: :infinity
  defp wait(state), do: max(state.quiet, state.floor)

  defp idle(state) do
    case sweep(state) do
      {state, 0} -> %{state | quiet: min(state.quiet * 2, @last_quiet)}
      {state, _} -> %{state | quiet: @first_quiet}
    end
  end

  defp adopted(state, entries) do
    new = state.new + map_size(entries)
    new_bytes = state.new_bytes + bytes(entries)

    state = %{
      state
      | entries: Map.merge(state.entries, entries),
        new: new,
        new_bytes: new_bytes,
        quiet: @first_quiet
    }

    report(state)

    if new > max(state.left, @few) or new_bytes > max(state.left_bytes, @little),
      do: elem(sweep(state), 0),
      else: state
  end

  defp sweep(state) do
    start = :erlang.monotonic_time(:microsecond)
    before = map_size(state.entries)
    entries = Ward.sweep(state.entries)
    took = :erlang.monotonic_time(:microsecond) - start

    Reaper.count(:elder_sweeps, 1)
    Reaper.count(:elder_us, took)
    left = map_size(entries)

    state = %{
      state
      | entries: entries,
        new: 0,
        new_bytes: 0,
        left: left,
        left_bytes: bytes(entries),
        floor: div(took * @share, 1_000)
    }

    report(state)
    {state, before - left}
  end

  defp report(state) do
    Reaper.set(:old, map_size(state.entries))
    Reaper.set(:old_bytes, state.left_bytes + state.new_bytes)
  end

  defp bytes(entries) do
    Enum.reduce(entries, 0, fn {_, {_, handle}}, sum -> sum + Handle.bytes(handle) end)
  end
end

defmodule Nx.Vulkan.Reaper.Ward do
  @moduledoc """
  A process that holds up to 256 young handles of distinct sizes, and nothing else.

  That it holds nothing else is the point: a size in the list of its binaries names one handle. Its mailbox is off the heap,
  so that what waits there is not in the list. Handles that share a size, or whose size is not found exactly once, go back
  to the nursery and are tried again in other company.
  """

  alias Nx.Vulkan.{Handle, Nursery, Reaper}
  alias Nx.Vulkan.Reaper.Elder

  # Sweeps by the reaper before the survivors go to the elder.
  @sweeps 6

  @typedoc "Handles by the address of their bytes."
  @type entries :: %{pos_integer() => {pos_integer(), Handle.t()}}

  @doc false
  @spec start([pos_integer()], pid(), pid()) :: {pid(), reference()}
  def start(ids, reaper, elder) do
    :erlang.spawn_opt(fn -> run(ids, reaper, elder) end, [
      :monitor,
      message_queue_data: :off_heap
    ])
  end

  defp run(ids, reaper, elder) do
    monitor = Process.monitor(reaper)
    entries = learn(Enum.flat_map(ids, &Nursery.take/1))
    Reaper.count(:drained, map_size(entries))
    loop(sweep(entries), @sweeps, monitor, elder)
  end

  defp loop(entries, _, _, _) when entries == %{}, do: :ok
  defp loop(entries, 0, _, elder), do: Elder.adopt(elder, entries)

  defp loop(entries, sweeps, monitor, elder) do
    receive do
      :sweep ->
        loop(sweep(entries), sweeps - 1, monitor, elder)

      {:sweep, from, ref} ->
        entries = sweep(entries)
        send(from, {ref, :swept})
        loop(entries, sweeps, monitor, elder)

      {:DOWN, ^monitor, _, _, _} ->
        give_back(entries)
    end
  end

  # Which address is which handle.
  defp learn(handles) do
    {handles, again} = distinct(handles, %{}, [])
    give_back(again)
    # What was given back is still on the heap, at the same size as what was kept.
    if again != [], do: :erlang.garbage_collect()

    {found, rest} =
      for {address, size, _} <- binaries(), reduce: {%{}, handles} do
        {found, rest} ->
          case rest do
            %{^size => entry} -> {Map.put(found, size, {address, entry}), Map.delete(rest, size)}
            %{} -> {conflict(found, size, address), rest}
          end
      end

    {known, ambiguous} = Enum.split_with(found, fn {_, {address, _}} -> is_integer(address) end)
    give_back(for {_, {_, {id, handle}}} <- ambiguous, do: {id, handle})
    give_back(Map.values(rest))
    Map.new(known, fn {_, {address, entry}} -> {address, entry} end)
  end

  # A size seen at two addresses names none.
  defp conflict(found, size, address) do
    case found do
      %{^size => {^address, _}} -> found
      %{^size => {_, entry}} -> %{found | size => {:ambiguous, entry}}
      %{} -> found
    end
  end

  defp distinct([], sizes, again), do: {sizes, again}

  defp distinct([{_, handle} = entry | rest], sizes, again) do
    size = byte_size(handle)

    if is_map_key(sizes, size),
      do: distinct(rest, sizes, [entry | again]),
      else: distinct(rest, Map.put(sizes, size, entry), again)
  end

  @doc false
  # Finds the dead among the handles of the calling process, frees them, returns the rest.
  @spec sweep(entries()) :: entries()
  def sweep(entries) do
    {dead, alive} =
      Enum.reduce(binaries(), {[], entries}, fn
        {address, _, 1}, {dead, alive} ->
          case alive do
            %{^address => {id, handle}} ->
              {[{id, Handle.device(handle)} | dead], Map.delete(alive, address)}

            %{} ->
              {dead, alive}
          end

        _, acc ->
          acc
      end)

    Reaper.bury(dead)
    # The bytes of the dead handles themselves.
    if dead != [], do: :erlang.garbage_collect()
    alive
  end

  @doc false
  @spec give_back(entries() | [{pos_integer(), Handle.t()}]) :: :ok
  def give_back(entries) when is_map(entries), do: give_back(Map.values(entries))
  def give_back(entries), do: Enum.each(entries, fn {id, handle} -> Nursery.put(id, handle) end)

  defp binaries do
    {:binary, binaries} = Process.info(self(), :binary)
    binaries
  end
end

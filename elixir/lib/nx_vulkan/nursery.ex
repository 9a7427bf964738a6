defmodule Nx.Vulkan.Nursery do
  @moduledoc """
  Where handles wait for the reaper, from before their tensors are made.

  The table is public and ordered by id, so that what is drained together was made together, and has distinct sizes.
  Who puts a handle there wakes the reaper when it sleeps, after every 64 handles, and at once for a big tensor.
  """

  alias Nx.Vulkan.Reaper

  @table __MODULE__
  @freed Module.concat(__MODULE__, Freed)

  # Weight from which a handle wakes the reaper alone: a tensor of 64 KiB.
  @heavy 16 * 256

  @doc false
  @spec create() :: :ok
  def create do
    for table <- [@table, @freed], :ets.whereis(table) == :undefined do
      kind = if table == @table, do: :ordered_set, else: :set
      :ets.new(table, [:named_table, :public, kind, write_concurrency: true])
    end

    :ok
  end

  @doc """
  Puts a new handle.
  """
  @spec put(pos_integer(), binary()) :: :ok
  def put(id, handle) do
    :ets.insert(@table, {id, handle})

    if Bitwise.band(id, 63) == 0 or byte_size(handle) >= @heavy or Reaper.asleep?() do
      Reaper.wake()
    end

    :ok
  end

  @doc """
  The lowest ids, `limit` at most, and how to go on with `more/1`.
  """
  @spec ids(pos_integer()) :: {[pos_integer()], term()} | :"$end_of_table"
  def ids(limit), do: :ets.select(@table, [{{:"$1", :_}, [], [:"$1"]}], limit)

  @doc """
  The next ids. Those before may have been taken meanwhile.
  """
  @spec more(term()) :: {[pos_integer()], term()} | :"$end_of_table"
  def more(:"$end_of_table"), do: :"$end_of_table"
  def more(continuation), do: :ets.select(continuation)

  @doc """
  Takes the handle of an id.
  """
  @spec take(pos_integer()) :: [{pos_integer(), binary()}]
  def take(id), do: :ets.take(@table, id)

  @doc """
  How many handles wait.
  """
  @spec size() :: non_neg_integer()
  def size, do: :ets.info(@table, :size)

  @doc """
  Marks a tensor as freed by request; says whether it was not before.
  """
  @spec mark_freed(pos_integer()) :: boolean()
  def mark_freed(id), do: :ets.insert_new(@freed, {id})

  @doc """
  Whether a tensor was freed by request.
  """
  @spec freed?(pos_integer()) :: boolean()
  def freed?(id), do: :ets.member(@freed, id)

  @doc """
  Forgets the marks of ids whose handles are gone, and returns those that had none.
  """
  @spec unmark([pos_integer()]) :: [pos_integer()]
  def unmark(ids) do
    if :ets.info(@freed, :size) == 0,
      do: ids,
      else: Enum.reject(ids, &(:ets.take(@freed, &1) != []))
  end
end

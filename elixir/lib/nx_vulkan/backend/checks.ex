defmodule Nx.Vulkan.Backend.Checks do
  @moduledoc false
  # What Nx raises for by value: indices outside their axis, zeros on the diagonal of a triangular system. The device
  # goes on (indices are clamped, quotients are infinite); with `errors: :sync` these are looked for first,
  # on the device, at the price of a read. Indices that are host constants are looked at in any case.

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.Backend, as: B

  @indexed [:gather, :indexed_add, :indexed_put, :take, :take_along_axis]

  @doc """
  Whether values are looked at before `op` is sent.
  """
  def due?(_op, _operands, :sync), do: true
  def due?(op, [_, %T{data: %B{state: {:constant, _}}} | _], _async) when op in @indexed, do: true
  def due?(_op, _operands, _async), do: false

  @doc """
  Raises what `Nx.BinaryBackend` raises for these operands of `op`.
  """
  def run!(op, [%T{shape: shape}, indices | _], attrs) when op in [:gather, :indexed_add, :indexed_put] do
    {lead, rest} =
      shape |> Tuple.to_list() |> Enum.with_index() |> Enum.split_with(&(elem(&1, 1) in attrs.axes))

    dims = Enum.map(lead, &elem(&1, 0))
    inside!(indices, dims, Enum.to_list(0..(length(dims) - 1)), dims ++ Enum.map(rest, &elem(&1, 0)))
  end

  def run!(:take, [%T{shape: shape}, indices], %{axis: axis}) do
    {dim, rest} = shape |> Tuple.to_list() |> List.pop_at(axis)
    inside!(indices, [dim], [0], [dim | rest])
  end

  def run!(:take_along_axis, [%T{shape: shape}, indices], %{axis: axis}) do
    inside!(indices, [elem(shape, axis)], [axis], Tuple.to_list(shape))
  end

  def run!(:triangular_solve, [a, _b], _attrs) do
    zeros = Nx.logical_and(Nx.equal(a, 0), Nx.eye(a.shape, type: :u8, backend: Nx.Vulkan.Backend))
    if true?(Nx.any(zeros)), do: raise(ArgumentError, "can't solve for singular matrix")
  end

  def run!(_op, _operands, _attrs), do: :ok

  # `dims` are the extents that the last axis of the indices, or each number, runs over; `axes` and `shape`
  # are what the message tells of them.
  defp inside!(indices, dims, axes, shape) do
    most = if match?([_], dims), do: hd(dims), else: Nx.tensor(dims, type: :s64, backend: Nx.BinaryBackend)
    outside = Nx.logical_or(Nx.less(indices, 0), Nx.greater_equal(indices, most))

    if true?(Nx.any(outside)) do
      {index, axis, _} =
        indices
        |> Nx.to_flat_list()
        |> Enum.zip(Stream.cycle(Enum.zip(axes, dims)))
        |> Enum.map(fn {index, {axis, dim}} -> {index, axis, dim} end)
        |> Enum.find(fn {index, _, dim} -> index < 0 or index >= dim end)

      raise ArgumentError,
            "index #{index} is out of bounds for axis #{axis} in shape #{inspect(List.to_tuple(shape))}"
    end
  end

  defp true?(tensor), do: Nx.to_number(tensor) == 1
end

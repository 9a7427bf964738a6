defmodule Nx.Vulkan.Backend.Trace do
  @moduledoc false
  # A function of two scalars, as `Nx.reduce/4` and `Nx.window_reduce/5` take, as a graph of the wire.
  #
  # The function is called once, with tensors of this backend that stand for the element and the accumulator. What it
  # computes of them comes to `node/4` instead of the port; what it computes of other tensors alone happens as usual,
  # and such a tensor enters the graph as a constant. A function that wants the numbers themselves, or computes
  # anything but scalars, is no graph.

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.Backend, as: B
  alias Nx.Vulkan.Backend.Types

  @nodes {__MODULE__, :nodes}

  # How many constants and operations a function may hold; the port refuses graphs without end.
  @most 10_000

  @doc """
  The graph of `fun`, whose element, accumulator and result are of `type`, or `:error`.
  """
  @spec graph((T.t(), T.t() -> T.t()), Nx.Type.t()) :: {:ok, tuple} | :error
  def graph(fun, type) do
    wire = Types.wire(type)
    token = make_ref()
    outer = Process.put(@nodes, {token, 2, []})

    try do
      if wire == nil, do: throw({@nodes, token})
      result = fun.(traced(type, token, 0), traced(type, token, 1))
      out = ref(result, wire)
      {_, _, nodes} = Process.get(@nodes)
      {:ok, {[{wire, {}}, {wire, {}}], Enum.reverse(nodes), [out]}}
    catch
      :throw, {@nodes, ^token} -> :error
    after
      if outer, do: Process.put(@nodes, outer), else: Process.delete(@nodes)
    end
  end

  @doc """
  Whether any of the operands stands for a value of the function that is being traced.
  """
  @spec traced?([T.t() | integer]) :: boolean
  def traced?(operands), do: Process.get(@nodes) != nil and Enum.any?(operands, &stands?/1)

  defp stands?(%T{data: %B{state: {:traced, _, _}}}), do: true
  defp stands?(_), do: false

  @doc """
  An operation of such operands: the tensor that stands for its result.
  """
  @spec node(atom, [T.t()], [T.t() | integer], map | []) :: T.t()
  def node(op, [%T{shape: {}, type: type} = out], operands, attrs) when op not in [:reduce, :window_reduce] do
    refs = Enum.map(operands, &ref/1)
    %{out | data: traced(type, add({op, Types.wire(type), {}, attrs, refs}))}
  end

  def node(_op, _outs, _operands, _attrs), do: leave()

  @doc """
  What reading such a tensor comes to.
  """
  @spec leave() :: no_return
  def leave do
    case Process.get(@nodes) do
      {token, _, _} ->
        throw({@nodes, token})

      nil ->
        raise ArgumentError,
              "the tensor is of a function that was given to reduce or window_reduce, and has no value outside of it"
    end
  end

  defp traced(type, token, ref) do
    %T{type: type, shape: {}, names: [], data: %B{state: {:traced, token, ref}}}
  end

  defp traced(_type, ref) do
    {token, _, _} = Process.get(@nodes)
    %B{state: {:traced, token, ref}}
  end

  # What the function yields, cast where it is of another type.
  defp ref(result, wire) do
    result = Nx.to_tensor(result)
    ref = ref(result)
    if Types.wire(result.type) == wire, do: ref, else: add({:as_type, wire, {}, [], [ref]})
  end

  defp ref(%T{shape: {}, data: %B{state: {:traced, token, ref}}}) do
    case Process.get(@nodes) do
      {^token, _, _} -> ref
      # Of a function around this one.
      _ -> leave()
    end
  end

  defp ref(%T{shape: {}, type: type, data: %module{}} = t) do
    case Types.wire(type) do
      nil -> leave()
      wire -> add({:constant, wire, {}, %{value: module.to_binary(t, 1)}, []})
    end
  end

  defp ref(_start_or_larger), do: leave()

  defp add(node) do
    {token, next, nodes} = Process.get(@nodes)
    if next >= @most, do: leave()
    Process.put(@nodes, {token, next + 1, [node | nodes]})
    next
  end
end

defmodule Nx.Vulkan.Backend.Eager do
  @moduledoc false
  # One operation, sent as a cast. The caller pays for encoding and for Port.command/2, never for a round trip.
  #
  # Order matters: ids come from handles before the command, the handles are kept until after it, and
  # the result's handle is in the nursery before the port hears of its id (Nx.Vulkan.Handle.new/2).

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.{Fallback, Handle, Plan, Port}
  alias Nx.Vulkan.Backend, as: B
  alias Nx.Vulkan.Backend.{Data, Host, Types}

  @doc """
  Runs the callback `name`, which is also the wire's operation.

  `operands` are tensors, and integers for static slice starts. `constants` says how host constants take
  part (see the table in `Nx.Vulkan.Backend`), `attrs` are the wire's, `args` are the callback's arguments, for
  the fallback.
  """
  def run(name, out, [%T{data: %B{state: {:constant, _}}} | _] = operands, constants, attrs, args) do
    if Host.constant?(operands) do
      case Host.constant(name, out, operands, constants, args) do
        %T{} = result -> result
        :device -> send_op(name, out, operands, whole(constants), attrs, args)
      end
    else
      send_op(name, out, operands, whole(constants), attrs, args)
    end
  end

  def run(name, out, operands, constants, attrs, args) do
    send_op(name, out, operands, whole(constants), attrs, args)
  end

  # How many leading operands must be tensors of the device.
  defp whole({:values, n}), do: n
  defp whole(:map), do: 0
  defp whole(:same), do: 1

  defp send_op(name, %T{type: type, shape: shape} = out, operands, whole, attrs, args) do
    with wire when wire != nil <- Types.wire(type),
         types when types != nil <- types(operands) do
      Host.check!(name, wire, operands)
      like = like(operands)
      port = Port.get!(like.device)

      # Before anything moves, so that a refusal costs nothing.
      case Plan.tier(port, name, wire, types, fn -> plan(name, wire, shape, attrs, operands, whole) end) do
        :device -> cast(port, like, name, wire, out, operands, whole, attrs)
        :host -> cast_to_host(port, like, name, wire, out, operands, whole, attrs, args)
        :none -> Host.fallback(name, args, "neither the device nor the port can")
      end
    else
      nil -> Host.fallback(name, args, "no device tensor has its type")
    end
  end

  defp cast_to_host(port, like, name, wire, out, operands, whole, attrs, args) do
    Fallback.note(name, args, "the device cannot, the port's CPU does")
    cast(port, like, name, wire, out, operands, whole, attrs)
  end

  defp cast(port, like, name, wire, %T{type: type, shape: shape} = out, operands, whole, attrs) do
    {terms, held} = load(operands, whole, port, [], [])
    {id, handle} = Handle.new(port, Types.bytes(type, size(shape)))
    Port.cast(port, {:op, {name, wire, shape, attrs}, terms, [id]})
    Handle.keep(held)
    if like.errors == :sync, do: sync!(port, id, handle)
    %{out | data: %{like | state: handle}}
  end

  defp sync!(port, id, handle) do
    result = Port.call(port, {:sync, [id]})
    Handle.keep(handle)
    with {:error, error} <- result, do: raise(error)
  end

  defp size({}), do: 1
  defp size({n}), do: n
  defp size({m, n}), do: m * n
  defp size(shape), do: Tuple.product(shape)

  ## Operands

  # What the result is like: the first tensor on the device says where, else the first constant that was
  # given a place.
  defp like([%T{data: %B{state: state} = b} | _]) when is_binary(state), do: b
  defp like([%T{data: %B{} = b} | rest]), do: like(rest, b)
  defp like([_ | rest]), do: like(rest)
  defp like([]), do: Data.place([])

  defp like([%T{data: %B{state: state} = b} | _], _found) when is_binary(state), do: b
  defp like([%T{data: %B{} = b} | rest], %B{device: nil}), do: like(rest, b)
  defp like([_ | rest], found), do: like(rest, found)
  defp like([], found), do: Data.place(found)

  # The operands' types on the wire, or nil when one has none there.
  defp types([%T{type: type} | rest]) do
    with wire when wire != nil <- Types.wire(type),
         types when types != nil <- types(rest),
         do: [wire | types]
  end

  defp types([_start | rest]), do: with(types when types != nil <- types(rest), do: [:s64 | types])
  defp types([]), do: []

  # What travels for each operand: an id, or a scalar by value; and the handles to keep until it is sent.
  defp load([], _whole, _port, terms, held), do: {:lists.reverse(terms), held}

  defp load([%T{data: %B{state: handle}} | rest], whole, port, terms, held) when is_binary(handle),
    do: load(rest, whole - 1, port, [Handle.id!(handle, port) | terms], [handle | held])

  defp load([%T{data: %B{state: {:constant, bits}}} = t | rest], whole, port, terms, held) when whole <= 0,
    do: load(rest, whole - 1, port, [{Types.wire(t.type), bits} | terms], held)

  defp load([start | rest], whole, port, terms, held) when is_integer(start),
    do: load(rest, whole - 1, port, [Types.start(start) | terms], held)

  defp load([%T{shape: {}, data: %module{}} = t | rest], whole, port, terms, held)
       when whole <= 0 and module != B,
       do: load(rest, whole - 1, port, [{Types.wire(t.type), module.to_binary(t, 1)} | terms], held)

  defp load([t | rest], whole, port, terms, held) do
    {id, handle} = Data.upload(port, t)
    load(rest, whole - 1, port, [id | terms], [handle | held])
  end

  # The question to the port: the node, and what load/5 would send.
  defp plan(name, wire, shape, attrs, operands, whole) do
    specs =
      operands
      |> Enum.with_index()
      |> Enum.map(fn
        {start, _} when is_integer(start) ->
          {:s64, :value}

        {%T{data: %B{state: {:constant, _}}} = t, i} when i >= whole ->
          {Types.wire(t.type), :value}

        {%T{shape: {}, data: %module{}} = t, i} when i >= whole and module != B ->
          {Types.wire(t.type), :value}

        {t, _} ->
          {Types.wire(t.type), t.shape}
      end)

    {{name, wire, shape, attrs}, specs}
  end

  ## Attributes

  @doc """
  Attributes of a reduction: no axes means all.
  """
  def reduction(%T{shape: shape}, opts) do
    axes =
      case opts[:axes] do
        nil -> Enum.to_list(0..(tuple_size(shape) - 1)//1)
        axes -> Enum.sort(axes)
      end

    if opts[:keep_axes], do: %{axes: axes, keep_axes: true}, else: %{axes: axes}
  end

  @doc """
  Attributes of a sum.
  """
  def sum(x, opts), do: accumulator(reduction(x, opts))

  @doc """
  Attributes of argmax and argmin. Without an axis the result is a scalar, kept axes or not.
  """
  def arg_reduction(opts) do
    axis = opts[:axis]
    attrs = %{axis: axis, tie_break: opts[:tie_break] || :low}
    if axis && opts[:keep_axis], do: Map.put(attrs, :keep_axes, true), else: attrs
  end

  @doc """
  Attributes of a dot.
  """
  def contraction(contract_a, batch_a, contract_b, batch_b) do
    accumulator(%{contract_a: contract_a, batch_a: batch_a, contract_b: contract_b, batch_b: batch_b})
  end

  @accumulator {Nx.Vulkan, :accumulator}

  defp accumulator(attrs) do
    case :persistent_term.get(@accumulator, :compensated) do
      :compensated -> attrs
      other -> Map.put(attrs, :accumulator, other)
    end
  end

  @doc """
  How sums and dots of f32 accumulate from now on.
  """
  def put_accumulator(kind) when kind in [:compensated, :f32, :f64],
    do: :persistent_term.put(@accumulator, kind)
end

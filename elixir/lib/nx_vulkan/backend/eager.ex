defmodule Nx.Vulkan.Backend.Eager do
  @moduledoc false
  # One operation, sent as a cast. The caller pays for encoding and for Port.command/2, never for a round trip.
  #
  # Order matters: ids come from handles before the command, the handles are kept until after it, and
  # the result's handle is in the nursery before the port hears of its id (Nx.Vulkan.Handle.new/2).

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.{Error, Fallback, Handle, Plan, Port}
  alias Nx.Vulkan.Backend, as: B
  alias Nx.Vulkan.Backend.{Data, Host, Trace, Types}

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

  @doc """
  Sends an operation of which `whole` leading operands must be tensors of the device, or falls back.
  """
  def send_op(name, out, operands, whole, attrs, args) do
    case attempt(name, [out], operands, whole, attrs, {name, args}) do
      {:ok, [result]} -> result
      {:none, why} -> Host.fallback(name, args, why)
    end
  end

  @doc """
  Sends an operation, unless neither the device nor the port can do it: then nothing has moved, and the reason
  comes back.

  `outs` are the templates of its results, `whole` says how many leading operands must be tensors of the device,
  and `call` is the callback with its arguments, for `Nx.Vulkan.Fallback`. The results go where the operands are,
  or to `place` where there are none.
  """
  @spec attempt(atom, [T.t()], [T.t() | integer], integer, map | [], {atom, [term]}, B.t() | nil) ::
          {:ok, [T.t()]} | {:none, String.t()}
  def attempt(name, [out | _] = outs, operands, whole, attrs, call, place \\ nil) do
    %T{type: type} = out

    with wire when wire != nil <- Types.wire(type),
         types when types != nil <- types(operands),
         attrs when attrs != nil <- results(attrs, outs) do
      Host.check!(name, wire, operands)

      if Trace.traced?(operands),
        do: {:ok, [Trace.node(name, outs, operands, attrs)]},
        else: send_planned(name, wire, types, outs, operands, whole, attrs, call, place)
    else
      nil -> {:none, "no device tensor has its type"}
    end
  end

  defp send_planned(name, wire, types, [%T{shape: shape} | _] = outs, operands, whole, attrs, call, place) do
    like = place || like(operands)
    port = Port.get!(like.device)
    node = {name, wire, shape, attrs}
    detail = if Plan.detailed?(name), do: {shape, shapes(operands), attrs}

    # Before anything moves, so that a refusal costs nothing.
    case Plan.tier(port, name, wire, types, detail, fn -> {node, specs(operands, whole)} end) do
      :device ->
        {:ok, cast(port, like, node, outs, operands, whole)}

      :host ->
        {callback, args} = call
        Fallback.note_host(callback, args)
        {:ok, cast(port, like, node, outs, operands, whole)}

      :none ->
        {:none, "neither the device nor the port can"}
    end
  end

  # The results after the first, as an attribute.
  defp results(attrs, [_]), do: attrs

  defp results(attrs, [_ | more]) do
    specs = for %T{type: type, shape: shape} <- more, do: {Types.wire(type), shape}
    if List.keymember?(specs, nil, 0), do: nil, else: Map.put(attrs, :results, specs)
  end

  defp shapes(operands) do
    for operand <- operands do
      case operand do
        %T{shape: shape} -> shape
        _start -> {}
      end
    end
  end

  defp cast(port, like, node, outs, operands, whole) do
    {terms, held} = load(operands, whole, port, [], [])
    {ids, results} = name(outs, port, like, [], [])
    Port.cast(port, {:op, node, terms, ids})
    Handle.keep(held)
    if like.errors == :sync, do: sync!(port, ids, results)
    results
  end

  defp name([], _port, _like, ids, results), do: {:lists.reverse(ids), :lists.reverse(results)}

  defp name([%T{type: type, shape: shape} = out | outs], port, like, ids, results) do
    {id, handle} = Handle.new(port, Types.bytes(type, size(shape)))
    name(outs, port, like, [id | ids], [%{out | data: %{like | state: handle}} | results])
  end

  defp sync!(port, ids, results) do
    result = Port.call(port, {:sync, ids})
    Handle.keep(results)
    with {:error, error} <- result, do: raise(Error.as_nx(error))
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

  # The operands as load/5 would send them, for the question where an operation runs.
  defp specs(operands, whole) do
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

  @doc """
  Attributes of a convolution.
  """
  def conv(opts) do
    opts
    |> Keyword.take(
      [:strides, :padding, :input_dilation, :kernel_dilation, :feature_group_size, :batch_group_size] ++
        [:input_permutation, :kernel_permutation, :output_permutation]
    )
    |> Map.new()
    |> accumulator()
  end

  @doc """
  Attributes of an operation over windows.
  """
  def window(window, opts) do
    attrs = %{window: Tuple.to_list(window), strides: opts[:strides], padding: opts[:padding]}

    case opts[:window_dilations] do
      nil -> attrs
      dilations -> Map.put(attrs, :window_dilations, dilations)
    end
  end

  @doc """
  Attributes of a Fourier transform.
  """
  def fft(opts), do: %{axis: opts[:axis], length: opts[:length], eps: opts[:eps] * 1.0}

  @accumulator {Nx.Vulkan, :accumulator}

  @doc """
  The attributes of an operation that accumulates, with how it does so where that is not the default.
  """
  def accumulator(attrs) do
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

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Differential do
    @moduledoc """
    Random calls on the device against Nx.BinaryBackend: operation, types, shapes, axes, layouts and values are drawn
    from a seed.

    A case is plain data: `%{call: {name, args}, operands: [operand]}`, an operand being the bytes of a base tensor and
    the views (transposes, reverses, slices, broadcasts, reshapes) that lead from it to what the call takes. `draw/1` makes
    the case of the random generator's state, `check/2` says `:ok`, `:raises` (BinaryBackend does) or `{:bad, why}`.

    Where the two may differ: Nx.BinaryBackend truncates to bf16, raises where IEEE has a value, and has a few formulas
    at fault (`Nx.Vulkan.Test.Reference` knows them all); a device may flush f32 subnormals, and then none is drawn.
    """

    import Nx.Vulkan.Test.Drawing

    alias Nx.Vulkan.Test.{DifferentialFamilies, Drawing, Operations, Reference}

    @types Drawing.plain()

    @moves [:transpose, :reverse, :reshape, :broadcast, :slice, :put_slice, :pad, :concatenate, :stack] ++
             [:select, :clip, :as_type, :bitcast]

    @reductions [:sum, :product, :reduce_max, :reduce_min, :all, :any, :argmax, :argmin, :dot]

    ## Drawing

    @doc """
    Draws the case `number` of `seed`. `subnormals: false` keeps them out of the values.
    """
    def draw(seed, number, opts \\ []) do
      # A hash: {seed, number} as a state gives every seed the same cases in another order.
      :rand.seed(:exsss, :erlang.phash2({seed, number}, 2 ** 32))
      Process.put(:subnormals, Keyword.get(opts, :subnormals, true))

      if chance(0.5),
        do: DifferentialFamilies.draw(),
        else: draw_call(pick([:binary, :binary, :unary, :move, :move, :reduction, :reduction, :creation]))
    end

    defp draw_call(:unary) do
      op = pick(Operations.unary())
      %{call: {op, []}, operands: [operand(pick(types(op)), shape())]}
    end

    defp draw_call(:binary) do
      op = pick(Operations.binary())
      types = types(op)
      left = pick(types)

      # Mostly of one type. BinaryBackend computes with integers of any size and with f64 whatever the types, a
      # device casts the operands first, as XLA does: mixed only where that is the same.
      right = if chance(0.8), do: left, else: mixed(left, types, op)
      shape = shape()
      other = broadcastable(shape)
      values = if op in [:pow, :left_shift, :right_shift], do: {:of, Reference.amounts(op, right)}, else: :any
      right = operand(right, other, values)

      operands =
        if values == :any and chance(0.5),
          do: [right, operand(left, shape)],
          else: [operand(left, shape), right]

      %{call: {op, []}, operands: operands}
    end

    defp draw_call(:creation) do
      {op, args} =
        case pick([:iota, :iota, :eye, :constant]) do
          :iota ->
            shape = shape()
            axis = if shape == {} or chance(0.4), do: nil, else: pick(axes(shape))
            {:iota, [shape, axis]}

          :eye ->
            {:eye, [List.to_tuple(for(_ <- 1..between(2, 4), do: extent()))]}

          :constant ->
            {:constant, [shape(), between(0, 100)]}
        end

      %{call: {op, args ++ [pick(@types)]}, operands: []}
    end

    defp draw_call(:move), do: draw_move(pick(@moves))
    defp draw_call(:reduction), do: draw_reduction(pick(@reductions))

    defp draw_move(:transpose) do
      shape = shape()
      %{call: {:transpose, [Enum.shuffle(axes(shape))]}, operands: [operand(pick(@types), shape)]}
    end

    defp draw_move(:reverse) do
      shape = shape()
      %{call: {:reverse, [subset(axes(shape))]}, operands: [operand(pick(@types), shape)]}
    end

    defp draw_move(:reshape) do
      shape = shape()
      %{call: {:reshape, [refactor(shape)]}, operands: [operand(pick(@types), shape)]}
    end

    defp draw_move(:broadcast) do
      shape = shape()
      kept = subset(axes(shape))
      from = List.to_tuple(for axis <- kept, do: if(chance(0.3), do: 1, else: elem(shape, axis)))
      %{call: {:broadcast, [shape, kept]}, operands: [operand(pick(@types), from)]}
    end

    defp draw_move(:as_type) do
      %{call: {:as_type, [pick(@types)]}, operands: [operand(pick(@types), shape())]}
    end

    defp draw_move(:bitcast) do
      type = pick(@types)
      {_, size} = Nx.Type.normalize!(type)
      to = pick(Enum.filter(@types, &match?({_, ^size}, Nx.Type.normalize!(&1))))
      %{call: {:bitcast, [to]}, operands: [operand(type, shape())]}
    end

    defp draw_move(:slice) do
      shape = shape()
      lengths = for n <- Tuple.to_list(shape), do: between(1, n)
      strides = for _ <- lengths, do: pick([1, 1, 2, 3])
      %{call: {:slice, [starts(shape), lengths, strides]}, operands: [operand(pick(@types), shape)]}
    end

    defp draw_move(:put_slice) do
      shape = shape()
      update = List.to_tuple(for n <- Tuple.to_list(shape), do: between(1, n))
      operands = [operand(pick(@types), shape), operand(pick(@types), update)]
      put_in(%{call: nil, operands: exact_mix(operands)}.call, {:put_slice, [starts(shape)]})
    end

    defp draw_move(:pad) do
      shape = shape()
      type = pick(@types)

      config =
        for n <- Tuple.to_list(shape) do
          interior = if chance(0.3), do: between(1, 2), else: 0
          room = n + (n - 1) * interior
          low = if chance(0.3), do: -between(0, room - 1), else: between(0, 2)
          high = if chance(0.3), do: -between(0, max(room + min(low, 0) - 1, 0)), else: between(0, 2)
          {low, high, interior}
        end

      %{call: {:pad, [config]}, operands: [operand(type, shape), operand(type, {})]}
    end

    defp draw_move(:concatenate) do
      shape = shape(1)
      axis = pick(axes(shape))

      operands =
        for _ <- 1..between(1, 4), do: operand(pick(@types), put_elem(shape, axis, extent()))

      %{call: {:concatenate, [axis]}, operands: exact_mix(operands)}
    end

    defp draw_move(:stack) do
      shape = shape()
      operands = for _ <- 1..between(1, 4), do: operand(pick(@types), shape)
      %{call: {:stack, [between(0, tuple_size(shape))]}, operands: exact_mix(operands)}
    end

    defp draw_move(:select) do
      shape = shape()
      pred = operand(pick(@types), if(chance(0.2), do: {}, else: shape))
      [a, b] = exact_mix([operand(pick(@types), shape), operand(pick(@types), broadcastable(shape))])
      %{call: {:select, []}, operands: [pred, a, b]}
    end

    defp draw_move(:clip) do
      type = pick(@types)
      [low, high] = Enum.sort([between(0, 9), between(0, 9)])
      bounds = for n <- [low, high], do: operand(type, {}, {:of, [n]})
      %{call: {:clip, []}, operands: [operand(type, shape()) | bounds]}
    end

    defp draw_reduction(op) when op in [:argmax, :argmin] do
      shape = shape()
      axis = if shape == {} or chance(0.3), do: nil, else: pick(axes(shape))
      opts = [axis: axis, tie_break: pick([:low, :high]), keep_axis: chance(0.3)]
      # BinaryBackend has an order for NaN of its own among several.
      %{call: {op, [opts]}, operands: [operand(pick(@types), shape, :finite)]}
    end

    defp draw_reduction(:dot) do
      [batch, contract, left, right] =
        for most <- [1, 2, 2, 2], do: Enum.map(1..between(0, most)//1, fn _ -> extent() end)

      type = pick(@types)
      other = if chance(0.8), do: type, else: pick(@types)

      a_free =
        Enum.shuffle(
          Enum.map(contract, &{:c, &1})
          |> Enum.with_index()
          |> Enum.concat(Enum.map(left, &{{:f, &1}, nil}))
        )

      b_free =
        Enum.shuffle(
          Enum.map(contract, &{:c, &1})
          |> Enum.with_index()
          |> Enum.concat(Enum.map(right, &{{:f, &1}, nil}))
        )

      {a, contract_a} = side(batch, a_free)
      {b, contract_b} = side(batch, b_free)
      batches = Enum.to_list(0..(length(batch) - 1)//1)

      %{
        call: {:dot, [contract_a, batches, contract_b, batches]},
        operands: [operand(type, a, :moderate), operand(other, b, :moderate)]
      }
    end

    defp draw_reduction(op) do
      shape = shape()
      axes = if chance(0.3), do: nil, else: subset(axes(shape))
      values = if op in [:sum, :product], do: :moderate, else: :any
      %{call: {op, [[axes: axes, keep_axes: chance(0.4)]]}, operands: [operand(pick(@types), shape, values)]}
    end

    # The shape of a dot's operand (batch axes first) and where its contraction axes are, in their order.
    defp side(batch, free) do
      extents = batch ++ Enum.map(free, fn {{_, n}, _} -> n end)

      where =
        free
        |> Enum.with_index(length(batch))
        |> Enum.filter(&match?({{{:c, _}, _}, _}, &1))
        |> Enum.sort_by(fn {{_, order}, _} -> order end)
        |> Enum.map(&elem(&1, 1))

      {List.to_tuple(extents), where}
    end

    # Merging types casts operands; u64 with s64 and the like lose nothing only where one type holds both.
    defp mixed(left, types, op) do
      pick(
        for type <- types,
            op not in [:quotient, :remainder, :pow] or type == left,
            exact?(Nx.Type.merge(Nx.Type.normalize!(left), Nx.Type.normalize!(type)), [left, type]),
            do: type
      )
    end

    defp exact?(merged, types), do: Enum.all?(types, &holds?(merged, Nx.Type.normalize!(&1)))

    defp holds?(same, same), do: true
    defp holds?({:f, 64}, {kind, size}), do: kind in [:f, :bf] or size <= 32
    defp holds?({:f, 32}, {kind, size}), do: (kind in [:f, :bf] and size <= 32) or size <= 16
    defp holds?({:f, 16}, {kind, size}), do: kind in [:s, :u] and size <= 8
    defp holds?({:bf, 16}, {kind, size}), do: kind in [:s, :u] and size <= 8
    defp holds?({:s, a}, {:u, b}), do: b < a
    defp holds?({kind, a}, {kind, b}), do: b <= a
    defp holds?(_, _), do: false

    # Operands of one type, where merging theirs would round.
    defp exact_mix([first | _] = operands) do
      types = Enum.map(operands, & &1.type)
      merged = types |> Enum.map(&Nx.Type.normalize!/1) |> Enum.reduce(&Nx.Type.merge/2)

      if exact?(merged, types) and merged != {:bf, 16},
        do: operands,
        else: Enum.map(operands, &retype(&1, first.type))
    end

    defp retype(%{type: type} = operand, type), do: operand

    defp retype(operand, type),
      do: %{operand | type: type, bytes: values(type, Tuple.product(operand.base), :any)}

    defp starts(shape) do
      for n <- Tuple.to_list(shape) do
        case pick([:static, :static, :dynamic, :outside]) do
          :static ->
            between(0, n - 1)

          :dynamic ->
            {pick([:s32, :s64, :u8, :u64, :s8]), between(0, n - 1)}

          :outside ->
            pick([
              {:s64, -between(1, 9)},
              {:s32, n + between(0, 9)},
              {:s64, -(2 ** 63)},
              {:s64, 2 ** 63 - 1},
              {:u64, 2 ** 64 - 1}
            ])
        end
      end
    end

    defp types(op), do: Enum.filter(@types, &Operations.takes?(op, &1))

    ## Checking

    @doc "Runs a case on the device (`backend`) and compares."
    def check(%{call: {op, args}, operands: operands} = _case, backend) do
      host = Enum.map(operands, &tensor(&1, Nx.BinaryBackend))

      try do
        got =
          Nx.with_default_backend(backend, fn -> run(op, args, Enum.map(operands, &tensor(&1, backend))) end)

        {got.shape, got.type, Nx.to_binary(got)}
      rescue
        error -> {:raised, error, __STACKTRACE__}
      end
      |> case do
        {:raised, error, stack} -> raised(op, args, host, error, stack)
        got -> compare(op, args, host, got)
      end
    end

    # What both refuse is no difference.
    defp raised(op, args, host, error, stack) do
      reference(op, args, host)
      {:bad, Exception.format(:error, error, Enum.take(stack, 6))}
    rescue
      _ -> :raises
    end

    # Arithmetic that Erlang refuses; the device has a value.
    defp attempt(op, args, host) do
      reference(op, args, host)
    rescue
      _ -> :raises
    end

    defp reference(op, args, host),
      do: Nx.with_default_backend(Nx.BinaryBackend, fn -> run(op, args, host) end)

    defp compare(op, args, host, got) when is_tuple(op), do: DifferentialFamilies.compare(op, args, host, got)

    defp compare(op, args, host, got) do
      if Operations.elementwise?(op),
        do: compare_elements(op, host, got),
        else: compare_whole(op, args, host, got)
    end

    defp compare_elements(op, host, {shape, type, bytes}) do
      operands =
        for t <- host do
          {t |> Nx.broadcast(shape) |> Reference.bits(), t.type}
        end

      result = bytes |> Nx.from_binary(type, backend: Nx.BinaryBackend)

      case Reference.disagreements(op, result, operands) do
        [] ->
          :ok

        [{operands, want, got} | _] = all ->
          {:bad,
           "#{length(all)} elements: #{op}#{inspect(operands)}: wanted #{inspect(want)}, got #{inspect(got)}"}
      end
    end

    # Numbers that bf16 does not hold are rounded, as conversions are.
    defp compare_whole(:iota, [shape, axis, :bf16], [], {shape, type, bytes}) do
      exact = Nx.iota(shape, axis: axis, type: :s32, backend: Nx.BinaryBackend)
      compare_whole(:as_type, [:bf16], [exact], {shape, type, bytes})
    end

    defp compare_whole(:as_type, _args, [x], {_shape, type, bytes}) when type != x.type do
      result = Nx.from_binary(bytes, type, backend: Nx.BinaryBackend)

      case Reference.disagreements(:as_type, result, [{Reference.bits(x), x.type}]) do
        [] ->
          :ok

        [{operands, want, got} | _] ->
          {:bad, "as_type#{inspect(operands)}: wanted #{inspect(want)}, got #{inspect(got)}"}
      end
    end

    defp compare_whole(op, args, host, {shape, {kind, _} = type, bytes})
         when op in [:sum, :dot, :product] and kind in [:f, :bf] do
      want = reference(op, args, Enum.map(host, &Nx.as_type(&1, :f64)))
      size = reference(op, args, Enum.map(host, &Nx.abs(Nx.as_type(&1, :f64))))
      got = bytes |> Nx.from_binary(type, backend: Nx.BinaryBackend) |> Nx.as_type(:f64)
      terms = host |> Enum.map(&Nx.size/1) |> Enum.sum()

      bad =
        [Nx.to_flat_list(want), Nx.to_flat_list(size), Nx.to_flat_list(got)]
        |> Enum.zip()
        |> Enum.reject(fn {want, size, got} -> near?(want, got, size, type, terms) end)

      cond do
        shape != want.shape -> {:bad, "shape #{inspect(shape)}, wanted #{inspect(want.shape)}"}
        bad == [] -> :ok
        true -> {:bad, "#{op}: {wanted, of magnitude, got} #{inspect(hd(bad))}"}
      end
    end

    defp compare_whole(op, args, host, {shape, type, bytes}) do
      want = attempt(op, args, host)

      cond do
        want == :raises ->
          :raises

        {want.shape, want.type} != {shape, type} ->
          {:bad, "#{inspect({type, shape})}, wanted #{inspect({want.type, want.shape})}"}

        true ->
          got = Nx.from_binary(bytes, type, backend: Nx.BinaryBackend)

          case Enum.find(Enum.zip(Reference.bits(want), Reference.bits(got)), fn {a, b} ->
                 not same?(a, b, type)
               end) do
            nil ->
              :ok

            {a, b} ->
              {:bad,
               "wanted #{inspect(Reference.number(a, type))}, got #{inspect(Reference.number(b, type))}"}
          end
      end
    end

    defp same?(a, b, type), do: Reference.close?(a, b, type, 0)

    # A sum in f32 is off by 2^-24 of its terms' magnitudes; then comes the rounding to its type.
    defp near?(want, got, size, type, terms) when is_number(want) and is_number(size) do
      {unit, accumulated, least, most} =
        case type do
          {:f, 64} -> {0, terms * pow2(-53), 0.0, 1.7e308}
          {:f, 32} -> {0, pow2(-24), pow2(-149), 3.4e38}
          {:f, 16} -> {pow2(-11), pow2(-24), pow2(-25), 65503.0}
          {:bf, 16} -> {pow2(-8), pow2(-24), pow2(-134), 3.38e38}
        end

      size >= most or
        (is_number(got) and abs(got - want) <= (unit * abs(want) + accumulated * size) * 1.001 + least)
    end

    defp near?(_want, _got, _size, _type, _terms), do: true

    defp pow2(n), do: :math.pow(2, n)

    ## Calls

    defp run(:iota, [shape, axis, type], []), do: Nx.iota(shape, axis: axis, type: type)
    defp run(:eye, [shape, type], []), do: Nx.eye(shape, type: type)
    defp run(:constant, [shape, number, type], []), do: Nx.broadcast(Nx.tensor(number, type: type), shape)
    defp run(:transpose, [axes], [x]), do: Nx.transpose(x, axes: axes)
    defp run(:reverse, [axes], [x]), do: Nx.reverse(x, axes: axes)
    defp run(:reshape, [shape], [x]), do: Nx.reshape(x, shape)
    defp run(:broadcast, [shape, axes], [x]), do: Nx.broadcast(x, shape, axes: axes)
    defp run(:as_type, [type], [x]), do: Nx.as_type(x, type)
    defp run(:bitcast, [type], [x]), do: Nx.bitcast(x, type)

    defp run(:slice, [starts, lengths, strides], [x]),
      do: Nx.slice(x, start(starts), lengths, strides: strides)

    defp run(:put_slice, [starts], [x, update]), do: Nx.put_slice(x, start(starts), update)
    defp run(:pad, [config], [x, value]), do: Nx.pad(x, value, config)
    defp run(:concatenate, [axis], tensors), do: Nx.concatenate(tensors, axis: axis)
    defp run(:stack, [axis], tensors), do: Nx.stack(tensors, axis: axis)
    defp run(:dot, [ca, ba, cb, bb], [a, b]), do: Nx.dot(a, ca, ba, b, cb, bb)
    defp run(op, args, tensors) when is_tuple(op), do: DifferentialFamilies.run(op, args, tensors)
    defp run(op, args, tensors), do: apply(Nx, op, tensors ++ args)

    defp start(starts) do
      Enum.map(starts, fn
        {type, start} -> Nx.tensor(start, type: type)
        start -> start
      end)
    end

    @doc "How large a case is: the smallest that fails is the one to look at."
    def weight(%{operands: operands}) do
      operands
      |> Enum.map(fn o -> Tuple.product(o.base) + 20 * length(o.views) + 5 * tuple_size(o.base) end)
      |> Enum.sum()
    end
  end
end

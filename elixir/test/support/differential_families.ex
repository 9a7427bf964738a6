if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.DifferentialFamilies do
    @moduledoc """
    Random calls beyond elementwise operations, moves and reductions: indices, convolutions, windows, sorts, scans, transforms
    and functions of reductions, and the types below a byte, of one byte and of two parts.

    A call is named `{family, op}`. Moves, orders and integers must be BinaryBackend's bit for bit. Float sums are
    compared with those of f64 (c128), within a bound relative to the magnitudes that were added.
    """

    import Nx.Vulkan.Test.Drawing

    alias Nx.Vulkan.Test.Reference

    @plain plain()
    @every @plain ++ narrow_ints() ++ f8() ++ complex()
    @sums @plain ++ narrow_ints() ++ complex()
    @real @plain ++ narrow_ints()

    @families [:index, :index, :scatter, :conv, :conv, :window, :window, :source, :sort, :sort] ++
                [:scan, :scan, :fft, :function, :type, :type, :complex]

    ## Drawing

    @doc "A case of any of the families."
    def draw do
      draw(pick(@families))
    end

    defp draw(:index) do
      shape = shape(1)
      draw_index(pick([:gather, :take, :take_along_axis]), operand(pick(@every), shape), shape)
    end

    defp draw(:scatter) do
      op = pick([:indexed_add, :indexed_put])
      type = pick(if op == :indexed_put, do: @every, else: @sums)
      values = if op == :indexed_put, do: :any, else: :moderate
      shape = shape(1)
      axes = Enum.take(Enum.shuffle(axes(shape)), between(1, tuple_size(shape))) |> Enum.sort()
      count = between(1, 6)
      rest = for axis <- axes(shape) -- axes, do: elem(shape, axis)

      operands = [
        operand(type, shape, values),
        indices(for(axis <- axes, do: elem(shape, axis)), {count}),
        operand(type, List.to_tuple([count | rest]), values)
      ]

      %{call: {{:scatter, op}, [[axes: axes]]}, operands: operands}
    end

    defp draw(:conv) do
      spatial = between(1, 3)
      {feature_groups, batch_groups} = pick([{1, 1}, {1, 1}, {2, 1}, {3, 1}, {1, 2}])
      {channels, filters} = {between(1, 2), between(1, 2) * feature_groups * batch_groups}
      kernel = for _ <- 1..spatial, do: between(1, 3)
      dilated = for _ <- 1..spatial, do: pick([1, 1, 2])
      input_dilation = for _ <- 1..spatial, do: pick([1, 1, 2])
      padding = for _ <- 1..spatial, do: {between(0, 2), between(0, 2)}

      # Never smaller than the kernel.
      extents = for {k, d} <- Enum.zip(kernel, dilated), do: (k - 1) * d + between(1, 3)

      [input, weights] = [
        [batch_groups * between(1, 2), channels * feature_groups | extents],
        [filters, channels | kernel]
      ]

      {input, input_permutation} = shuffled(input)
      {weights, kernel_permutation} = shuffled(weights)
      type = pick([:f16, :bf16, :f32, :f32, :f64, :f64, :c64, :c128, :s32, :u8])

      opts = [
        strides: for(_ <- 1..spatial, do: between(1, 2)),
        padding: pick([:valid, :same, padding, padding]),
        input_dilation: input_dilation,
        kernel_dilation: dilated,
        feature_group_size: feature_groups,
        batch_group_size: batch_groups,
        input_permutation: input_permutation,
        kernel_permutation: kernel_permutation,
        output_permutation: Enum.shuffle(0..(spatial + 1))
      ]

      values = if type in [:s32, :u8], do: :small, else: :moderate

      %{
        call: {{:conv, :conv}, [opts]},
        operands: [operand(type, input, values), operand(type, weights, values)]
      }
    end

    defp draw(:window) do
      op = pick([:window_sum, :window_product, :window_max, :window_min])
      type = pick(if op in [:window_sum, :window_product], do: @sums, else: @real)
      {shape, window, opts} = window(true)

      values = if op in [:window_sum, :window_product], do: :moderate, else: :any
      %{call: {{:window, op}, [window, opts]}, operands: [operand(type, shape, values)]}
    end

    # Values that f32 holds exactly: BinaryBackend compares and adds them there.
    defp draw(:source) do
      {shape, window, opts} = window(false)
      type = pick(@plain)

      extents =
        Nx.window_max(Nx.broadcast(Nx.tensor(0, backend: Nx.BinaryBackend), shape), window, opts).shape

      operands = [operand(type, shape, :small), operand(type, extents, :small)]

      %{
        call: {{:source, pick([:window_scatter_max, :window_scatter_min])}, [0, window, opts]},
        operands: operands
      }
    end

    defp draw(:sort) do
      op = pick([:sort, :argsort, :top_k, :top_k_indices])
      shape = shape(1)
      x = operand(pick(@real ++ f8()), shape)

      if op in [:sort, :argsort],
        do: %{call: {{:sort, op}, [[axis: pick(axes(shape)), direction: pick([:asc, :desc])]]}, operands: [x]},
        else: %{
          call: {{:sort, op}, [[k: between(1, elem(shape, tuple_size(shape) - 1))]]},
          operands: [x]
        }
    end

    defp draw(:scan) do
      op = pick([:cumulative_sum, :cumulative_product, :cumulative_max, :cumulative_min])
      type = pick(if op in [:cumulative_sum, :cumulative_product], do: @sums, else: @real)
      shape = shape(1)
      values = if op in [:cumulative_sum, :cumulative_product], do: :moderate, else: :any
      opts = [axis: pick(axes(shape)), reverse: chance(0.5)]
      %{call: {{:scan, op}, [opts]}, operands: [operand(type, shape, values)]}
    end

    defp draw(:fft) do
      outer = for _ <- 1..between(0, 3)//1, do: extent()
      axis = between(0, length(outer))
      shape = outer |> List.insert_at(axis, pick([1, 2, 3, 4, 5, 7, 8, 12, 16])) |> List.to_tuple()
      type = pick([:f16, :bf16, :f32, :f32, :f64, :c64, :c64, :c128, :s32, :u8])
      n = elem(shape, axis)
      length = pick([[], [], [length: between(1, n + 4)], [length: :power_of_two]])
      values = if type in [:s32, :u8], do: :small, else: :moderate

      %{
        call: {{:fft, pick([:fft, :ifft])}, [[axis: axis] ++ length]},
        operands: [operand(type, shape, values)]
      }
    end

    # BinaryBackend hands numbers to the functions of windows, which are then of s32 or f32.
    defp draw(:function) do
      name = pick([:add, :max, :min, :double_minus, :count_above])
      type = pick([:s32, :f32])

      case pick([:reduce, :window_reduce]) do
        :reduce ->
          shape = shape()
          opts = [axes: subset(axes(shape)), keep_axes: chance(0.4)]
          %{call: {{:function, :reduce}, [name, opts]}, operands: [operand(type, shape, :small)]}

        :window_reduce ->
          {shape, window, opts} = window(true)

          %{
            call: {{:function, :window_reduce}, [name, window, opts]},
            operands: [operand(type, shape, :small)]
          }
      end
    end

    # The moves and reductions of the types that the plain families do not draw.
    defp draw(:type) do
      type = pick(narrow_ints() ++ f8() ++ complex())
      shape = shape(1)
      x = operand(type, shape)

      case pick([:transpose, :reverse, :slice, :pad, :concatenate, :select, :put_slice, :reduction, :as_type]) do
        :transpose ->
          %{call: {{:type, :transpose}, [[axes: Enum.shuffle(axes(shape))]]}, operands: [x]}

        :reverse ->
          %{call: {{:type, :reverse}, [[axes: subset(axes(shape))]]}, operands: [x]}

        :slice ->
          lengths = for n <- Tuple.to_list(shape), do: between(1, n)
          strides = for _ <- lengths, do: pick([1, 1, 2, 3])
          starts = for {n, l} <- Enum.zip(Tuple.to_list(shape), lengths), do: between(0, n - l)
          %{call: {{:type, :slice}, [starts, lengths, [strides: strides]]}, operands: [x]}

        :pad ->
          config = for _ <- Tuple.to_list(shape), do: {between(0, 2), between(0, 2), pick([0, 0, 1])}
          %{call: {{:type, :pad}, [config]}, operands: [x, operand(type, {})]}

        :concatenate ->
          axis = pick(axes(shape))
          others = for _ <- 1..between(1, 3), do: operand(type, put_elem(shape, axis, extent()))
          %{call: {{:type, :concatenate}, [axis]}, operands: [x | others]}

        :select ->
          %{call: {{:type, :select}, []}, operands: [operand(:u8, shape), x, operand(type, shape)]}

        :put_slice ->
          update = List.to_tuple(for n <- Tuple.to_list(shape), do: between(1, n))
          starts = for {n, l} <- Enum.zip(Tuple.to_list(shape), Tuple.to_list(update)), do: between(0, n - l)
          %{call: {{:type, :put_slice}, [starts]}, operands: [x, operand(type, update)]}

        :reduction ->
          op =
            pick(reductions(type))

          opts = [axes: subset(axes(shape)), keep_axes: chance(0.4)]
          %{call: {{:type, op}, [opts]}, operands: [operand(type, shape, :moderate)]}

        :as_type ->
          to = if type in complex(), do: complex(), else: [:s8, :s32, :u16, :f32, :f64]
          %{call: {{:type, :as_type}, [pick(to)]}, operands: [x]}
      end
    end

    defp draw(:complex) do
      shape = shape()
      type = pick(complex())

      if chance(0.7) do
        op = pick([:add, :subtract, :multiply, :divide, :equal, :not_equal])

        %{
          call: {{:complex, op}, []},
          operands: [operand(type, shape, :moderate), operand(type, broadcastable(shape), :moderate)]
        }
      else
        op = pick([:abs, :conjugate, :negate, :real, :imag, :exp, :sqrt, :sin, :cos])
        %{call: {{:complex, op}, []}, operands: [operand(type, shape, :moderate)]}
      end
    end

    # BinaryBackend cuts what it writes to f8 off, the device rounds: their sums are not compared.
    defp reductions(type) do
      cond do
        type in complex() -> [:sum, :product]
        type in f8() -> [:reduce_max, :reduce_min]
        true -> [:sum, :product, :reduce_max, :reduce_min]
      end
    end

    defp draw_index(:gather, x, shape) do
      axes = Enum.take(Enum.shuffle(axes(shape)), between(1, tuple_size(shape))) |> Enum.sort()
      batch = List.to_tuple(for _ <- 1..between(1, 2), do: between(1, 4))
      indices = indices(for(axis <- axes, do: elem(shape, axis)), batch)
      %{call: {{:index, :gather}, [[axes: axes]]}, operands: [x, indices]}
    end

    defp draw_index(:take, x, shape) do
      axis = pick(axes(shape))
      batch = List.to_tuple(for _ <- 1..between(0, 2)//1, do: between(1, 4))
      operands = [x, operand(index_type(), batch, {:of, Enum.to_list(0..(elem(shape, axis) - 1))})]
      %{call: {{:index, :take}, [[axis: axis]]}, operands: operands}
    end

    defp draw_index(:take_along_axis, x, shape) do
      axis = pick(axes(shape))
      range = {:of, Enum.to_list(0..(elem(shape, axis) - 1))}
      operands = [x, operand(index_type(), put_elem(shape, axis, between(1, 5)), range)]
      %{call: {{:index, :take_along_axis}, [[axis: axis]]}, operands: operands}
    end

    # One index per axis in the last one: no view mixes them.
    defp indices(extents, batch) do
      type = index_type()
      bits = for _ <- 1..Tuple.product(batch), n <- extents, into: <<>>, do: bytes(between(0, n - 1), type)
      %{type: type, base: Tuple.insert_at(batch, tuple_size(batch), length(extents)), views: [], bytes: bits}
    end

    defp index_type, do: pick([:s32, :s64, :u8, :u32, :u64])

    # A shape, a window and its options that yield at least one element.
    defp window(dilated?) do
      shape = shape(1)
      window = List.to_tuple(for n <- Tuple.to_list(shape), do: between(1, min(n, 3)))

      dilations =
        for {n, w} <- Enum.zip(Tuple.to_list(shape), Tuple.to_list(window)) do
          if dilated? and (w - 1) * 2 + 1 <= n, do: pick([1, 2]), else: 1
        end

      # A window that lies in the padding alone holds no element of the tensor: none is so wide.
      padding = for w <- Tuple.to_list(window), do: {between(0, w - 1), between(0, w - 1)}

      opts = [
        strides: for(_ <- axes(shape), do: between(1, 2)),
        padding: pick([:valid, :same, padding, padding])
      ]

      {shape, window, if(dilated?, do: opts ++ [window_dilations: dilations], else: opts)}
    end

    # The extents in another order, and where each axis of the call lies there.
    defp shuffled(extents) do
      order = Enum.shuffle(Enum.with_index(extents))
      where = for axis <- 0..(length(extents) - 1), do: Enum.find_index(order, &(elem(&1, 1) == axis))
      {order |> Enum.map(&elem(&1, 0)) |> List.to_tuple(), where}
    end

    ## Calls

    @doc "Runs a call on the default backend."
    def run({:index, :gather}, [opts], [x, i]), do: Nx.gather(x, i, opts)
    def run({:sort, :top_k}, [opts], [x]), do: x |> Nx.top_k(opts) |> elem(0)
    def run({:sort, :top_k_indices}, [opts], [x]), do: x |> Nx.top_k(opts) |> elem(1)
    def run({:function, :reduce}, [name, opts], [x]), do: Nx.reduce(x, first(x), opts, function(name))

    def run({:function, :window_reduce}, [name, window, opts], [x]),
      do: Nx.window_reduce(x, first(x), window, opts, function(name))

    def run({:source, op}, [init, window, opts], [x, source]),
      do: apply(Nx, op, [x, source, init, window, opts])

    def run({:type, :concatenate}, [axis], tensors), do: Nx.concatenate(tensors, axis: axis)
    def run({:type, :pad}, [config], [x, value]), do: Nx.pad(x, value, config)
    def run({:type, :put_slice}, [starts], [x, update]), do: Nx.put_slice(x, starts, update)
    def run({_family, op}, args, tensors), do: apply(Nx, op, tensors ++ args)

    defp first(x), do: Nx.tensor(1, type: x.type)

    defp function(:add), do: &Nx.add/2
    defp function(:max), do: &Nx.max/2
    defp function(:min), do: &Nx.min/2
    defp function(:double_minus), do: fn e, acc -> Nx.subtract(Nx.multiply(acc, 2), e) end
    defp function(:count_above), do: fn e, acc -> Nx.select(Nx.greater(e, 1), Nx.add(acc, 1), acc) end

    ## Comparing

    @doc "`:ok`, `:raises` (BinaryBackend does) or `{:bad, why}`."
    def compare({family, op} = name, args, host, {shape, type, bits}) do
      got = Nx.from_binary(bits, type, backend: Nx.BinaryBackend)
      inexact = elem(type, 0) in [:f, :bf, :c] and inexact?(family, op)

      with {:ok, want} <- reference(name, args, host),
           :ok <- same(:shape, want.shape, shape),
           :ok <- same(:type, want.type, type) do
        if inexact, do: near(name, args, host, got), else: equal(want, got)
      else
        # BinaryBackend may refuse a type whose sums it has in a wider one.
        :raises -> :raises
        bad -> bad
      end
    end

    defp inexact?(family, op) do
      family in [:conv, :source, :fft] or
        op in [:indexed_add, :window_sum, :window_product, :cumulative_sum, :cumulative_product] or
        op in [:sum, :product, :multiply, :divide, :abs, :exp, :sqrt, :sin, :cos]
    end

    # BinaryBackend mixes up the outer axes where the transformed one is not among the last two: it gets it last.
    defp reference({:fft, _} = name, [opts], [x]) do
      {axis, last} = {opts[:axis], Nx.rank(x) - 1}
      axes = Enum.map(0..last, &swap(&1, axis, last))

      call = fn ->
        name
        |> run([Keyword.put(opts, :axis, last)], [Nx.transpose(x, axes: axes)])
        |> Nx.transpose(axes: axes)
      end

      {:ok, Nx.with_default_backend(Nx.BinaryBackend, call)}
    end

    # BinaryBackend raises for scans of types below a byte: those of bytes wrap to the same.
    defp reference({:scan, _} = name, args, [%{type: {kind, size} = type} = x]) when size < 8 do
      with {:ok, want} <- reference(name, args, [Nx.as_type(x, {kind, 8})]), do: {:ok, Nx.as_type(want, type)}
    end

    defp reference(name, args, host) do
      {:ok, Nx.with_default_backend(Nx.BinaryBackend, fn -> run(name, args, host) end)}
    rescue
      _ -> :raises
    end

    defp swap(axis, axis, last), do: last
    defp swap(last, axis, last), do: axis
    defp swap(other, _axis, _last), do: other

    defp same(_what, same, same), do: :ok
    defp same(what, want, got), do: {:bad, "#{what} #{inspect(got)}, wanted #{inspect(want)}"}

    defp equal(want, got) do
      case Enum.find(Enum.zip(Reference.bits(want), Reference.bits(got)), fn {a, b} ->
             not Reference.close?(a, b, want.type, 0)
           end) do
        nil -> :ok
        {a, b} -> {:bad, "wanted #{show(a, want.type)}, got #{show(b, want.type)}"}
      end
    end

    defp show(bits, type), do: inspect(Reference.number(bits, type))

    defp near({_, op} = name, args, host, got) do
      wide = Enum.map(host, &widen(name, &1))

      with {:ok, want} <- reference(name, args, wide) do
        {floor, scales} = scales(op, name, args, wide, want)
        unit = unit(got.type)

        rows = Enum.zip([numbers(want), scales, numbers(got)])

        case Enum.find(rows, fn {want, scale, got} -> far?(want, scale, got, unit, floor) end) do
          nil -> :ok
          row -> {:bad, "{wanted, of magnitude, got} #{inspect(row)}"}
        end
      end
    end

    # Indices stay what they are, and window_scatter's numbers are exact as they are.
    defp widen({:scatter, _}, %{type: {kind, _}} = t) when kind in [:s, :u], do: t
    defp widen({:source, _}, t), do: Nx.as_type(t, :f32)
    # BinaryBackend drops the real results of length 1.
    defp widen({:fft, _}, t), do: Nx.as_type(t, :c128)
    defp widen(_name, %{type: {:c, _}} = t), do: Nx.as_type(t, :c128)
    defp widen(_name, t), do: Nx.as_type(t, :f64)

    # What was added up: the same call of magnitudes where it is a sum of products, else all of the operands.
    defp scales(op, name, args, wide, want)
         when op in [:conv, :window_sum, :cumulative_sum, :indexed_add, :sum] do
      case reference(name, args, Enum.map(wide, &magnitude/1)) do
        {:ok, sizes} -> {0.0, Nx.to_flat_list(sizes)}
        :raises -> {0.0, List.duplicate(0.0, Nx.size(want))}
      end
    end

    # BinaryBackend makes zeros of what lies below eps.
    defp scales(op, _name, _args, [x], want) when op in [:fft, :ifft],
      do: {1.0e-9, List.duplicate(x |> magnitude() |> Nx.sum() |> Nx.to_number(), Nx.size(want))}

    defp scales(_op, _name, _args, _wide, want), do: {0.0, Enum.map(numbers(want), &size/1)}

    defp magnitude(%{type: {kind, _}} = t) when kind in [:s, :u], do: t
    defp magnitude(t), do: Nx.abs(t)

    defp numbers(t), do: for(bits <- Reference.bits(t), do: Reference.number(bits, t.type))

    defp size(%Complex{re: re, im: im}) when is_number(re) and is_number(im), do: abs(re) + abs(im)
    defp size(x) when is_number(x), do: abs(x)
    defp size(_), do: :infinity

    # {rounding of the result, rounding of what is added, least, most}
    defp unit({:f, 64}), do: {0, pow2(-48), pow2(-1000), 1.0e300}
    defp unit({:c, 128}), do: {0, pow2(-48), pow2(-1000), 1.0e300}
    defp unit({:f, 32}), do: {0, pow2(-19), pow2(-126), 1.0e38}
    defp unit({:c, 64}), do: {0, pow2(-19), pow2(-126), 1.0e38}
    defp unit({:f, 16}), do: {pow2(-11), pow2(-19), pow2(-25), 65503.0}
    defp unit({:bf, 16}), do: {pow2(-8), pow2(-19), pow2(-126), 1.0e38}

    defp pow2(n), do: :math.pow(2, n)

    defp far?(_want, scale, _got, _unit, _floor) when not is_number(scale), do: false

    defp far?(want, scale, got, {round, sum, least, most}, floor) do
      scale < most and
        (not is_number(size(got)) or
           distance(want, got) > (round * size(want) + sum * scale) * 1.01 + least + floor)
    end

    defp distance(%Complex{} = a, %Complex{} = b), do: max(abs(a.re - b.re), abs(a.im - b.im))
    defp distance(a, b), do: abs(a - b)
  end
end

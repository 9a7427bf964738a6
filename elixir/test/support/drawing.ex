if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Drawing do
    @moduledoc """
    Random shapes, layouts, values and operands, all of `:rand`'s state: what random calls are made of.

    Values below the normal range are drawn if the process says so (`Process.put(:subnormals, true)`).
    """

    alias Nx.Vulkan.Test.Reference

    @narrow_ints [:s2, :s4, :u2, :u4]
    @f8 [:f8, :f8_e4m3fn]
    @complex [:c64, :c128]
    @plain_ints [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64]
    @ints @plain_ints ++ @narrow_ints
    @floats [:f16, :bf16, :f32, :f64]

    @doc "The twelve types that Nx has by default."
    def plain, do: @plain_ints ++ @floats

    @doc "The integers, those below a byte too."
    def ints, do: @ints

    @doc "The integers below a byte."
    def narrow_ints, do: @narrow_ints

    @doc "The floats of two bytes and more."
    def floats, do: @floats

    @doc "The floats of one byte."
    def f8, do: @f8

    @doc "The complex types."
    def complex, do: @complex

    ## Operands

    @doc "An operand: views of a base that lead to `shape`, with values of a kind."
    def operand(type, shape, values \\ :any) do
      {base, views} = views(shape, between(0, 4), [])
      %{type: type, base: base, views: views, bytes: values(type, Tuple.product(base), values)}
    end

    # Walks back from the shape that is wanted: each step yields the view that leads to it.
    defp views(shape, 0, views), do: {shape, views}

    defp views(shape, n, views) do
      {from, view} = view(pick([:transpose, :reverse, :slice, :broadcast, :reshape]), shape)

      if Tuple.product(from) <= 2000,
        do: views(from, n - 1, [view | views]),
        else: views(shape, n - 1, views)
    end

    defp view(:transpose, shape) do
      permutation = Enum.shuffle(axes(shape))
      from = for axis <- axes(shape), do: elem(shape, Enum.find_index(permutation, &(&1 == axis)))
      {List.to_tuple(from), {:transpose, permutation}}
    end

    defp view(:reverse, shape), do: {shape, {:reverse, subset(axes(shape))}}

    defp view(:slice, shape) do
      {from, windows} =
        Enum.unzip(
          for n <- Tuple.to_list(shape) do
            {start, stride} = {pick([0, 0, 1, 2]), pick([1, 1, 2])}
            size = (n - 1) * stride + 1
            {start + size + pick([0, 0, 1]), {start, size, stride}}
          end
        )

      {starts, sizes, strides} =
        {Enum.map(windows, &elem(&1, 0)), Enum.map(windows, &elem(&1, 1)), Enum.map(windows, &elem(&1, 2))}

      {List.to_tuple(from), {:slice, starts, sizes, strides}}
    end

    defp view(:broadcast, shape) do
      kept = subset(axes(shape))
      from = for axis <- kept, do: if(chance(0.3), do: 1, else: elem(shape, axis))
      {List.to_tuple(from), {:broadcast, shape, kept}}
    end

    defp view(:reshape, shape), do: {refactor(shape), {:reshape, shape}}

    defp apply_view(t, {:transpose, permutation}), do: Nx.transpose(t, axes: permutation)
    defp apply_view(t, {:reverse, axes}), do: Nx.reverse(t, axes: axes)
    defp apply_view(t, {:slice, starts, sizes, strides}), do: Nx.slice(t, starts, sizes, strides: strides)
    defp apply_view(t, {:broadcast, shape, axes}), do: Nx.broadcast(t, shape, axes: axes)
    defp apply_view(t, {:reshape, shape}), do: Nx.reshape(t, shape)

    @doc """
    An operand on a backend. BinaryBackend cannot broadcast a scalar below a byte: there the views are taken
    of bytes.
    """
    def tensor(%{type: type} = operand, Nx.BinaryBackend) when type in @narrow_ints do
      {kind, size} = Nx.Type.normalize!(type)

      wide =
        for <<bits::bitstring-size(size) <- operand.bytes>>, into: <<>> do
          bytes(Reference.number(bits, {kind, size}), {kind, 8})
        end

      %{operand | type: {kind, 8}, bytes: wide} |> tensor(Nx.BinaryBackend) |> Nx.as_type(type)
    end

    def tensor(%{type: type, base: base, views: views, bytes: bytes}, backend) do
      t = bytes |> Nx.from_binary(type, backend: backend) |> Nx.reshape(base)
      Enum.reduce(views, t, &apply_view(&2, &1))
    end

    @doc "A shape of at least `least` axes and at most 400 elements."
    def shape(least \\ 0) do
      shape = List.to_tuple(for _ <- 1..between(least, 6)//1, do: extent())
      if Tuple.product(shape) <= 400, do: shape, else: shape(least)
    end

    @doc "The extent of an axis."
    def extent, do: pick([1, 1, 2, 2, 3, 3, 4, 5])

    @doc "Another shape with as many elements."
    def refactor(shape) do
      factors = shape |> Tuple.to_list() |> Enum.reject(&(&1 == 1)) |> Enum.shuffle()

      factors
      |> Enum.reduce([], fn
        n, [m | rest] -> if chance(0.4), do: [n * m | rest], else: [n, m | rest]
        n, [] -> [n]
      end)
      |> Enum.flat_map(fn n -> if chance(0.2), do: [1, n], else: [n] end)
      |> List.to_tuple()
    end

    @doc "A shape that broadcasts to this one."
    def broadcastable(shape) do
      dims = for n <- Tuple.to_list(shape), do: if(chance(0.25), do: 1, else: n)
      List.to_tuple(Enum.drop(dims, pick([0, 0, 0, 1, 2])))
    end

    ## Values

    @doc """
    The bits of `count` elements: `:any`, `:finite`, `:moderate` (sums and products stay in range), `:small`
    (multiples of a half near 0), `{:of, numbers}`.
    """
    def values(type, count, values) do
      for _ <- 1..count//1, into: <<>>, do: value(type, values)
    end

    defp value(type, {:of, list}), do: bytes(pick(list), type)

    defp value(type, values) when type in @complex do
      part = if type == :c64, do: :f32, else: :f64
      value(part, values) <> value(part, values)
    end

    # Numbers that BinaryBackend reads and writes as they are: not zeros and subnormals.
    defp value(:f8, _values), do: <<between(0, 1) * 0x80 + between(0x04, 0x7B)>>
    defp value(:f8_e4m3fn, _values), do: <<between(0, 1) * 0x80 + between(0x08, 0x7E)>>

    defp value(type, :finite) do
      case value(type, :any) do
        bits ->
          if finite?(Reference.number(bits, Nx.Type.normalize!(type))), do: bits, else: value(type, :finite)
      end
    end

    # Sums of a few dozen, and their squares, are exact in f32.
    defp value(type, :small) do
      case Nx.Type.normalize!(type) do
        {:u, _} -> bytes(between(0, 9), type)
        {:s, _} -> bytes(between(-9, 9), type)
        _float -> bytes(between(-8, 8) / 2, type)
      end
    end

    defp value(type, :moderate) when type in @ints, do: value(type, :any)

    defp value(type, :moderate),
      do: bytes(pick([0.0, 1.0, -1.0, 0.5, -2.0, (:rand.uniform() - 0.5) * 4]), type)

    defp value(type, :any) do
      {kind, size} = Nx.Type.normalize!(type)

      case pick([:hard, :plain, :plain, :bits]) do
        :hard -> bytes(pick(Reference.hard(type)), type)
        :plain when kind in [:f, :bf] -> bytes((:rand.uniform() - 0.5) * pick([1, 4, 20, 1000]), type)
        :plain -> bytes(between(if(kind == :u, do: 0, else: -20), 20), type)
        :bits -> random_bits(type, size)
      end
    end

    defp random_bits(type, size) do
      <<bits::bitstring-size(size), _::bitstring>> = :rand.bytes(div(size + 7, 8))

      if Process.get(:subnormals) or not subnormal?(bits, Nx.Type.normalize!(type)),
        do: bits,
        else: random_bits(type, size)
    end

    defp subnormal?(<<x::32-native>>, {:f, 32}), do: Bitwise.band(x, 0x7F800000) == 0
    defp subnormal?(<<x::64-native>>, {:f, 64}), do: Bitwise.band(x, 0x7FF0000000000000) == 0
    defp subnormal?(<<x::16-native>>, {:bf, 16}), do: Bitwise.band(x, 0x7F80) == 0
    defp subnormal?(<<x::16-native>>, {:f, 16}), do: Bitwise.band(x, 0x7C00) == 0
    defp subnormal?(_bits, _type), do: false

    @doc "The bits of a number in a type."
    def bytes(number, type), do: number |> Nx.tensor(type: type, backend: Nx.BinaryBackend) |> Nx.to_binary()

    defp finite?(x), do: is_number(x)

    ## Randomness

    @doc "One of a list."
    def pick(list), do: Enum.at(list, :rand.uniform(length(list)) - 1)

    @doc "True with probability `p`."
    def chance(p), do: :rand.uniform() < p

    @doc "An integer from `low` to `high`."
    def between(low, high), do: low + :rand.uniform(high - low + 1) - 1

    @doc "The axes of a shape."
    def axes(shape), do: Enum.to_list(0..(tuple_size(shape) - 1)//1)

    @doc "Some of a list."
    def subset(list), do: Enum.filter(list, fn _ -> chance(0.5) end)
  end
end

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Reference do
    @moduledoc """
    What Nx.BinaryBackend answers, element by element, and how far an answer may lie from it.

    BinaryBackend raises for some elements (`exp(1000)`, `1/0`): those are told as `:raises`, and the device may
    give what it likes. It truncates to bf16, where the device rounds to nearest even: the reference is
    rounded here.
    """

    import Bitwise

    @types [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64, :f16, :bf16, :f32, :f64]

    # Equal to BinaryBackend bit for bit, whatever the type.
    @exact [:add, :subtract, :multiply, :divide, :min, :max, :quotient, :remainder, :sqrt] ++
             [:bitwise_and, :bitwise_or, :bitwise_xor, :bitwise_not, :left_shift, :right_shift] ++
             [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
             [:logical_and, :logical_or, :logical_xor, :abs, :negate, :sign, :ceil, :floor, :round] ++
             [:count_leading_zeros, :population_count, :is_nan, :is_infinity]

    @doc "The types of device tensors."
    def types, do: @types

    @doc "Values of a type where implementations go wrong."
    def hard(type) do
      case Nx.Type.normalize!(type) do
        {:u, size} ->
          [0, 1, 2, 3, 7, 10, 100, (1 <<< size) - 1, (1 <<< size) - 2, 1 <<< (size - 1)]

        {:s, size} ->
          [0, 1, 2, 3, 7, 100, -1, -2, -3, -100, (1 <<< (size - 1)) - 1, -(1 <<< (size - 1))]

        _float ->
          [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, -7.75, 0.1, -0.9, 100.0] ++
            [0.001, 6.0e4, :infinity, :neg_infinity, :nan]
      end
    end

    @doc """
    Right operands for `op`. BinaryBackend shifts and raises integers of any size before it wraps, so small amounts
    only; below zero it raises.
    """
    def amounts(op, _type) when op in [:left_shift, :right_shift], do: [0, 1, 3, 7, 8, 31, 63, 64, 100]

    def amounts(:pow, type) do
      if Nx.Type.integer?(Nx.Type.normalize!(type)), do: [0, 1, 2, 3, 7, 10, 33], else: hard(type)
    end

    def amounts(_op, type), do: hard(type)

    @doc "A tensor on BinaryBackend."
    def tensor(values, type, shape) do
      values
      |> Nx.tensor(type: type, backend: Nx.BinaryBackend)
      |> Nx.reshape(shape)
    end

    @doc """
    Where BinaryBackend's own formula is at fault, and the device has the IEEE (or the nearer) result: one function
    of the operands' numbers for each such operation.
    """
    def excepted?(:tanh, [x]), do: x in [:infinity, :neg_infinity]
    def excepted?(:sign, [x]), do: x in [:nan, :infinity, :neg_infinity]
    # -0.0 stays -0.0 there.
    def excepted?(:abs, [x]), do: x == 0
    # exp(x) - 1 and log(x + 1), as they stand, cancel.
    def excepted?(op, [x]) when op in [:expm1, :log1p] and is_number(x), do: abs(x) < 1
    # The sign of y is lost.
    def excepted?(:atan2, [_, x]), do: x == :neg_infinity
    # pow(x, 1/3) loses what 1/3 is off by, times log2(x).
    def excepted?(:cbrt, [x]) when is_number(x), do: x != 0 and abs(:math.log(abs(x))) > 1
    def excepted?(_op, _operands), do: false

    @doc "How many units in the last place an operation may differ."
    def ulps(op, _type) when op in @exact, do: 0
    def ulps(_op, {:f, 64}), do: 2
    def ulps(_op, _type), do: 1

    @doc """
    The elements of `op` over operands (lists of elements' bits with their types) with a result of type `out`.
    """
    def elements(op, out, operands) do
      {columns, types} = Enum.unzip(operands)

      for bits <- Enum.zip_with(columns, & &1) do
        scalars =
          Enum.zip_with(bits, types, fn bits, type ->
            Nx.BinaryBackend.from_binary(template(type), bits, [])
          end)

        try do
          apply(Nx.BinaryBackend, op, [template(wide(out)) | scalars])
          |> Nx.BinaryBackend.to_binary(1)
          |> narrow(out)
        rescue
          _ in [ArithmeticError, ArgumentError, FunctionClauseError, MatchError, CaseClauseError] -> :raises
        end
      end
    end

    defp template(type), do: %Nx.Tensor{type: type, shape: {}, names: []}

    defp wide({:bf, 16}), do: {:f, 64}
    defp wide(type), do: type

    defp narrow(<<x::64-native>>, {:bf, 16}), do: bf16(x)
    defp narrow(bits, _type), do: bits

    # An f64, given by its bits, to bf16 by nearest even.
    defp bf16(x) do
      sign = x >>> 63
      exponent = x >>> 52 &&& 0x7FF
      fraction = x &&& 0xFFFFFFFFFFFFF

      bits =
        cond do
          exponent == 0x7FF and fraction != 0 -> 0x7FC0
          exponent == 0x7FF -> 0x7F80
          exponent - 1023 > 127 -> 0x7F80
          # 7 bits of fraction from 52; what carries over goes into the exponent, as it should.
          exponent - 1023 >= -126 -> round_shift((exponent - 1023 + 127) <<< 52 ||| fraction, 45)
          exponent == 0 -> 0
          # A subnormal: the leading one moves right until the exponent is -126.
          true -> round_shift(1 <<< 52 ||| fraction, min(45 + (-126 - (exponent - 1023)), 120))
        end

      <<sign <<< 15 ||| bits::16-native>>
    end

    defp round_shift(x, n) do
      kept = x >>> n
      rest = x &&& (1 <<< n) - 1
      half = 1 <<< (n - 1)
      if rest > half or (rest == half and (kept &&& 1) == 1), do: kept + 1, else: kept
    end

    @doc """
    The elements' bits of a tensor, in order.
    """
    def bits(tensor) do
      {_, size} = tensor.type
      for <<x::bitstring-size(size) <- Nx.to_binary(tensor)>>, do: x
    end

    @doc """
    Whether two elements agree within `ulps` units in the last place. Any NaN is any NaN.
    """
    def close?(:raises, _got, _type, _ulps), do: true
    def close?(same, same, _type, _ulps), do: true
    def close?(_, _, {kind, _}, _ulps) when kind in [:s, :u], do: false

    def close?(want, got, {:c, size}, ulps) do
      half = div(size, 16)
      <<re::binary-size(half), im::binary>> = want
      <<got_re::binary-size(half), got_im::binary>> = got
      part = {:f, div(size, 2)}
      close?(re, got_re, part, ulps) and close?(im, got_im, part, ulps)
    end

    def close?(want, got, type, ulps) do
      case {nan?(want, type), nan?(got, type)} do
        {true, true} -> true
        {false, false} -> abs(ordinal(want) - ordinal(got)) <= ulps
        _ -> false
      end
    end

    defp nan?(<<x>>, {:f8_e4m3fn, 8}), do: (x &&& 0x7F) == 0x7F

    defp nan?(bits, type) do
      {exponent, fraction} =
        case type do
          {:f, 8} -> {0x7C, 0x3}
          {:f, 16} -> {0x7C00, 0x3FF}
          {:bf, 16} -> {0x7F80, 0x7F}
          {:f, 32} -> {0x7F800000, 0x7FFFFF}
          {:f, 64} -> {0x7FF0000000000000, 0xFFFFFFFFFFFFF}
        end

      x = :binary.decode_unsigned(bits, :little)
      (x &&& exponent) == exponent and (x &&& fraction) != 0
    end

    # Floats in order as integers; -0.0 is one below 0.0, so that exact comparisons tell them apart.
    defp ordinal(bits) do
      size = bit_size(bits)
      x = :binary.decode_unsigned(bits, :little)
      if x >>> (size - 1) == 1, do: -(x &&& (1 <<< (size - 1)) - 1) - 1, else: x
    end

    @doc """
    The elements where the device disagrees: `[{operands, wanted, got}]`.
    """
    def disagreements(op, result, operands) do
      want = elements(op, result.type, operands)
      got = bits(result)
      ulps = ulps(op, result.type)
      {columns, types} = Enum.unzip(operands)
      rows = Enum.zip_with(columns, & &1)

      for {row, want, got} <- Enum.zip([rows, want, got]),
          not close?(want, got, result.type, ulps),
          operands = Enum.zip_with(row, types, &number/2),
          not excepted?(op, operands) do
        {operands, number(want, result.type), number(got, result.type)}
      end
    end

    @doc "An element as a number."
    def number(bits, type) do
      type |> template() |> Nx.BinaryBackend.from_binary(bits, []) |> Nx.to_number()
    end
  end
end

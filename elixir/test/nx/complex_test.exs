defmodule Nx.Vulkan.ComplexTest do
  @moduledoc false
  # Complex tensors against Nx.BinaryBackend: functions on ordinary numbers and on those that formulas treat apart,
  # everything that moves elements, and what sums and multiplies.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Backend, Fallback}

  @types [:c64, :c128]
  @special [0.0, -0.0, 1.0, -2.0, 0.5, :infinity, :neg_infinity, :nan]

  @unary [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :cosh, :sinh, :tanh, :acos, :asin, :atan] ++
           [:acosh, :asinh, :atanh, :sqrt, :rsqrt, :cbrt, :abs, :negate, :conjugate, :real, :imag, :phase] ++
           [:is_nan, :is_infinity, :logical_not, :sign]

  @binary [
    :add,
    :subtract,
    :multiply,
    :divide,
    :pow,
    :equal,
    :not_equal,
    :logical_and,
    :logical_or,
    :logical_xor
  ]

  setup do
    Nx.default_backend(Nx.BinaryBackend)
    :ok
  end

  defp device(t), do: Nx.backend_copy(t, Backend)
  defp host(t), do: Nx.backend_copy(t, Nx.BinaryBackend)

  # A tensor of BinaryBackend, of parts that the process's generator draws.
  defp draw(type, shape) do
    part = Nx.Type.to_real(Nx.Type.normalize!(type))
    count = Tuple.product(shape) * if(type in @types, do: 2, else: 1)
    numbers = for _ <- 1..count//1, do: :rand.normal() * 2
    bits = numbers |> Nx.tensor(type: part) |> Nx.to_binary()
    bits |> Nx.from_binary(type) |> Nx.reshape(shape)
  end

  defp seed(n), do: :rand.seed(:exsss, {n, 7, 7})

  defp number(re, im, type), do: Nx.tensor(Complex.new(re, im), type: type)

  defp elements(t), do: t |> host() |> Nx.to_flat_list()

  defp parts(%Complex{re: re, im: im}), do: [re, im]
  defp parts(x), do: [x]

  # Whether two numbers are one but for rounding, relative to the larger part or to 1. Zeros have no sign here.
  defp close?(a, b, type) do
    parts = Enum.zip(parts(a), parts(b))
    size = Enum.reduce(parts(b), 1.0, fn x, most -> if is_number(x), do: max(abs(x), most), else: most end)
    {_, bits} = Nx.Type.normalize!(type)
    eps = if bits == 128, do: 1.0e-12, else: 5.0e-7

    length(parts(a)) == length(parts(b)) and
      Enum.all?(parts, fn
        {x, y} when is_number(x) and is_number(y) -> abs(x - y) <= eps * size
        {x, y} -> x == y
      end)
  end

  defp agree(want, got, type, what) do
    assert {Nx.type(got), Nx.shape(got)} == {Nx.type(want), Nx.shape(want)}

    bad =
      Enum.zip(elements(want), elements(got))
      |> Enum.with_index()
      |> Enum.reject(fn {{a, b}, _} -> close?(b, a, type) end)

    assert bad == [], "#{inspect(what)} of #{type}: {{wanted, got}, index}: #{inspect(Enum.take(bad, 5))}"
  end

  # The same call on both backends, whose operands are tensors of BinaryBackend.
  defp both(operands, type, what, fun) do
    want = apply(fun, operands)
    got = Fallback.strict(fn -> apply(fun, Enum.map(operands, &device/1)) end)
    agree(want, got, type, what)
  end

  for type <- @types do
    @type_ type

    test "functions of #{type}" do
      seed(1)
      x = draw(@type_, {3, 41})
      for op <- @unary, do: both([x], @type_, op, &apply(Nx, op, [&1]))
    end

    test "functions of two numbers of #{type}, or of one and a real number" do
      seed(2)
      {x, y, r} = {draw(@type_, {4, 31}), draw(@type_, {31}), draw(:f32, {4, 1})}

      for op <- @binary, operands <- [[x, y], [x, r], [r, x], [y, x], [x, x]] do
        both(operands, @type_, op, &apply(Nx, op, [&1, &2]))
      end
    end

    test "functions of #{type} where a part is 0 or not finite" do
      numbers = for re <- @special, im <- @special, do: number(re, im, @type_)
      whole = device(Nx.stack(numbers))

      # The angle of -Inf-1i is -π, as in C99, where BinaryBackend says π: Nx.phase/1 is Nx.atan2/2.
      for op <- @unary -- [:phase], do: special(op, numbers, apply(Nx, op, [whole]), &apply(Nx, op, [&1]))

      for op <- @binary,
          {re, im} <- [{0.0, 0.0}, {1.0, 0.0}, {-1.0, 0.0}, {:infinity, 0.0}, {2.0, :nan}, {0.5, -1.0}] do
        y = number(re, im, @type_)
        special({op, re, im}, numbers, apply(Nx, op, [whole, device(y)]), &apply(Nx, op, [&1, y]))
      end
    end

    test "conversions of #{type}" do
      seed(3)
      x = draw(@type_, {5, 4})

      for to <- [:u8, :s16, :s32, :s64, :f16, :f32, :f64, :c64, :c128] do
        both([Nx.multiply(x, 3)], @type_, {:as_type, to}, &Nx.as_type(&1, to))
      end

      for from <- [:u8, :s8, :s32, :u64, :f16, :bf16, :f32, :f64] do
        real = Nx.as_type(draw(:f32, {7}), from)
        both([real], @type_, {:as_type, from}, &Nx.as_type(&1, @type_))
        both([real, draw(:f32, {7})], @type_, :complex, &Nx.complex/2)
      end
    end

    test "elements of #{type} are moved" do
      seed(4)
      {x, y} = {draw(@type_, {3, 4, 2}), draw(@type_, {3, 4, 2})}
      index = Nx.tensor([[0, 1], [2, 3], [0, 1]])
      start = Nx.tensor(1)

      for {name, fun} <- [
            transpose: &Nx.transpose/1,
            reverse: &Nx.reverse(&1, axes: [0, 2]),
            reshape: &Nx.reshape(Nx.transpose(&1), {4, 6}),
            broadcast: &Nx.broadcast(&1[0], {2, 4, 2}),
            pad: &Nx.pad(&1, Complex.new(1, -2), [{1, 0, 1}, {-1, 2, 0}, {0, 0, 0}]),
            pad_zero: &Nx.pad(&1, 0, [{1, 0, 1}, {-1, 2, 0}, {0, 1, 0}]),
            slice: &Nx.slice(&1, [start, 0, start], [2, 3, 1], strides: [1, 2, 1]),
            put_slice: &Nx.put_slice(&1, [0, start, 0], Nx.multiply(&1[[0..1, 0..1]], 2)),
            concatenate: &Nx.concatenate([&1, &1, Nx.real(&1)], axis: 1),
            stack: &Nx.stack([&1, Nx.conjugate(&1)], axis: 2),
            gather: &Nx.gather(&1, index),
            take: &Nx.take(&1, Nx.tensor([2, 0, 2]), axis: 0),
            take_along_axis: &Nx.take_along_axis(&1, Nx.argsort(Nx.real(&1), axis: 1), axis: 1),
            indexed_add:
              &Nx.indexed_add(
                &1,
                index,
                Nx.real(&1)[0..2//1] |> Nx.slice([0, 0, 0], [3, 1, 2]) |> Nx.squeeze()
              ),
            indexed_put: &Nx.indexed_put(&1, index[0..1], Nx.slice(&1, [0, 1, 0], [2, 1, 2]) |> Nx.squeeze()),
            select: &Nx.select(Nx.greater(Nx.real(&1), 0), &1, Nx.conjugate(&1)),
            diagonal: &Nx.take_diagonal(&1[0][0..1])
          ] do
        both([x], @type_, name, fun)
      end

      both([x, y], @type_, :concatenate, &Nx.concatenate([&1, &2], axis: -1))
      for n <- [0, 1, 5], do: both([], @type_, :iota, fn -> Nx.iota({n + 1, 2}, type: @type_, axis: 0) end)
      both([], @type_, :eye, fn -> Nx.eye({2, 3, 4}, type: @type_) end)
    end

    test "sums and products of #{type}" do
      seed(5)
      x = draw(@type_, {5, 3, 7})

      for opts <- [[], [axes: [1]], [axes: [0, 2], keep_axes: true], [axes: [2]]] do
        both([x], @type_, {:sum, opts}, &Nx.sum(&1, opts))
        both([x], @type_, {:product, opts}, &Nx.product(&1, opts))

        # BinaryBackend takes the complex zero for true, against what Nx says of these.
        for least <- [0, 3], op <- [:all, :any] do
          y = Nx.multiply(x, Nx.greater(Nx.real(x), least))
          got = Fallback.strict(fn -> apply(Nx, op, [device(y), opts]) end)
          agree(apply(Nx, op, [Nx.not_equal(y, 0), opts]), got, @type_, {op, opts})
        end
      end

      for opts <- [[axis: 0], [axis: 2, reverse: true]] do
        both([x], @type_, {:cumulative_sum, opts}, &Nx.cumulative_sum(&1, opts))
        both([x], @type_, {:cumulative_product, opts}, &Nx.cumulative_product(&1, opts))
      end

      window = [strides: [2, 1, 1], padding: [{1, 0}, {0, 1}, {0, 0}], window_dilations: [1, 1, 2]]
      both([x], @type_, :window_sum, &Nx.window_sum(&1, {2, 2, 3}, window))
      both([x], @type_, :window_product, &Nx.window_product(&1, {2, 2, 3}, window))
      both([x, draw(@type_, {5, 3, 7})], @type_, :all_close, &Nx.all_close/2)
    end

    test "contractions, convolutions and transforms of #{type}" do
      seed(6)
      {a, b, r} = {draw(@type_, {3, 5, 4}), draw(@type_, {3, 4, 2}), draw(:f32, {3, 4, 6})}

      for {x, y} <- [{a, b}, {a, r}] do
        both([x, y], @type_, :dot, &Nx.dot(&1, [2], [0], &2, [1], [0]))
        both([y, x], @type_, :dot, &Nx.dot(&1, [1], [0], &2, [2], [0]))
      end

      both([a[0], b[0]], @type_, :dot, &Nx.dot/2)
      both([a[0][0], a[1][0]], @type_, :dot, &Nx.dot/2)

      image = draw(@type_, {2, 4, 5, 3})
      filter = draw(@type_, {4, 2, 2, 2})

      for opts <- [
            [feature_group_size: 2, strides: [2, 1], padding: :same],
            [batch_group_size: 2, input_dilation: 2]
          ] do
        image = if opts[:batch_group_size], do: image[[.., 0..1]], else: image
        both([image, filter], @type_, :conv, &Nx.conv(&1, &2, opts))
      end

      for length <- [1, 5, 8] do
        both([a], @type_, :fft, &Nx.fft(&1, length: length, axis: 1))
        both([a], @type_, :ifft, &Nx.ifft(&1, length: length))
      end
    end
  end

  # BinaryBackend raises for some numbers, so each is asked for by itself; then the device may answer as it likes.
  defp special(what, numbers, got, fun) do
    type = Nx.type(hd(numbers))

    bad =
      for {x, y} <- Enum.zip(numbers, elements(got)),
          want = wanted(fun, x),
          want != :raises,
          not close?(y, want, type),
          do: {Nx.to_number(x), want, y}

    assert bad == [],
           "#{inspect(what)} of #{inspect(type)}: {operand, wanted, got}: #{inspect(Enum.take(bad, 5))}"
  end

  defp wanted(fun, x) do
    Nx.to_number(fun.(x))
  rescue
    _ in [ArithmeticError, ArgumentError, FunctionClauseError, CaseClauseError] -> :raises
  end

  test "numbers are read, shown and taken as they are" do
    z = Complex.new(2, -3)
    t = Nx.tensor([z, 1, Complex.new(:nan, :neg_infinity)], backend: Backend)
    assert Nx.type(t) == {:c, 64}
    assert Nx.to_flat_list(t) == [Complex.new(2, -3), Complex.new(1), Complex.new(:nan, :neg_infinity)]
    assert inspect(t) =~ "[2.0-3.0i, 1.0+0.0i, NaN-Infi]"
    assert Nx.to_number(t[0]) == z
    assert Nx.to_binary(t) == Nx.to_binary(host(t))

    wide = Nx.tensor([1, 2], type: :c128, backend: Backend)
    sum = Nx.add(wide, Nx.tensor(Complex.new(0.1, 0.2), type: :c128, backend: Backend))
    assert Nx.to_flat_list(sum) == [Complex.new(1.1, 0.2), Complex.new(2.1, 0.2)]
  end
end

defmodule Nx.Vulkan.GradOpsTest do
  # For every operation that Nx can differentiate: its gradient at random points is BinaryBackend's, and
  # nothing on the way leaves the device.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.Test.Gradients

  # The loss is a fixed combination of what the operation yields, so that no two elements weigh the same.
  defp weigh(%Nx.Tensor{} = y) do
    weights = y.shape |> Nx.iota(type: Nx.Type.to_real(y.type)) |> Nx.multiply(1.7) |> Nx.add(0.3) |> Nx.cos()

    if Nx.Type.complex?(y.type),
      do: weigh(Nx.real(y), weights) |> Nx.add(weigh(Nx.imag(y), Nx.sin(weights))),
      else: weigh(y, weights)
  end

  defp weigh(y) when is_tuple(y), do: y |> Tuple.to_list() |> Enum.map(&weigh/1) |> Enum.reduce(&Nx.add/2)
  defp weigh(y, weights), do: y |> Nx.multiply(weights) |> Nx.sum()

  @unit {-0.9, 0.9}
  @wide {-3.0, 3.0}
  @positive {0.2, 3.0}

  # {name, function of the list of inputs, [{shape, domain}]}
  unary = [
    exp: @wide,
    expm1: @wide,
    log: @positive,
    log1p: {-0.8, 3.0},
    sigmoid: @wide,
    cos: @wide,
    sin: @wide,
    tan: {-1.2, 1.2},
    cosh: @wide,
    sinh: @wide,
    tanh: @wide,
    acos: @unit,
    asin: @unit,
    atan: @wide,
    acosh: {1.2, 4.0},
    asinh: @wide,
    atanh: @unit,
    sqrt: @positive,
    rsqrt: @positive,
    cbrt: @positive,
    erf: @wide,
    erfc: {-2.0, 2.0},
    erf_inv: @unit,
    abs: @wide,
    negate: @wide,
    ceil: @wide,
    floor: @wide,
    round: @wide,
    sign: @wide,
    conjugate: @wide,
    real: @wide,
    imag: @wide
  ]

  binary = [
    add: {@wide, @wide},
    subtract: {@wide, @wide},
    multiply: {@wide, @wide},
    divide: {@wide, @positive},
    pow: {@positive, @wide},
    remainder: {@positive, @positive},
    atan2: {@wide, @positive},
    min: {@wide, @wide},
    max: {@wide, @wide}
  ]

  for {op, domain} <- unary, type <- [:f32, :f64] do
    test "#{op} of #{type}" do
      check(unquote(op), [{{3, 4}, unquote(Macro.escape(domain))}], unquote(type), fn [x] ->
        apply(Nx, unquote(op), [x])
      end)
    end
  end

  for {op, {left, right}} <- binary, type <- [:f32, :f64] do
    test "#{op} of #{type}, broadcast both ways" do
      inputs = [{{3, 1, 4}, unquote(Macro.escape(left))}, {{2, 4}, unquote(Macro.escape(right))}]
      check(unquote(op), inputs, unquote(type), fn [x, y] -> apply(Nx, unquote(op), [x, y]) end)
    end
  end

  # Inputs are of @wide unless they say otherwise.
  others = [
    {"select", [{2, 3}, {2, 3}],
     quote(do: fn [x, y] -> Nx.select(Nx.greater(x, y), Nx.multiply(x, 2), y) end)},
    {"broadcast", [{3, 1}], quote(do: fn [x] -> Nx.broadcast(x, {2, 3, 4}) end)},
    {"clip", [{4, 5}], quote(do: fn [x] -> Nx.clip(x, -1.0, 1.5) end)},
    {"squeeze, reshape, transpose", [{2, 1, 6}],
     quote(do: fn [x] -> x |> Nx.squeeze(axes: [1]) |> Nx.reshape({3, 4}) |> Nx.transpose() end)},
    {"pad", [{3, 4}, {}], quote(do: fn [x, v] -> Nx.pad(x, v, [{1, 2, 1}, {-1, 2, 0}]) end)},
    {"slice", [{5, 6}], quote(do: fn [x] -> Nx.slice(x, [1, 2], [4, 3], strides: [2, 1]) end)},
    {"slice at a computed start", [{5, 6}],
     quote(do: fn [x] -> Nx.slice(x, [Nx.as_type(Nx.argmax(Nx.sum(x, axes: [1])), :s64), 1], [2, 4]) end)},
    {"put_slice", [{5, 6}, {2, 3}], quote(do: fn [x, u] -> Nx.put_slice(x, [1, 2], u) end)},
    {"indexed_add", [{4, 3}, {3, 3}],
     quote(do: fn [x, u] -> Nx.indexed_add(x, Nx.tensor([[0], [2], [0]]), u, axes: [0]) end)},
    {"indexed_put", [{4, 3}, {3}],
     quote(do: fn [x, u] -> Nx.indexed_put(x, Nx.tensor([[0, 1], [2, 2], [3, 0]]), u) end)},
    {"gather", [{4, 3}], quote(do: fn [x] -> Nx.gather(x, Nx.tensor([[0, 1], [3, 2], [0, 1]])) end)},
    {"gather of slices", [{4, 3, 2}],
     quote(do: fn [x] -> Nx.gather(x, Nx.tensor([[1], [0], [1]]), axes: [1]) end)},
    {"take", [{4, 3}], quote(do: fn [x] -> Nx.take(x, Nx.tensor([[2, 0], [2, 1]]), axis: 1) end)},
    {"take_along_axis", [{4, 3}],
     quote(do: fn [x] -> Nx.take_along_axis(x, Nx.argsort(x, axis: 0), axis: 0) end)},
    {"reverse", [{2, 3, 2}], quote(do: fn [x] -> Nx.reverse(x, axes: [0, 2]) end)},
    {"sum", [{2, 3, 4}], quote(do: fn [x] -> Nx.sum(x, axes: [0, 2]) end)},
    {"mean, variance", [{2, 3, 4}], quote(do: fn [x] -> {Nx.mean(x, axes: [1]), Nx.variance(x)} end)},
    {"product", [{2, 3, 4}], quote(do: fn [x] -> Nx.product(x, axes: [1]) end)},
    {"reduce_max, reduce_min", [{3, 4, 2}],
     quote(do: fn [x] -> {Nx.reduce_max(x, axes: [1]), Nx.reduce_min(x, axes: [0, 2])} end)},
    {"logsumexp", [{3, 4}], quote(do: fn [x] -> Nx.logsumexp(x, axes: [1]) end)},
    {"dot", [{3, 4}, {4, 2}], quote(do: fn [x, y] -> Nx.dot(x, y) end)},
    {"dot of batches", [{2, 3, 4}, {2, 4, 5}], quote(do: fn [x, y] -> Nx.dot(x, [2], [0], y, [1], [0]) end)},
    {"dot over two axes", [{2, 3, 4}, {4, 2, 5}], quote(do: fn [x, y] -> Nx.dot(x, [0, 2], y, [1, 0]) end)},
    {"conv", [{2, 3, 7, 6}, {4, 3, 3, 2}],
     quote(do: fn [x, k] -> Nx.conv(x, k, strides: [2, 1], padding: [{1, 0}, {1, 1}]) end)},
    {"conv, dilated", [{1, 2, 6, 7}, {3, 2, 2, 3}],
     quote(
       do: fn [x, k] -> Nx.conv(x, k, kernel_dilation: [2, 1], input_dilation: [1, 2], padding: :same) end
     )},
    {"conv in feature groups", [{2, 4, 5, 5}, {6, 2, 3, 3}],
     quote(do: fn [x, k] -> Nx.conv(x, k, feature_group_size: 2, padding: :same) end)},
    {"conv in batch groups", [{4, 2, 5, 5}, {6, 2, 3, 3}],
     quote(do: fn [x, k] -> Nx.conv(x, k, batch_group_size: 2) end)},
    {"conv, channels last", [{2, 6, 6, 3}, {3, 3, 3, 4}],
     quote(
       do: fn [x, k] ->
         Nx.conv(x, k,
           input_permutation: [0, 3, 1, 2],
           kernel_permutation: [3, 2, 0, 1],
           output_permutation: [0, 3, 1, 2],
           strides: [2, 2]
         )
       end
     )},
    {"window_sum", [{4, 6}],
     quote(
       do: fn [x] ->
         Nx.window_sum(x, {2, 3}, strides: [2, 1], padding: [{1, 0}, {1, 1}], window_dilations: [1, 2])
       end
     )},
    {"window_mean", [{4, 6}], quote(do: fn [x] -> Nx.window_mean(x, {2, 2}, strides: [2, 2]) end)},
    {"window_max", [{2, 6, 6, 1}],
     quote(do: fn [x] -> Nx.window_max(x, {1, 2, 2, 1}, strides: [1, 2, 2, 1]) end)},
    {"window_min, overlapping", [{5, 6}], quote(do: fn [x] -> Nx.window_min(x, {3, 2}, padding: :same) end)},
    {"stack, concatenate", [{2, 3}, {2, 3}],
     quote(do: fn [x, y] -> {Nx.stack([x, y, x], axis: 1), Nx.concatenate([y, x], axis: 1)} end)},
    {"sort", [{3, 5}], quote(do: fn [x] -> {Nx.sort(x, axis: 1), Nx.sort(x, axis: 0, direction: :desc)} end)},
    {"median", [{3, 5}], quote(do: fn [x] -> Nx.median(x, axis: 1) end)},
    {"top_k", [{3, 6}], quote(do: fn [x] -> elem(Nx.top_k(x, k: 2), 0) end)},
    {"cumulative_sum, reversed too", [{3, 5}],
     quote(do: fn [x] -> {Nx.cumulative_sum(x, axis: 1), Nx.cumulative_sum(x, axis: 0, reverse: true)} end)},
    {"cumulative_product", [{3, 5}], quote(do: fn [x] -> Nx.cumulative_product(x, axis: 1) end)},
    {"cumulative_max, cumulative_min", [{3, 5}],
     quote(do: fn [x] -> {Nx.cumulative_max(x, axis: 1), Nx.cumulative_min(x, axis: 0)} end)},
    {"as_type", [{3, 4}], quote(do: fn [x] -> Nx.as_type(x, :f64) |> Nx.multiply(3) |> Nx.as_type(:f32) end)},
    {"complex arithmetic", [{3, 4}, {3, 4}],
     quote(
       do: fn [x, y] ->
         z = Nx.complex(x, y)
         Nx.multiply(Nx.exp(z), Nx.conjugate(z))
       end
     )},
    {"abs of complex numbers", [{3, 4}, {3, 4}], quote(do: fn [x, y] -> Nx.abs(Nx.complex(x, y)) end)},
    {"fft", [{2, 8}], quote(do: fn [x] -> Nx.fft(x) end)},
    {"ifft of another length", [{2, 6}], quote(do: fn [x] -> Nx.ifft(x, length: 9) end)},
    {"fft along the first axis", [{5, 3}], quote(do: fn [x] -> Nx.fft(x, axis: 0) end)},
    {"triangular_solve", [{3, 3}, {3, 2}],
     quote(do: fn [a, b] -> Nx.LinAlg.triangular_solve(Nx.add(a, Nx.multiply(Nx.eye(3), 5)), b) end)},
    {"triangular_solve, transposed", [{3, 3}, {3, 2}],
     quote(
       do: fn [a, b] ->
         Nx.LinAlg.triangular_solve(Nx.add(a, Nx.multiply(Nx.eye(3), 5)), b,
           lower: false,
           transform_a: :transpose
         )
       end
     )},
    {"solve", [{3, 3}, {3}],
     quote(do: fn [a, b] -> Nx.LinAlg.solve(Nx.add(a, Nx.multiply(Nx.eye(3), 8)), b) end)},
    {"invert", [{3, 3}], quote(do: fn [a] -> Nx.LinAlg.invert(Nx.add(a, Nx.multiply(Nx.eye(3), 8))) end)},
    {"determinant", [{3, 3}], quote(do: fn [a] -> Nx.LinAlg.determinant(a) end)},
    {"determinant of 4 by 4", [{4, 4}], quote(do: fn [a] -> Nx.LinAlg.determinant(a) end)},
    {"cholesky", [{3, 3}],
     quote(
       do: fn [a] -> Nx.LinAlg.cholesky(Nx.add(Nx.dot(a, Nx.transpose(a)), Nx.multiply(Nx.eye(3), 4))) end
     )},
    {"qr", [{4, 3}], quote(do: fn [a] -> Nx.LinAlg.qr(Nx.add(a, Nx.multiply(Nx.eye({4, 3}), 5))) end)},
    {"lu", [{3, 3}],
     quote(
       do: fn [a] ->
         {_p, l, u} = Nx.LinAlg.lu(Nx.add(a, Nx.multiply(Nx.eye(3), 8)))
         {l, u}
       end
     )},
    {"norm", [{3, 4}], quote(do: fn [x] -> {Nx.LinAlg.norm(x), Nx.LinAlg.norm(x, ord: 1)} end)},
    {"matrix_power", [{3, 3}], quote(do: fn [a] -> Nx.LinAlg.matrix_power(a, 3) end)}
  ]

  for {name, shapes, function} <- others, type <- [:f32, :f64] do
    test "#{name} of #{type}" do
      inputs = for shape <- unquote(Macro.escape(shapes)), do: {shape, @wide}
      check(unquote(name), inputs, unquote(type), unquote(function))
    end
  end

  defp check(name, inputs, type, fun) do
    params =
      for {{shape, domain}, seed} <- Enum.with_index(inputs),
          do: Gradients.draw(shape, domain, type, seed + 1)

    loss = fn params -> params |> Tuple.to_list() |> fun.() |> weigh() end
    # BinaryBackend scatters the gradient of an extreme with numbers, which it adds in f32 whatever the type.
    scattered = String.starts_with?("#{name}", ["window_max", "window_min"])
    tolerance = if type == :f32 or scattered, do: 3.0e-5, else: 1.0e-12
    Gradients.check(loss, List.to_tuple(params), tolerance, "#{name} of #{type}")
  end
end

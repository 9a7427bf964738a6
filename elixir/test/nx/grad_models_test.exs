defmodule Nx.Vulkan.GradModelsTest do
  # Whole backward passes of the networks that people train: loss and every parameter's gradient are
  # BinaryBackend's, and nothing leaves the device on the way.
  use ExUnit.Case, async: true

  import Nx.Defn
  alias Nx.Vulkan.Test.Gradients

  defp draw(shapes, type, scale \\ 0.5) do
    for({shape, seed} <- Enum.with_index(shapes), do: Gradients.draw(shape, {-scale, scale}, type, seed + 11))
    |> List.to_tuple()
  end

  defnp cross_entropy(logits, classes) do
    shifted = logits - Nx.reduce_max(logits, axes: [1], keep_axes: true)
    log_sum = shifted |> Nx.exp() |> Nx.sum(axes: [1], keep_axes: true) |> Nx.log()
    truth = Nx.equal(Nx.new_axis(classes, 1), Nx.iota({1, Nx.axis_size(logits, 1)}))
    -Nx.mean(Nx.sum((shifted - log_sum) * truth, axes: [1]))
  end

  defnp(classes(n, k), do: Nx.remainder(Nx.iota({n}) * 7 + 3, k))

  ## A multilayer perceptron

  defn mlp({x, w1, b1, w2, b2, w3, b3}) do
    x
    |> Nx.dot(w1)
    |> Nx.add(b1)
    |> Nx.max(0)
    |> Nx.dot(w2)
    |> Nx.add(b2)
    |> Nx.tanh()
    |> Nx.dot(w3)
    |> Nx.add(b3)
    |> cross_entropy(Nx.remainder(Nx.iota({8}) * 7 + 3, 5))
  end

  test "a multilayer perceptron" do
    shapes = [{8, 12}, {12, 16}, {16}, {16, 10}, {10}, {10, 5}, {5}]
    Gradients.check(&mlp/1, draw(shapes, :f32), 3.0e-5, "mlp")
  end

  ## A convolutional network with strides and channels last

  defn strided_cnn({x, k1, b1, k2, b2, w, b}) do
    x
    |> Nx.conv(k1,
      strides: [2, 2],
      padding: :same,
      input_permutation: [0, 3, 1, 2],
      kernel_permutation: [3, 2, 0, 1],
      output_permutation: [0, 3, 1, 2]
    )
    |> Nx.add(b1)
    |> Nx.max(0)
    |> Nx.conv(k2,
      strides: [2, 1],
      padding: [{1, 1}, {0, 1}],
      kernel_dilation: [1, 2],
      input_permutation: [0, 3, 1, 2],
      kernel_permutation: [3, 2, 0, 1],
      output_permutation: [0, 3, 1, 2]
    )
    |> Nx.add(b2)
    |> Nx.sigmoid()
    |> Nx.window_mean({1, 2, 2, 1}, strides: [1, 1, 1, 1])
    |> Nx.reshape({3, :auto})
    |> Nx.dot(w)
    |> Nx.add(b)
    |> cross_entropy(classes(3, 4))
  end

  test "a strided convolutional network" do
    shapes = [{3, 10, 10, 3}, {3, 3, 3, 4}, {4}, {3, 2, 4, 6}, {6}, {36, 4}, {4}]
    Gradients.check(&strided_cnn/1, draw(shapes, :f32), 3.0e-5, "strided cnn")
  end

  ## LeNet with max pooling

  defn lenet({x, k1, b1, k2, b2, w1, c1, w2, c2}) do
    x
    |> Nx.conv(k1, padding: :same)
    |> Nx.add(Nx.reshape(b1, {1, 4, 1, 1}))
    |> Nx.max(0)
    |> Nx.window_max({1, 1, 2, 2}, strides: [1, 1, 2, 2])
    |> Nx.conv(k2)
    |> Nx.add(Nx.reshape(b2, {1, 6, 1, 1}))
    |> Nx.max(0)
    |> Nx.window_max({1, 1, 2, 2}, strides: [1, 1, 2, 2])
    |> Nx.reshape({4, :auto})
    |> Nx.dot(w1)
    |> Nx.add(c1)
    |> Nx.max(0)
    |> Nx.dot(w2)
    |> Nx.add(c2)
    |> cross_entropy(classes(4, 5))
  end

  test "LeNet with max pooling" do
    shapes = [{4, 1, 14, 14}, {4, 1, 5, 5}, {4}, {6, 4, 4, 4}, {6}, {24, 16}, {16}, {16, 5}, {5}]
    Gradients.check(&lenet/1, draw(shapes, :f32), 3.0e-5, "lenet")
  end

  ## A long short-term memory, unrolled by while

  defn lstm({xs, wx, wh, b, w}) do
    zeros = Nx.broadcast(0.0, {4, 6})

    {_, h, _, _, _, _, _} =
      while {t = 0, h = zeros, c = zeros, xs, wx, wh, b}, t < 5 do
        gates = Nx.dot(xs[t], wx) + Nx.dot(h, wh) + b
        i = Nx.sigmoid(gates[[.., 0..5]])
        f = Nx.sigmoid(gates[[.., 6..11]])
        g = Nx.tanh(gates[[.., 12..17]])
        o = Nx.sigmoid(gates[[.., 18..23]])
        c = f * c + i * g
        {t + 1, o * Nx.tanh(c), c, xs, wx, wh, b}
      end

    h |> Nx.dot(w) |> cross_entropy(classes(4, 3))
  end

  test "an LSTM" do
    shapes = [{5, 4, 3}, {3, 24}, {6, 24}, {24}, {6, 3}]
    Gradients.check(&lstm/1, draw(shapes, :f32), 3.0e-5, "lstm")
  end

  ## A transformer block: masked self-attention, layer norms, a GELU layer

  defnp layer_norm(x, gain, bias) do
    mean = Nx.mean(x, axes: [-1], keep_axes: true)
    variance = Nx.variance(x, axes: [-1], keep_axes: true)
    (x - mean) * Nx.rsqrt(variance + 1.0e-5) * gain + bias
  end

  defnp(gelu(x), do: 0.5 * x * (1 + Nx.erf(x / Nx.sqrt(2))))

  defnp(heads(x), do: x |> Nx.reshape({2, 5, 2, 4}) |> Nx.transpose(axes: [0, 2, 1, 3]))

  defn transformer({table, wq, wk, wv, wo, g1, b1, w1, c1, w2, c2, g2, b2}) do
    tokens = Nx.remainder(Nx.iota({2, 5}) * 5, 7)
    x = Nx.take(table, tokens)
    y = layer_norm(x, g1, b1)
    q = heads(Nx.dot(y, wq))
    k = heads(Nx.dot(y, wk))
    v = heads(Nx.dot(y, wv))
    scores = Nx.dot(q, [3], [0, 1], k, [3], [0, 1]) / Nx.sqrt(4)
    mask = Nx.greater_equal(Nx.iota({5, 1}), Nx.iota({1, 5}))
    scores = Nx.select(Nx.broadcast(mask, {2, 2, 5, 5}), scores, -1.0e9)
    weights = Nx.exp(scores - Nx.reduce_max(scores, axes: [3], keep_axes: true))
    weights = weights / Nx.sum(weights, axes: [3], keep_axes: true)

    mixed =
      weights
      |> Nx.dot([3], [0, 1], v, [2], [0, 1])
      |> Nx.transpose(axes: [0, 2, 1, 3])
      |> Nx.reshape({2, 5, 8})

    x = x + Nx.dot(mixed, wo)
    y = layer_norm(x, g2, b2)
    x = x + (y |> Nx.dot(w1) |> Nx.add(c1) |> gelu() |> Nx.dot(w2) |> Nx.add(c2))

    logits = x |> Nx.dot(Nx.transpose(table)) |> Nx.reshape({10, 7})
    cross_entropy(logits, classes(10, 7))
  end

  test "a transformer block" do
    shapes =
      [{7, 8}, {8, 8}, {8, 8}, {8, 8}, {8, 8}, {8}, {8}] ++ [{8, 16}, {16}, {16, 8}, {8}, {8}, {8}]

    Gradients.check(&transformer/1, draw(shapes, :f32), 5.0e-5, "transformer")
  end

  ## The log density of a mixture of normals, as samplers differentiate it

  defn mixture({logits, means, log_scales, x}) do
    shift = Nx.reduce_max(logits)
    log_weights = logits - shift - Nx.log(Nx.sum(Nx.exp(logits - shift)))
    z = (Nx.new_axis(x, 1) - means) / Nx.exp(log_scales)
    terms = log_weights - 0.5 * z * z - log_scales - 0.9189385332046727
    priors = Nx.sum(-0.5 * means * means - 0.5 * log_scales * log_scales)
    Nx.sum(Nx.logsumexp(terms, axes: [1])) + priors
  end

  test "a mixture's log density in f64" do
    Gradients.check(&mixture/1, draw([{4}, {4}, {4}, {50}], :f64, 2.0), 1.0e-12, "mixture")
  end
end

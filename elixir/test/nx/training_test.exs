defmodule Nx.Vulkan.TrainingTest do
  # What the project is for: a network that learns, step by step, without leaving the device.
  use ExUnit.Case, async: false

  import Nx.Defn
  alias Nx.Vulkan.Fallback

  defn predict({w1, b1, w2, b2}, x) do
    x |> Nx.dot(w1) |> Nx.add(b1) |> Nx.max(0.0) |> Nx.dot(w2) |> Nx.add(b2)
  end

  # Softmax cross-entropy, and Adam with t counted from 1.
  defn loss(params, x, y) do
    logits = predict(params, x)
    shifted = logits - Nx.reduce_max(logits, axes: [1], keep_axes: true)
    log_sum = shifted |> Nx.exp() |> Nx.sum(axes: [1], keep_axes: true) |> Nx.log()
    truth = Nx.equal(Nx.new_axis(y, 1), Nx.iota({1, Nx.axis_size(logits, 1)}))
    -Nx.mean(Nx.sum((shifted - log_sum) * truth, axes: [1]))
  end

  defn step({params, m, v}, t, x, y) do
    {loss, {g1, g2, g3, g4}} = value_and_grad(params, &loss(&1, x, y))
    {p1, p2, p3, p4} = params
    {m1, m2, m3, m4} = m
    {v1, v2, v3, v4} = v
    {p1, m1, v1} = adam(p1, m1, v1, g1, t)
    {p2, m2, v2} = adam(p2, m2, v2, g2, t)
    {p3, m3, v3} = adam(p3, m3, v3, g3, t)
    {p4, m4, v4} = adam(p4, m4, v4, g4, t)
    {loss, {{p1, p2, p3, p4}, {m1, m2, m3, m4}, {v1, v2, v3, v4}}}
  end

  defnp adam(p, m, v, g, t) do
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    rate = 0.01 * Nx.sqrt(1 - Nx.pow(0.999, t)) / (1 - Nx.pow(0.9, t))
    {p - rate * m / (Nx.sqrt(v) + 1.0e-7), m, v}
  end

  @small {12, 16, 4}

  defp state({inputs, hidden, classes}) do
    params =
      {weights({inputs, hidden}, 1), weights({hidden}, 2), weights({hidden, classes}, 3),
       weights({classes}, 4)}

    zeros = params |> Tuple.to_list() |> Enum.map(&Nx.multiply(&1, 0.0)) |> List.to_tuple()
    {params, zeros, zeros}
  end

  defp weights(shape, seed) do
    values = for i <- 1..Nx.size(shape), do: :math.sin(seed * 100 + i) / 3
    Nx.tensor(values, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
  end

  defp batch({inputs, _, classes}, n, seed) do
    x = for i <- 1..(n * inputs), do: :math.cos(seed + i * i)
    y = for i <- 1..n, do: rem(i * i + seed, classes)
    {Nx.tensor(x, type: :f32) |> Nx.reshape({n, inputs}), Nx.tensor(y, type: :u8)}
  end

  defp compiled({inputs, _, _} = sizes, n) do
    state = Nx.with_default_backend(Nx.BinaryBackend, fn -> state(sizes) end)

    templates = [
      Nx.to_template(state),
      Nx.template({}, :s32),
      Nx.template({n, inputs}, :f32),
      Nx.template({n}, :u8)
    ]

    Nx.Defn.compile(&step/4, templates, compiler: Nx.Defn.Evaluator)
  end

  defp train(backend, steps) do
    Nx.with_default_backend(backend, fn ->
      step = compiled(@small, 32)

      Enum.map_reduce(1..steps, state(@small), fn t, state ->
        {x, y} = batch(@small, 32, t)
        {loss, state} = step.(state, t, x, y)
        {Nx.to_number(loss), state}
      end)
      |> elem(0)
    end)
  end

  test "a step makes no host fallback, and its losses are those of BinaryBackend" do
    got = Fallback.strict(fn -> train(Nx.Vulkan.Backend, 20) end)
    want = train(Nx.BinaryBackend, 20)
    for {g, w} <- Enum.zip(got, want), do: assert_in_delta(g, w, 1.0e-5 * abs(w))
  end

  test "the same program yields the same bytes on every run" do
    assert train(Nx.Vulkan.Backend, 5) == train(Nx.Vulkan.Backend, 5)
  end

  test "other batch sizes make no new pipeline" do
    Nx.default_backend(Nx.Vulkan.Backend)
    sizes = {784, 128, 10}
    state = state(sizes)

    run = fn n ->
      {x, y} = batch(sizes, n, n)
      step = compiled(sizes, n)
      {_, state} = step.(state, 1, x, y)
      {loss, _} = step.(state, 2, x, y)
      Nx.to_number(loss)
    end

    run.(32)
    %{pipelines: before} = Nx.Vulkan.stats()
    # From 5 on: fewer rows are a tile of their own, and an extent of 1 is a broadcast.
    for n <- [5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 24, 31, 33, 40, 48, 50, 64, 65, 100, 128], do: run.(n)
    %{pipelines: later} = Nx.Vulkan.stats()
    assert later == before
  end
end

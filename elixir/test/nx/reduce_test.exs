defmodule Nx.Vulkan.ReduceTest do
  # Nx.reduce and Nx.window_reduce with functions: the port computes what they say, the BEAM only traces them.
  use ExUnit.Case, async: true

  import Nx.Defn
  alias Nx.Vulkan.{Backend, Fallback}
  alias Nx.Vulkan.Backend.Trace
  alias Nx.Vulkan.Test.Calls

  @functions [
    sum: &Nx.add/2,
    difference: &Nx.subtract/2,
    largest: &__MODULE__.largest/2,
    norm: &__MODULE__.norm/2,
    with_constants: &__MODULE__.with_constants/2,
    defn: &__MODULE__.clamped/2,
    element: &__MODULE__.element/2,
    constant: &__MODULE__.constant/2
  ]

  def largest(x, acc), do: Nx.select(Nx.greater(x, acc), x, acc)
  def norm(x, acc), do: x |> Nx.multiply(x) |> Nx.add(acc)
  def with_constants(x, acc), do: x |> Nx.multiply(2) |> Nx.add(Nx.tensor(1)) |> Nx.max(acc) |> like(acc)
  def element(x, _acc), do: x
  def constant(_x, _acc), do: 3
  defn(clamped(x, acc), do: Nx.as_type(Nx.clip(x, 1, 3) + acc, Nx.type(acc)))

  # BinaryBackend takes a function's result in the accumulator's type only, and hands numbers to those of windows.
  defp like(x, acc), do: Nx.as_type(x, Nx.type(acc))

  defp both(t, call) do
    want = Nx.with_default_backend(Nx.BinaryBackend, fn -> call.(t) end)
    there = Nx.backend_copy(t, Backend)

    got =
      Nx.with_default_backend({Backend, errors: :sync}, fn -> Fallback.strict(fn -> call.(there) end) end)

    assert {got.type, got.shape} == {want.type, want.shape}
    {got, want}
  end

  for {name, fun} <- @functions, type <- [:u8, :s32, :s64, :bf16, :f32, :f64] do
    @fun fun
    @type_ type
    test "reduce with #{name} of #{type}" do
      for opts <- [[], [axes: [1]], [axes: [0, 2], keep_axes: true]] do
        t = Calls.operand({2, 3, 2}, @type_)
        acc = Nx.tensor(1, type: @type_, backend: Nx.BinaryBackend)
        {got, want} = both(t, &Nx.reduce(&1, acc, opts, @fun))
        assert Nx.to_binary(got) == Nx.to_binary(want), "#{inspect(got)}, wanted #{inspect(want)}"
      end
    end
  end

  for {name, fun} <- @functions, type <- [:s32, :f32] do
    @fun fun
    @type_ type
    test "window_reduce with #{name} of #{type}" do
      opts = [padding: [{1, 0}, {0, 1}], strides: [1, 2], window_dilations: [2, 1]]
      t = Calls.operand({4, 5}, @type_)
      acc = Nx.tensor(1, type: @type_, backend: Nx.BinaryBackend)
      {got, want} = both(t, &Nx.window_reduce(&1, acc, {2, 3}, opts, @fun))
      assert Nx.to_binary(got) == Nx.to_binary(want), "#{inspect(got)}, wanted #{inspect(want)}"
    end
  end

  test "a function may hold tensors of the device" do
    factor = Nx.tensor([2, 3], backend: Backend)[1]

    t = Nx.iota({4}, backend: Backend)
    sum = Fallback.strict(fn -> Nx.reduce(t, 0, fn x, acc -> Nx.add(acc, Nx.multiply(x, factor)) end) end)
    assert Nx.to_number(sum) == 18
  end

  test "a function that wants numbers runs in the BEAM, and is counted" do
    t = Nx.tensor([3, 1, 2], backend: Backend)
    fun = fn x, acc -> if Nx.to_number(x) > 2, do: acc, else: Nx.add(x, acc) end
    {result, counts} = Fallback.count(fn -> Nx.reduce(t, 0, fun) end)
    assert Nx.to_number(result) == 3
    assert counts == %{{:reduce, 5} => 1}
  end

  test "what stands for an element has no value outside of its function" do
    t = Nx.tensor([3, 1, 2], backend: Backend)
    me = self()

    _ =
      Nx.reduce(t, 0, fn x, acc ->
        send(me, {:leaked, x})
        Nx.add(x, acc)
      end)

    assert_received {:leaked, leaked}
    assert_raise ArgumentError, ~r/has no value outside of it/, fn -> Nx.to_number(leaked) end
    assert_raise ArgumentError, ~r/has no value outside of it/, fn -> Nx.add(leaked, t) end
  end

  test "graphs" do
    assert Trace.graph(&Nx.add/2, {:f, 32}) ==
             {:ok, {[{:f32, {}}, {:f32, {}}], [{:add, :f32, {}, [], [0, 1]}], [2]}}

    assert Trace.graph(fn _, acc -> acc end, {:s, 8}) == {:ok, {[{:s8, {}}, {:s8, {}}], [], [1]}}
    assert {:ok, {_, nodes, [3]}} = Trace.graph(&Nx.less/2, {:f, 32})
    assert nodes == [{:less, :u8, {}, [], [0, 1]}, {:as_type, :f32, {}, [], [2]}]

    # A block is one operation.
    assert {:ok, {_, [{:logical_not, :u8, {}, [], [0]} | _], _}} =
             Trace.graph(fn x, acc -> Nx.add(Nx.logical_not(x), acc) end, {:f, 32})

    assert Trace.graph(fn x, _ -> Nx.broadcast(x, {2}) end, {:f, 32}) == :error
    assert Trace.graph(fn x, acc -> Nx.reduce(Nx.add(x, acc), 0, &Nx.add/2) end, {:f, 32}) == :error
    assert Process.get({Trace, :nodes}) == nil
  end
end

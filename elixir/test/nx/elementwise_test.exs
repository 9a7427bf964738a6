defmodule Nx.Vulkan.ElementwiseTest do
  # Every elementwise callback, over every type, on values where implementations go wrong: against
  # Nx.BinaryBackend, bit for bit where DESIGN promises that, within units in the last place elsewhere.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.Fallback
  alias Nx.Vulkan.Test.{Operations, Reference}

  setup do
    Nx.default_backend({Nx.Vulkan.Backend, errors: :sync})
    :ok
  end

  defp vulkan(tensor), do: Nx.backend_copy(tensor, Nx.Vulkan.Backend)

  defp report(bad, op, types) do
    assert bad == [],
           "#{op} of #{inspect(types)}: #{length(bad)} elements differ from BinaryBackend: {operands, wanted, got}\n" <>
             inspect(Enum.take(bad, 8), pretty: true)
  end

  for op <- Operations.binary(), type <- Reference.types() do
    @op op
    @type_ type
    if Operations.takes?(op, type) do
      test "#{op} of #{type}" do
        values = Reference.hard(@type_)
        amounts = Reference.amounts(@op, @type_)
        left = Reference.tensor(values, @type_, {:auto, 1})
        right = Reference.tensor(amounts, @type_, {1, :auto})
        result = Fallback.strict(fn -> apply(Nx, @op, [vulkan(left), vulkan(right)]) end)
        lefts = left |> Nx.broadcast(result.shape) |> Reference.bits()
        rights = right |> Nx.broadcast(result.shape) |> Reference.bits()

        @op
        |> Reference.disagreements(result, [{lefts, left.type}, {rights, right.type}])
        |> report(@op, [@type_, @type_])
      end
    end
  end

  for op <- Operations.unary() do
    @op op
    test "#{op} of every type" do
      for type <- Reference.types(), Operations.takes?(@op, type) do
        x = Reference.tensor(Reference.hard(type), type, {:auto})
        result = Fallback.strict(fn -> apply(Nx, @op, [vulkan(x)]) end)

        @op
        |> Reference.disagreements(result, [{Reference.bits(x), x.type}])
        |> report(@op, [type])
      end
    end
  end

  test "operands of different types" do
    for {a, b} <- [{:u8, :s8}, {:s32, :f32}, {:u64, :s64}, {:f16, :bf16}, {:f32, :f64}, {:u32, :f16}],
        op <- [:add, :multiply, :less, :equal, :max] do
      left = Reference.tensor(Reference.hard(a), a, {:auto, 1})
      right = Reference.tensor(Reference.hard(b), b, {1, :auto})
      result = Fallback.strict(fn -> apply(Nx, op, [vulkan(left), vulkan(right)]) end)
      lefts = left |> Nx.broadcast(result.shape) |> Reference.bits()
      rights = right |> Nx.broadcast(result.shape) |> Reference.bits()
      op |> Reference.disagreements(result, [{lefts, left.type}, {rights, right.type}]) |> report(op, [a, b])
    end
  end

  test "casts between all types" do
    for from <- Reference.types(), to <- Reference.types() do
      values = Reference.hard(from) ++ if(from in [:f32, :f64], do: [300.7, -1.5, 3.0e9, -3.0e9], else: [])
      x = Reference.tensor(values, from, {:auto})
      result = Fallback.strict(fn -> Nx.as_type(vulkan(x), to) end)

      if from == to do
        assert Reference.bits(result) == Reference.bits(x)
      else
        :as_type
        |> Reference.disagreements(result, [{Reference.bits(x), x.type}])
        |> report(:as_type, [from, to])
      end
    end
  end

  test "bitcasts keep the bits" do
    for {from, to} <- [{:f32, :u32}, {:u32, :f32}, {:f64, :s64}, {:f16, :u16}, {:bf16, :s16}, {:s8, :u8}] do
      x = Reference.tensor(Reference.hard(from), from, {:auto})
      assert Nx.to_binary(Nx.bitcast(vulkan(x), to)) == Nx.to_binary(x)
    end
  end

  test "select and clip" do
    for type <- Reference.types() do
      values = Reference.hard(type)
      n = length(values)
      x = Reference.tensor(values, type, {n})
      pred = Reference.tensor(Enum.map(1..n, &rem(&1, 2)), :u8, {n})
      want = Nx.select(pred, x, Nx.reverse(x))
      got = Fallback.strict(fn -> Nx.select(vulkan(pred), vulkan(x), Nx.reverse(vulkan(x))) end)
      assert same?(want, got)
      assert same?(Nx.select(1, x, Nx.reverse(x)), Nx.select(1, vulkan(x), Nx.reverse(vulkan(x))))

      low = Reference.tensor([1], type, {})
      high = Reference.tensor([3], type, {})
      got = Fallback.strict(fn -> Nx.clip(vulkan(x), vulkan(low), vulkan(high)) end)
      assert same?(Nx.clip(x, low, high), got)
      assert same?(Nx.clip(x, low, high), Nx.clip(vulkan(x), 1, 3) |> Nx.as_type(type))
    end
  end

  defp same?(want, got) do
    Enum.zip(Reference.bits(want), Reference.bits(got))
    |> Enum.all?(fn {a, b} -> Reference.close?(a, b, want.type, 0) end)
  end
end

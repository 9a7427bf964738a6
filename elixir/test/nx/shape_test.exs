defmodule Nx.Vulkan.ShapeTest do
  # Callbacks that move, reduce or contract, over every type: what they yield on the device is what they yield
  # on Nx.BinaryBackend. The numbers are small integers, so that sums are exact in every type.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.Fallback
  alias Nx.Vulkan.Test.{Calls, Reference}

  @types Reference.types()

  for {name, _} <- Calls.all() do
    @name name
    test "#{name} of every type" do
      {fun, shapes} = Keyword.fetch!(Calls.all(), @name)

      for type <- @types do
        operands = Enum.map(shapes, &Calls.operand(&1, type))
        want = on(Nx.BinaryBackend, fn -> apply(fun, operands) end)
        device = Enum.map(operands, &Nx.backend_copy(&1, Nx.Vulkan.Backend))

        got = on({Nx.Vulkan.Backend, errors: :sync}, fn -> Fallback.strict(fn -> apply(fun, device) end) end)

        for {want, got} <- Enum.zip(Calls.list(want), Calls.list(got)) do
          assert {got.type, got.shape} == {want.type, want.shape}

          assert Nx.to_binary(got) == Nx.to_binary(want),
                 "#{@name} of #{type}: got #{inspect(got)}, wanted #{inspect(want)}"
        end
      end
    end
  end

  defp on(backend, fun), do: Nx.with_default_backend(backend, fun)

  test "iota and eye of every type" do
    for type <- @types, shape <- [{5}, {3, 4}, {2, 3, 2}] do
      for axis <- [nil | Enum.to_list(0..(tuple_size(shape) - 1))] do
        want = Nx.iota(shape, type: type, axis: axis, backend: Nx.BinaryBackend)
        got = Nx.iota(shape, type: type, axis: axis, backend: Nx.Vulkan.Backend)
        assert Nx.to_binary(got) == Nx.to_binary(want)
      end

      if tuple_size(shape) > 1 do
        assert Nx.to_binary(Nx.eye(shape, type: type, backend: Nx.Vulkan.Backend)) ==
                 Nx.to_binary(Nx.eye(shape, type: type, backend: Nx.BinaryBackend))
      end
    end
  end

  test "NaN decides extremes" do
    for type <- [:f16, :bf16, :f32, :f64] do
      t = Nx.tensor([1.0, :nan, 3.0, :infinity], type: type, backend: Nx.Vulkan.Backend)
      assert Nx.reduce_max(t) |> Nx.to_number() == :nan
      assert Nx.reduce_min(t) |> Nx.to_number() == :nan
      assert Nx.argmax(t) |> Nx.to_number() == 1
      assert Nx.sum(t) |> Nx.to_number() == :nan
    end
  end

  test "sums of f32 stay within their bound" do
    # |error| <= 2^-24 of the sum of magnitudes, where plain f32 is off by far more.
    x = for i <- 1..20_000, do: :math.sin(i) * 1000
    bytes = for v <- x, into: <<>>, do: <<v::float-32-native>>
    exact = for(<<v::float-32-native <- bytes>>, do: v) |> Enum.sort_by(&abs/1) |> Enum.sum()
    bound = Enum.sum(Enum.map(x, &abs/1)) * :math.pow(2, -24)
    t = Nx.from_binary(bytes, :f32, backend: Nx.Vulkan.Backend)
    assert_in_delta Nx.sum(t) |> Nx.to_number(), exact, bound
    ones = Nx.broadcast(Nx.tensor(1.0, backend: Nx.Vulkan.Backend), {20_000})
    assert_in_delta Nx.dot(t, ones) |> Nx.to_number(), exact, bound
  end
end

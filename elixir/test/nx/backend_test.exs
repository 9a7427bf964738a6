defmodule Nx.Vulkan.BackendTest do
  use ExUnit.Case, async: false

  alias Nx.Vulkan.{Backend, Fallback, Handle}
  alias Nx.Vulkan.Port, as: VPort

  setup do
    Nx.default_backend(Backend)
    :ok
  end

  # Operations and uploads that the port saw while fun ran.
  defp sent(fun) do
    before = ops()
    result = fun.()
    {result, ops() - before}
  end

  defp ops do
    Nx.Vulkan.flush()
    Nx.Vulkan.stats()[:ops]
  end

  test "every callback of Nx.Backend is there, and runs somewhere" do
    {:module, _} = Code.ensure_loaded(Nx.Vulkan.VulkanoBackend)

    for {name, arity} <- Nx.Backend.behaviour_info(:callbacks) do
      assert function_exported?(Backend, name, arity), "#{name}/#{arity}"
      assert function_exported?(Nx.Vulkan.VulkanoBackend, name, arity), "#{name}/#{arity}"
    end
  end

  describe "host scalars" do
    test "travel inside the operation's frame" do
      t = Nx.tensor([1.0, 2.0])
      {sum, n} = sent(fn -> Nx.add(t, 1) end)
      assert n == 1
      assert Nx.to_list(sum) == [2.0, 3.0]
      {sum, 1} = sent(fn -> Nx.subtract(1, t) end)
      assert Nx.to_list(sum) == [0.0, -1.0]
      # BinaryBackend's too.
      one = Nx.tensor(1, backend: Nx.BinaryBackend)
      {sum, 1} = sent(fn -> Nx.add(t, one) end)
      assert Nx.to_list(sum) == [2.0, 3.0]
    end

    test "are computed here when alone" do
      {result, n} =
        sent(fn ->
          Fallback.strict(fn ->
            Nx.tensor(3)
            |> Nx.add(4)
            |> Nx.multiply(2.5)
            |> Nx.exp()
            |> Nx.sqrt()
            |> Nx.less(1.0e9)
            |> Nx.as_type(:s64)
          end)
        end)

      assert n == 0
      assert Nx.to_number(result) == 1
      assert match?({:constant, _}, result.data.state)
      {m, 0} = sent(fn -> Nx.broadcast(7, {2, 3}) |> Nx.transpose() |> Nx.reshape({6}) |> Nx.add(1) end)
      assert Nx.to_flat_list(m) == List.duplicate(8, 6)
      {s, 0} = sent(fn -> Nx.slice(Nx.broadcast(7, {4}), [1], [2]) end)
      assert Nx.to_flat_list(s) == [7, 7]
    end

    test "become tensors where one is wanted" do
      assert Nx.sum(Nx.broadcast(1.5, {2, 3})) |> Nx.to_number() == 9.0
      assert Nx.stack([1, Nx.tensor(2), 3]) |> Nx.to_list() == [1, 2, 3]
      assert Nx.concatenate([Nx.broadcast(1, {2}), Nx.tensor([2, 3])]) |> Nx.to_list() == [1, 1, 2, 3]
      assert Nx.dot(Nx.broadcast(2.0, {2, 3}), Nx.iota({3}, type: :f32)) |> Nx.to_list() == [6.0, 6.0]
    end

    test "raise where the device has nothing to say" do
      assert_raise ArithmeticError, fn -> Nx.quotient(Nx.tensor([1, 2]), 0) end
      assert_raise ArithmeticError, fn -> Nx.quotient(1, 0) end
      assert_raise ArgumentError, "cannot left shift by -1", fn -> Nx.left_shift(Nx.tensor([1]), -1) end
      assert_raise ArgumentError, "cannot right shift by -1", fn -> Nx.right_shift(Nx.tensor([1]), -1) end
      # Floats have an answer.
      assert Nx.exp(1000) |> Nx.to_number() == :infinity
      assert Nx.sqrt(-1) |> Nx.to_number() == :nan
    end
  end

  describe "data" do
    test "every type goes there and back" do
      for type <-
            [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64, :f16, :bf16, :f32, :f64] ++
              [:c64, :c128, :f8, :u4, :s2] do
        t = Nx.tensor([1, 0, 1], type: type, backend: Nx.BinaryBackend)
        there = Nx.backend_copy(t, Backend)
        assert %Backend{} = there.data
        assert Nx.to_binary(there) == Nx.to_binary(t)
        assert Nx.backend_copy(there, Nx.BinaryBackend) == t
        assert inspect(there) == inspect(t)
      end
    end

    test "a large tensor goes in pieces or by file" do
      bytes = :crypto.strong_rand_bytes(24 * 1024 * 1024 + 4)
      t = Nx.from_binary(bytes, :u32)
      assert Nx.to_binary(t) == bytes
      assert Nx.to_binary(Nx.slice(t, [1_000_000], [10])) == binary_part(bytes, 4_000_000, 40)
    end

    test "inspect reads only what it shows" do
      t = Nx.iota({1000, 1000})
      assert {shown, 16} = downloaded(fn -> inspect(t, limit: 3) end)
      assert shown =~ "[0, 1, 2, ...]"
      # Views too: strided ones, and one of 4 GiB that takes no memory.
      assert {shown, 16} = downloaded(fn -> t |> Nx.transpose() |> inspect(limit: 3) end)
      assert shown =~ "[0, 1000, 2000, ...]"
      assert {shown, 16} = downloaded(fn -> t |> Nx.reverse() |> inspect(limit: 3) end)
      assert shown =~ "[999999, 999998, 999997, ...]"
      huge = Nx.broadcast(t, {1024, 1000, 1000})
      assert {shown, 204} = downloaded(fn -> inspect(huge) end)
      assert shown =~ "s32[1024][1000][1000]"
      assert {_, 4_000_000} = downloaded(fn -> Nx.to_binary(t) end)
      # Batches are made when they are asked for.
      assert {_, 0} = downloaded(fn -> t |> Nx.to_batched(10) |> Enum.take(2) end)
      assert Nx.to_binary(t, limit: 2) == <<0::32-native, 1::32-native>>
    end

    defp downloaded(fun) do
      %{bytes_down: before} = Nx.Vulkan.stats()
      result = fun.()
      {result, Nx.Vulkan.stats().bytes_down - before}
    end

    test "batches are slices" do
      t = Nx.iota({5, 2})
      assert [a, b, c] = Enum.to_list(Nx.to_batched(t, 2))
      assert %Backend{state: handle} = a.data
      assert is_binary(handle)
      assert Nx.to_list(a) == [[0, 1], [2, 3]]
      assert Nx.to_list(b) == [[4, 5], [6, 7]]
      assert Nx.to_list(c) == [[8, 9], [0, 1]]
      assert [_, _] = Enum.to_list(Nx.to_batched(t, 2, leftover: :discard))
    end

    test "copies are tensors of their own, transfers leave nothing behind" do
      t = Nx.tensor([1, 2, 3])
      copy = Nx.backend_copy(t, Backend)
      assert :ok = Nx.backend_deallocate(t)
      assert :already_deallocated = Nx.backend_deallocate(t)
      assert Nx.to_list(copy) == [1, 2, 3]
      assert Nx.backend_transfer(copy, Nx.BinaryBackend) |> Nx.to_list() == [1, 2, 3]
      assert_raise Nx.Vulkan.Error, ~r/freed/, fn -> Nx.to_list(copy) end
      assert :already_deallocated = Nx.backend_deallocate(copy)
      made = Nx.tensor([1, 2], backend: {Backend, transfer: :copy}) |> Nx.add(1)
      assert Nx.backend_transfer(made) |> Nx.to_list() == [2, 3]
      assert Nx.to_list(made) == [2, 3]
      kept = Nx.tensor([4, 5])
      assert Nx.backend_transfer(kept, Backend) |> Nx.to_list() == [4, 5]
      assert Nx.to_list(kept) == [4, 5]
    end

    test "there are no pointers" do
      assert_raise ArgumentError, fn -> Nx.to_pointer(Nx.tensor([1]), mode: :local) end

      assert_raise ArgumentError, fn ->
        Nx.from_pointer(Backend, %Nx.Pointer{kind: :local, address: 1}, {:s, 32}, {1})
      end
    end

    test "options" do
      assert_raise ArgumentError, ~r/device/, fn -> Nx.tensor([1], backend: {Backend, device: :gpu}) end
      t = Nx.tensor([1], backend: {Backend, errors: :sync})
      assert t.data.errors == :sync
      assert Nx.add(t, 1).data.errors == :sync
    end

    test "operands of BinaryBackend are uploaded" do
      t = Nx.tensor([1, 2], backend: Nx.BinaryBackend)
      assert %Backend{} = Nx.add(t, Nx.tensor([1, 1])).data
      assert Nx.concatenate([t, Nx.tensor([3])]) |> Nx.to_list() == [1, 2, 3]
    end
  end

  describe "failures" do
    # Deallocated operands make operations fail on any device.
    defp failed do
      t = Nx.tensor([1.0, 2.0])
      :ok = Nx.backend_deallocate(t)
      Nx.multiply(t, 2)
    end

    test "come with the first read, however far from it" do
      bad = failed() |> Nx.add(1) |> Nx.exp() |> Nx.sum()
      assert_raise Nx.Vulkan.Error, fn -> Nx.to_number(bad) end
      assert inspect(bad) =~ "Nx.Vulkan.Error"
      assert :ok = Nx.backend_deallocate(bad)
      assert_raise Nx.Vulkan.Error, fn -> Nx.Vulkan.sync({failed(), Nx.tensor([1])}) end
    end

    test "come at once with errors: :sync" do
      t = Nx.tensor([1.0, 2.0], backend: {Backend, errors: :sync})
      :ok = Nx.backend_deallocate(t)
      assert_raise Nx.Vulkan.Error, fn -> Nx.multiply(t, 2) end
    end

    test "by value come with errors: :sync, as BinaryBackend has them" do
      calls = [
        fn m, b -> Nx.gather(m, Nx.tensor([[1, 2], [0, 3]], backend: b)) end,
        fn m, b -> Nx.gather(m, Nx.tensor([[1], [-1]], backend: b)) end,
        fn m, b -> Nx.gather(m, Nx.tensor([[2], [3]], type: :u8, backend: b), axes: [1]) end,
        fn m, b -> Nx.indexed_add(m, Nx.tensor([[2, 0]], backend: b), Nx.tensor([1], backend: b)) end,
        fn m, b -> Nx.indexed_put(m, Nx.tensor([[0, 4]], backend: b), Nx.tensor([1], backend: b)) end,
        fn m, b -> Nx.take(m, Nx.tensor([0, 4], backend: b), axis: 1) end,
        fn m, b -> Nx.take_along_axis(m, Nx.tensor([[0, 1, -2]], backend: b), axis: 0) end,
        fn m, _ -> Nx.LinAlg.triangular_solve(Nx.multiply(m[[0..1, 0..1]], 0), Nx.tensor([1, 2])) end
      ]

      for call <- calls do
        backend = {Backend, errors: :sync}
        %ArgumentError{message: message} = catch_error(by_value(call, Nx.BinaryBackend))
        # It names the axis before it brings that to the front.
        said = message |> String.split(" for axis") |> hd() |> Regex.escape() |> Regex.compile!()
        assert_raise ArgumentError, said, fn -> by_value(call, backend) end
      end

      # Else with the first read.
      bad = Nx.take(Nx.iota({3}), Nx.tensor([1, 3])) |> Nx.add(1)
      assert_raise ArgumentError, ~r/index 3 is out of bounds for axis 0/, fn -> Nx.to_binary(bad) end
      assert inspect(bad) =~ "index 3 is out of bounds"
    end

    defp by_value(call, backend) do
      Nx.with_default_backend(backend, fn -> call.(Nx.iota({2, 3}), backend) end)
    end

    test "a tensor goes with its port" do
      t = Nx.tensor([1.0, 2.0])
      {:ok, _} = VPort.restart(0)
      assert_raise Nx.Vulkan.DeviceError, ~r/lost/, fn -> Nx.to_binary(t) end
      assert_raise Nx.Vulkan.DeviceError, ~r/lost/, fn -> Nx.add(t, 1) end
      assert inspect(t) =~ "lost"
      assert Nx.to_list(Nx.tensor([1]) |> Nx.add(1)) == [2]
    end
  end

  describe "lifetimes" do
    test "an operation keeps its operands until it is sent" do
      # The result is all that is held.
      result = Enum.reduce(1..2000, Nx.iota({64}), fn _, t -> Nx.add(t, 1) end)
      assert Nx.to_number(result[0]) == 2000
    end

    @tag timeout: 300_000
    test "dropped results do not pile up, without a forced collection" do
      t = Nx.iota({1024}, type: :f32)
      _ = Nx.to_number(Nx.sum(t))
      count = String.to_integer(System.get_env("NXVK_DROPS") || "20000")

      peak =
        Enum.reduce(1..count, 0, fn i, peak ->
          _ = Nx.add(t, i)
          if rem(i, 500) == 0, do: max(peak, in_use()), else: peak
        end)

      # 4 KiB each: all of them would be 80 MiB and more.
      assert peak < 32 * 1024 * 1024
    end

    defp in_use do
      %{memory_in_use: bytes} = Nx.Vulkan.stats()
      bytes
    end
  end

  test "the old names" do
    assert {:ok, buffer} = Nx.Vulkan.NativeV.buf_alloc(4)
    assert is_integer(Handle.id(buffer))
    assert :ok = Nx.Vulkan.NativeV.flush()
    t = Nx.tensor([1.0, 2.0], backend: Nx.Vulkan.VulkanoBackend)
    assert %Backend{} = t.data
    assert Nx.backend_transfer(t, Nx.Vulkan.VulkanoBackend) |> Nx.to_list() == [1.0, 2.0]

    for kind <- [:f32, :f64, :compensated] do
      assert :ok = Nx.Vulkan.VulkanoBackend.put_f32_matmul_accumulator(kind)
      assert Nx.dot(t, t) |> Nx.to_number() == 5.0
    end

    assert_raise ArgumentError, fn -> Nx.Vulkan.VulkanoBackend.put_f32_matmul_accumulator(:f16) end
  end

  test "the public face" do
    assert [{0, %{name: name}} | _] = Nx.Vulkan.devices()
    assert Nx.Vulkan.device_name() == name
    assert is_map(Nx.Vulkan.info())
    assert is_map(Nx.Vulkan.memory())

    assert {3, kernels} =
             Nx.Vulkan.profile(fn -> Nx.add(Nx.tensor([1, 2]), 1) |> Nx.sum() |> then(fn _ -> 3 end) end)

    assert is_list(kernels)
  end

  test "what Complex refuses is refused" do
    z = Nx.tensor([Complex.new(1, 2)], backend: Nx.Vulkan.Backend)
    assert_raise ArithmeticError, ~r/atan2 only accepts real numbers/, fn -> Nx.atan2(z, 1) end
  end
end

defmodule Nx.Vulkan.HandleTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{DeviceError, Handle}
  alias Nx.Vulkan.Port.Table

  @device 910
  defp port(epoch \\ 1) do
    %Nx.Vulkan.Port{
      device: @device,
      epoch: epoch,
      port: nil,
      owner: self(),
      ids: Table.ids(),
      stamp: Handle.stamp(@device, epoch)
    }
  end

  test "a handle says what it was made of" do
    port = port()
    {id, handle} = Handle.new(port, 5_000)
    node = Atom.to_string(node())

    assert {:ok, %{device: @device, epoch: 1, id: ^id, bytes: 5_000, node: ^node}} = Handle.parse(handle)
    assert Handle.id!(handle, port) == id
    assert Handle.id(handle) == id
    assert Handle.bytes(handle) == 5_000
    assert Handle.device(handle) == @device
    assert Handle.local?(handle)
    assert Handle.owner(handle) == node()
    assert Handle.keep(handle) == :ok
  end

  test "ids ascend and are never used twice" do
    ids = for _ <- 1..1_000, do: elem(Handle.new(port(), 4), 0)
    assert ids == Enum.sort(ids)
    assert ids == Enum.uniq(ids)
  end

  test "every handle is counted by reference, at its exact size, and 256 in a row differ in size" do
    stamp = Handle.stamp(@device, 1)

    for bytes <- [0, 4, 4_096, 60_000, 1_000_000, 70_000_000] do
      parent = self()

      spawn(fn ->
        handles = for id <- 1000..1255, do: Handle.build(stamp, id, bytes)
        {:binary, binaries} = Process.info(self(), :binary)
        send(parent, {for({_, size, count} <- binaries, do: {size, count}), Enum.map(handles, &byte_size/1)})
      end)

      assert_receive {listed, sizes}
      assert length(Enum.uniq(sizes)) == 256
      assert Enum.all?(sizes, &(&1 > 64))
      # Not one byte of room, and nobody else refers to it.
      assert sizes -- for({size, 1} <- listed, do: size) == []
    end
  end

  test "weight grows with the tensor, never falls, and ends at 255" do
    weights = for k <- 0..40, b <- [Bitwise.bsl(1, k) - 1, Bitwise.bsl(1, k)], do: Handle.weight(b)
    assert weights == Enum.sort(weights)
    assert Handle.weight(4_095) == 0
    assert Handle.weight(4_096) == 1
    assert Handle.weight(65_536) == 16
    assert Handle.weight(1_048_576) == 112
    assert Handle.weight(67_108_864) == 255
    assert Enum.all?(weights, &(&1 in 0..255))
  end

  test "a handle of an earlier epoch is lost, with the time and the reason of the fault" do
    at = ~U[2030-01-02 03:04:05.678Z]

    Table.put_fault(%DeviceError{
      device: @device,
      epoch: 7,
      reason: :port_died,
      at: at,
      message: "device 910 (epoch 7): its port ended with signal 9"
    })

    handle = Handle.build(Handle.stamp(@device, 7), 5, 4)
    error = assert_raise DeviceError, fn -> Handle.id!(handle, port(8)) end
    assert error.reason == :lost
    assert error.message =~ "lost with the device at 2030-01-02 03:04:05Z"
    assert error.message =~ "signal 9"
    assert {:error, %DeviceError{reason: :lost}} = Handle.check(handle)
  end

  test "a handle of another node, device or run is refused by name" do
    <<head::binary-size(11), vm::64, id::64, bytes::64, _::binary>> =
      Handle.build(Handle.stamp(@device, 1), 5, 4)

    far = <<head::binary, vm + 1::64, id::64, bytes::64, 9::16, "far@there", 0::800>>
    error = assert_raise DeviceError, fn -> Handle.id!(far, port()) end
    assert error.reason == :foreign
    assert error.message =~ "on node far@there"
    assert Handle.owner(far) == nil
    refute Handle.local?(far)
    assert {:error, %DeviceError{reason: :foreign}} = Handle.check(far)
    assert Handle.free(far) == :already_deallocated

    name = Atom.to_string(node())
    earlier = <<head::binary, vm + 1::64, id::64, bytes::64, byte_size(name)::16, name::binary, 0::800>>
    assert_raise DeviceError, ~r/an earlier run of node/, fn -> Handle.id!(earlier, port()) end

    other = Handle.build(Handle.stamp(@device + 1, 1), 5, 4)
    assert_raise DeviceError, ~r/on device 911, not on device 910/, fn -> Handle.id!(other, port()) end
  end

  test "what is no handle is said to be none" do
    for junk <- ["NXVK", "", :x, <<"NXVK", 9, 0::800>>] do
      assert Handle.parse(junk) == :error
      assert_raise ArgumentError, ~r/not a tensor handle/, fn -> Handle.id!(junk, port()) end
    end
  end
end

defmodule Nx.Vulkan.BulkTest do
  use ExUnit.Case

  alias Nx.Vulkan.{DeviceError, Handle}
  alias Nx.Vulkan.Port, as: VPort
  alias Nx.Vulkan.Port.Bulk
  alias Nx.Vulkan.Test.FakePort

  @device 922

  setup do
    FakePort.start_using()

    on_exit(fn ->
      System.delete_env("NXVK_BULK")
      VPort.stop(@device)
    end)
  end

  defp round_trip(port, data) do
    {id, handle} = Handle.new(port, byte_size(data))
    :ok = VPort.upload(port, id, :f32, {div(byte_size(data), 4)}, data)
    assert VPort.read(port, id, 0, byte_size(data)) == {:ok, data}
    middle = div(byte_size(data), 2)
    rest = byte_size(data) - middle
    assert VPort.read(port, id, middle, rest) == {:ok, binary_part(data, middle, rest)}
    Handle.keep(handle)
    id
  end

  defp data(size), do: :binary.copy(<<1, 2, 3, 5, 8, 13, 21, 34>>, div(size, 8))

  test "many bytes go through files that nobody else can read and nobody has to clean up" do
    port = VPort.get!(@device)
    dir = port.bulk.dir
    assert Bitwise.band(File.stat!(dir).mode, 0o777) == 0o700
    assert Bitwise.band(File.stat!(Path.dirname(dir)).mode, 0o777) == 0o700

    round_trip(port, data(65_528))
    assert %{files: 0} = VPort.call!(port, :stats)
    round_trip(port, data(65_536))
    round_trip(port, data(40_000_000))
    assert %{files: 2} = VPort.call!(port, :stats)
    assert File.ls!(dir) == []

    VPort.stop(@device)
    refute File.exists?(dir)
  end

  test "a file is private and is not written twice" do
    port = VPort.get!(@device)
    assert {:ok, name} = Bulk.write(port.bulk, 12_345_678, "secret")
    path = Path.join(port.bulk.dir, name)
    assert Bitwise.band(File.stat!(path).mode, 0o777) == 0o600
    assert {:error, :eexist} = Bulk.write(port.bulk, 12_345_678, "other")
    assert {:ok, "secret"} = Bulk.take(port.bulk, name, 6)
    refute File.exists?(path)
    assert {:error, :enoent} = Bulk.take(port.bulk, name, 6)
  end

  test "names that lead elsewhere do not" do
    port = VPort.get!(@device)
    assert {:error, :enoent} = Bulk.take(port.bulk, "../../../../etc/hostname", 1)
  end

  test "NXVK_BULK=stdio sends everything in frames, in parts where there is much" do
    System.put_env("NXVK_BULK", "stdio")
    port = VPort.get!(@device)
    assert port.bulk == nil

    for size <- [8, 100_000, 8 * 1024 * 1024, 8 * 1024 * 1024 + 8, 40_000_000] do
      round_trip(port, data(size))
    end

    assert %{files: 0} = VPort.call!(port, :stats)
  end

  test "where a file cannot be written the bytes go through stdio" do
    port = VPort.get!(@device)
    File.rm_rf!(port.bulk.dir)
    bytes = data(20_000_000)
    {id, handle} = Handle.new(port, 20_000_000)
    assert :ok = VPort.upload(port, id, :f32, {5_000_000}, bytes)
    assert {:ok, %{files: 0, tensors: 1}} = VPort.call(port, :stats)
    assert VPort.read(port, id, 0, 1_000) == {:ok, binary_part(bytes, 0, 1_000)}
    Handle.keep(handle)
  end

  test "where the port cannot write a file it is read in frames" do
    FakePort.start_using(:full)
    port = VPort.get!(@device)
    round_trip(port, data(1_000_000))
    assert File.ls!(port.bulk.dir) == []
  end

  test "an answer that nobody waits for any more leaves no file" do
    port = VPort.get!(@device)
    {id, handle} = Handle.new(port, 80_000)
    :ok = VPort.upload(port, id, :f32, {20_000}, data(80_000))
    assert {:ok, :ok} = VPort.call(port, {:sync, []})
    VPort.cast(port, {:op, {:slow, :f32, {}, []}, [], []})
    reader = spawn(fn -> VPort.read(port, id, 0, 80_000) end)
    assert {:error, %DeviceError{reason: :timeout}} = VPort.read(port, id, 0, 80_000, 10)
    Process.exit(reader, :kill)
    assert {:ok, _} = VPort.call(port, :stats)
    assert File.ls!(port.bulk.dir) == []
    Handle.keep(handle)
  end

  test "a file that is shorter than promised is an error" do
    FakePort.start_using(:short)
    port = VPort.get!(@device)
    {id, handle} = Handle.new(port, 80_000)
    :ok = VPort.upload(port, id, :f32, {20_000}, data(80_000))
    assert {:error, %DeviceError{op: :read, message: message}} = VPort.read(port, id, 0, 80_000)
    assert message =~ "40000 bytes of 80000"
    Handle.keep(handle)
  end

  test "what a killed node left behind is cleaned up, what a living one has is not" do
    port = VPort.get!(@device)
    root = port.bulk.dir |> Path.dirname() |> Path.dirname()

    # No process has so high a number.
    mine = port.bulk.dir |> Path.dirname() |> Path.basename()
    prefix = String.replace_suffix(mine, System.pid(), "")
    dead = Path.join(root, prefix <> "99999999")
    alive = Path.join(root, prefix <> "1")
    # That number may live where this host cannot see it.
    elsewhere = Path.join(root, "nxvk-0-99999999")
    for dir <- [dead, alive, elsewhere], do: File.mkdir_p!(Path.join(dir, "0.1"))
    on_exit(fn -> for dir <- [alive, elsewhere], do: File.rm_rf!(dir) end)

    Bulk.clean_stale()
    refute File.exists?(dead)
    assert File.exists?(alive)
    assert File.exists?(elsewhere)
    assert File.exists?(port.bulk.dir)
  end
end

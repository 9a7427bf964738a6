defmodule Nx.Vulkan.RealPortTest do
  @moduledoc false
  # What stands on the real port program: needs NXVK_PORT or a built one, and a Vulkan device.
  use ExUnit.Case

  import ExUnit.CaptureLog

  alias Nx.Vulkan.{DeviceError, Handle, Reaper}
  alias Nx.Vulkan.Port, as: VPort
  alias Nx.Vulkan.Port.Executable

  @program (case Executable.find() do
              {:ok, path} -> path
              {:error, _} -> nil
            end)

  if @program == nil do
    IO.puts("SKIPPED the tests on the real port: there is no port program")
    @moduletag skip: "no port program"
  end

  setup_all do
    on_exit(fn -> VPort.stop(0) end)
    if @program, do: {:ok, port: VPort.get!(0)}, else: :ok
  end

  # A test that restarts the port leaves another.
  setup do
    if @program, do: {:ok, port: VPort.get!(0)}, else: :ok
  end

  defp tensor(port, floats) do
    data = for f <- floats, into: <<>>, do: <<f::float-32-little>>
    {id, handle} = Handle.new(port, byte_size(data))
    :ok = VPort.upload(port, id, :f32, {length(floats)}, data)
    {id, handle}
  end

  defp op(port, name, shape, ins, bytes) do
    {id, handle} = Handle.new(port, bytes)
    :ok = VPort.cast(port, {:op, {name, :f32, shape, []}, ins, [id]})
    {id, handle}
  end

  defp eventually(check, tries \\ 200)
  defp eventually(_, 0), do: false
  defp eventually(check, tries), do: check.() || (Process.sleep(50) && eventually(check, tries - 1))

  test "says why it cannot start" do
    assert {:error, %DeviceError{reason: :start, message: message}} = VPort.start(57)
    assert message =~ "cannot start"
    assert message =~ "57"
  end

  test "greets, computes and reads", %{port: port} do
    assert is_binary(port.info.device.name)
    {a, ha} = tensor(port, [1.0, 2.0, 3.0])
    {b, hb} = op(port, :add, {3}, [a, {:f32, <<0.5::float-32-little>>}], 12)

    assert VPort.read(port, b, 0, 12) ==
             {:ok, <<1.5::float-32-little, 2.5::float-32-little, 3.5::float-32-little>>}

    assert VPort.read(port, b, 4, 4) == {:ok, <<2.5::float-32-little>>}
    Handle.keep([ha, hb])
  end

  test "many bytes go both ways, through files and through stdio", %{port: port} do
    # Over the size of a frame, and no multiple of anything.
    bytes = :binary.copy(<<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>>, 1_500_001)
    n = div(byte_size(bytes), 4)

    check = fn port ->
      {id, handle} = Handle.new(port, byte_size(bytes))
      :ok = VPort.upload(port, id, :u32, {n}, bytes)
      assert VPort.read(port, id, 0, byte_size(bytes)) == {:ok, bytes}
      assert VPort.read(port, id, 12_000_000, 1_001) == {:ok, binary_part(bytes, 12_000_000, 1_001)}
      Handle.keep(handle)
    end

    check.(port)
    if port.bulk, do: assert(File.ls!(port.bulk.dir) == [])

    System.put_env("NXVK_BULK", "stdio")
    on_exit(fn -> System.delete_env("NXVK_BULK") end)
    {:ok, port} = VPort.restart(0)
    assert port.bulk == nil
    check.(port)
  end

  test "an operation that fails tells the first read, by name", %{port: port} do
    {a, ha} = tensor(port, [1.0, 2.0])
    {b, hb} = tensor(port, [1.0, 2.0, 3.0])
    {c, hc} = op(port, :add, {2}, [a, b], 8)
    {d, hd} = op(port, :negate, {2}, [c], 8)
    assert {:error, %Nx.Vulkan.Error{op: :add} = error} = VPort.read(port, d, 0, 8)
    assert error.message =~ "add"
    assert VPort.call(port, {:sync, [d]}) == {:error, error}
    assert {:ok, _} = VPort.call(port, :stats)
    Handle.keep([ha, hb, hc, hd])
  end

  test "a freed tensor is not read, nor another in its place", %{port: port} do
    {a, ha} = tensor(port, [1.0])
    assert Handle.free(ha) == :ok
    {_b, hb} = tensor(port, [2.0])
    assert {:error, %Nx.Vulkan.Error{}} = VPort.read(port, a, 0, 4)
    Handle.keep([ha, hb])
  end

  @tag timeout: 180_000
  test "100,000 operations that drop each result stay within bounds, without a forced collection", %{
    port: port
  } do
    before = VPort.call!(port, :stats).memory_in_use

    {us, :ok} =
      Task.async(fn ->
        {a, ha} = tensor(port, List.duplicate(1.0, 1_024))

        :timer.tc(fn ->
          for n <- 1..100_000 do
            {_, handle} = op(port, :add, {1_024}, [a, a], 4_096)
            Handle.keep(handle)
            # One in the loop that reads now and then, as everybody does.
            if rem(n, 10_000) == 0, do: :ok = VPort.call!(port, {:sync, []})
          end

          Handle.keep(ha)
          :ok
        end)
      end)
      |> Task.await(:infinity)

    stats = VPort.call!(port, :stats)
    peak = div(stats.memory_peak, 1024 * 1024)

    IO.puts(
      "\n100,000 operations: #{Float.round(us / 100_000, 1)} us each, device memory #{peak} MiB at most"
    )

    # 100,000 results are 400 MB.
    assert stats.memory_peak < 100 * 1024 * 1024 + before
    assert eventually(fn -> Reaper.sweep() && VPort.call!(port, :stats).memory_in_use <= before + 65_536 end)
  end

  test "the port dies with a call in flight, and the next epoch works", %{port: port} do
    capture_log(fn ->
      {a, ha} = tensor(port, [1.0])
      waiting = for _ <- 1..4, do: spawn_monitor(fn -> call_until_error(port) end)
      Process.sleep(50)
      {_, 0} = System.cmd("kill", ["-9", "#{port.os_pid}"])

      for {_, ref} <- waiting do
        assert_receive {:DOWN, ^ref, _, _, {:ended, %DeviceError{reason: :port_died}}}, 10_000
      end

      next = VPort.get!(0)
      assert next.epoch == port.epoch + 1
      assert_raise DeviceError, ~r/lost with the device/, fn -> Handle.id!(ha, next) end
      {b, hb} = tensor(next, [3.0])
      assert VPort.read(next, b, 0, 4) == {:ok, <<3.0::float-32-little>>}
      Handle.keep([a, ha, hb])
    end)
  end

  defp call_until_error(port) do
    case VPort.call(port, :stats) do
      {:ok, _} -> call_until_error(port)
      {:error, error} -> exit({:ended, error})
    end
  end

  @tag timeout: 120_000
  test "when the node is killed, the port ends with it" do
    paths = for path <- :code.get_path(), do: ["-pa", List.to_string(path)]

    script = """
    {:ok, _} = if Process.whereis(Nx.Vulkan.Supervisor), do: {:ok, 0}, else: Nx.Vulkan.Application.start(:normal, [])
    port = Nx.Vulkan.Port.get!(0)
    IO.puts("\#{System.pid()} \#{port.os_pid} \#{port.bulk && port.bulk.dir}")
    spawn(fn -> for _ <- Stream.cycle([1]) do
      {_, h} = Nx.Vulkan.Handle.new(port, 4)
      id = Nx.Vulkan.Handle.id(h)
      Nx.Vulkan.Port.cast(port, {:op, {:iota, :f32, {1_000_000}, %{axis: nil}}, [], [id]})
      Nx.Vulkan.Port.call(port, {:sync, [id]})
      Nx.Vulkan.Handle.keep(h)
    end end)
    Process.sleep(:infinity)
    """

    node =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        {:line, 1000},
        args: List.flatten(paths) ++ ["-e", script]
      ])

    assert_receive {^node, {:data, {:eol, line}}}, 60_000
    [beam, port | dir] = String.split(line)
    Process.sleep(300)
    {_, 0} = System.cmd("kill", ["-9", beam])

    assert eventually(fn -> not alive?(port) end, 60), "port #{port} outlives its node"

    # What it left behind goes when the next node starts a port.
    for dir <- dir do
      Nx.Vulkan.Port.Bulk.clean_stale()
      refute File.exists?(dir)
    end
  end

  # A process that has ended but that nobody has waited for (its parent is gone) still answers kill -0.
  defp alive?(pid) do
    case File.read("/proc/#{pid}/stat") do
      {:ok, stat} -> not (stat |> String.split(") ") |> List.last() |> String.starts_with?("Z"))
      {:error, _} -> match?({_, 0}, System.cmd("kill", ["-0", pid], stderr_to_stdout: true))
    end
  end
end

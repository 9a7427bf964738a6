defmodule Nx.Vulkan.PortTest do
  use ExUnit.Case

  import ExUnit.CaptureLog

  alias Nx.Vulkan.{DeviceError, Error, Handle}
  alias Nx.Vulkan.Port, as: VPort
  alias Nx.Vulkan.Port.Table
  alias Nx.Vulkan.Test.FakePort

  # A device number that nothing else uses.
  @device 920

  setup do
    FakePort.start_using()
    on_exit(fn -> VPort.stop(@device) end)
  end

  defp tensor(port, data) do
    {id, handle} = Handle.new(port, byte_size(data))
    :ok = VPort.upload(port, id, :f32, {div(byte_size(data), 4)}, data)
    {id, handle}
  end

  defp op(port, name, ins, outs), do: VPort.cast(port, {:op, {name, :f32, {4}, []}, ins, outs})

  test "starts on first use, once for all who ask" do
    assert VPort.whereis(@device) == nil
    ports = 1..8 |> Enum.map(fn _ -> Task.async(fn -> VPort.get!(@device) end) end) |> Task.await_many()
    assert [port] = Enum.uniq(ports)
    assert port.info.device.name == "fake"
    assert port.info.epoch == port.epoch
    # A device other than 0 is named to the program.
    assert port.info.selected == "920"
    assert VPort.get!(port) == port
    assert VPort.whereis(@device) == port
    assert @device in VPort.running()
  end

  test "bytes go there and come back" do
    port = VPort.get!(@device)
    {id, handle} = tensor(port, <<1, 2, 3, 4, 5, 6, 7, 8>>)
    {copy, copy_handle} = Handle.new(port, 8)
    op(port, :copy, [id], [copy])
    assert VPort.read(port, copy, 0, 8) == {:ok, <<1, 2, 3, 4, 5, 6, 7, 8>>}
    assert VPort.read(port, copy, 2, 3) == {:ok, <<3, 4, 5>>}
    assert VPort.read(port, copy, 8, 0) == {:ok, <<>>}
    assert VPort.call!(port, {:sync, [copy]}) == :ok
    Handle.keep([handle, copy_handle])
  end

  test "a failed operation is told by the read, and by sync" do
    port = VPort.get!(@device)
    {id, handle} = Handle.new(port, 16)
    op(port, :fail, [], [id])

    assert {:error, %Error{op: :fail, reason: :shape, message: "fail: it was asked to"}} =
             VPort.read(port, id, 0, 16)

    assert_raise Error, "fail: it was asked to", fn -> VPort.call!(port, {:sync, [id]}) end
    assert {:error, %Error{reason: :unknown}} = VPort.call(port, :nonsense)
    assert {:error, %Error{reason: :protocol}} = VPort.call(port, {:profile, true})
    Handle.keep(handle)
  end

  test "a call that is not answered in time gives up and leaves nothing behind" do
    port = VPort.get!(@device)
    before = Table.waiting()
    assert {:error, %DeviceError{reason: :timeout, op: :info} = error} = VPort.call(port, :info, 20)
    assert error.message =~ "info: no answer from device 920 within 20 ms"
    assert Table.waiting() == before
    # The late answer is not taken for that of the next call, and not put into the mailbox.
    assert {:ok, %{tensors: _}} = VPort.call(port, :stats)
    refute_received _
  end

  test "a caller that dies while it waits leaves nothing that hurts" do
    port = VPort.get!(@device)
    pid = spawn(fn -> VPort.call(port, :info) end)
    Process.sleep(50)
    Process.exit(pid, :kill)
    assert {:ok, _} = VPort.call(port, :stats)
    assert Table.waiting() == 0
  end

  test "many callers get each their own answer" do
    port = VPort.get!(@device)

    1..50
    |> Enum.map(fn n ->
      Task.async(fn ->
        for k <- 1..40 do
          data = <<n::32, k::32, n * k::64>>
          {id, handle} = tensor(port, data)
          assert VPort.read(port, id, 0, 16) == {:ok, data}
          Handle.keep(handle)
        end
      end)
    end)
    |> Task.await_many(60_000)
  end

  test "an id that was sent by message after its cast is known to the port before its receiver can use it" do
    port = VPort.get!(@device)
    parent = self()
    rounds = 500

    pairs =
      for _ <- 1..4 do
        reader =
          spawn_link(fn ->
            wrong =
              for _ <- 1..rounds, reduce: 0 do
                wrong ->
                  receive do
                    {id, data, handle} ->
                      result = VPort.read(port, id, 0, 8)
                      Handle.keep(handle)
                      if result == {:ok, data}, do: wrong, else: wrong + 1
                  end
              end

            send(parent, {:wrong, wrong})
          end)

        spawn_link(fn ->
          for n <- 1..rounds do
            data = <<n::64>>
            {id, handle} = tensor(port, data)
            send(reader, {id, data, handle})
          end
        end)
      end

    for _ <- pairs, do: assert_receive({:wrong, 0}, 30_000)
  end

  test "free happens at once, and only once" do
    port = VPort.get!(@device)
    {id, handle} = tensor(port, <<1::64>>)
    copy = :binary.copy(handle)
    assert Handle.check(handle) == :ok
    assert Handle.free(handle) == :ok
    assert Handle.free(handle) == :already_deallocated
    assert Handle.free(copy) == :already_deallocated
    assert Handle.freed?(handle)
    assert {:error, %Error{reason: :freed}} = Handle.check(handle)
    assert {:error, %Error{reason: :freed}} = VPort.read(port, id, 0, 8)
    Handle.keep(handle)
  end

  test "tensors that nobody holds are freed on the device" do
    port = VPort.get!(@device)

    spawn(fn -> for n <- 1..500, do: tensor(port, <<n::64>>) end)
    {id, handle} = tensor(port, <<7::64>>)

    assert eventually(fn -> VPort.call!(port, :stats).tensors == 1 end)
    assert VPort.read(port, id, 0, 8) == {:ok, <<7::64>>}
    Handle.keep(handle)
  end

  test "events become log lines" do
    port = VPort.get!(@device)

    log =
      capture_log(fn ->
        op(port, :log, [], [VPort.next_id(port)])
        VPort.cast(port, {:nonsense})
        VPort.call!(port, :stats)
        # The owner has seen the events that came before the answer; the logger may be behind.
        Logger.flush()
      end)

    assert log =~ "[warning] nx_vulkan: a word from the port"
    assert log =~ "[error] nx_vulkan: no request"
  end

  test "stop says so to those who use what was there" do
    port = VPort.get!(@device)
    {_, handle} = tensor(port, <<1::64>>)
    :ok = VPort.stop(@device)
    :ok = VPort.stop(@device)
    assert VPort.whereis(@device) == nil
    error = assert_raise DeviceError, fn -> op(port, :copy, [1], [2]) end
    assert error.reason == :stopped
    assert {:error, %DeviceError{reason: :stopped}} = VPort.call(port, :stats)
    assert {:error, %DeviceError{reason: :lost}} = Handle.check(handle)

    {:ok, next} = VPort.restart(@device)
    assert next.epoch == port.epoch + 1
    assert_raise DeviceError, ~r/lost with the device/, fn -> Handle.id!(handle, next) end
  end

  defp eventually(check, tries \\ 100)
  defp eventually(_, 0), do: false

  defp eventually(check, tries) do
    check.() || (Process.sleep(50) && eventually(check, tries - 1))
  end
end

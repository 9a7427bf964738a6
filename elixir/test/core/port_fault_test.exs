defmodule Nx.Vulkan.PortFaultTest do
  use ExUnit.Case

  import ExUnit.CaptureLog

  alias Nx.Vulkan.{DeviceError, Handle}
  alias Nx.Vulkan.Port, as: VPort
  alias Nx.Vulkan.Port.Table
  alias Nx.Vulkan.Test.FakePort

  @device 921

  setup do
    FakePort.start_using()
    settings = [:max_restarts, :max_seconds, :start_timeout]
    old = for key <- settings, do: {key, Application.fetch_env(:nx_vulkan, key)}

    on_exit(fn ->
      for {key, value} <- old do
        case value do
          {:ok, value} -> Application.put_env(:nx_vulkan, key, value)
          :error -> Application.delete_env(:nx_vulkan, key)
        end
      end

      VPort.stop(@device)
    end)
  end

  defp op(port, name), do: VPort.cast(port, {:op, {name, :f32, {4}, []}, [], [VPort.next_id(port)]})

  # The supervisor's own reports of ended children are not of interest.
  defp quietly(fun) do
    parent = self()
    ref = make_ref()
    log = capture_log(fn -> send(parent, {ref, fun.()}) end)
    assert_received {^ref, result}
    {result, log}
  end

  defp os_alive?(pid), do: match?({_, 0}, System.cmd("kill", ["-0", "#{pid}"], stderr_to_stdout: true))

  defp eventually(check, tries \\ 100)
  defp eventually(_, 0), do: false
  defp eventually(check, tries), do: check.() || (Process.sleep(50) && eventually(check, tries - 1))

  describe "a port that does not come up" do
    test "is not there" do
      System.put_env("NXVK_PORT", "/nowhere/nxvk_port")
      assert {:error, %DeviceError{reason: :not_found, message: message}} = VPort.start(@device)
      assert message =~ "NXVK_PORT is /nowhere/nxvk_port, which is not an executable file"
      assert_raise DeviceError, ~r/not an executable file/, fn -> VPort.get!(@device) end
    end

    test "is named by a path that is not the same everywhere" do
      System.put_env("NXVK_PORT", "bin/nxvk_port")
      assert {:error, %DeviceError{reason: :not_found, message: message}} = VPort.start(@device)
      assert message =~ "NXVK_PORT is bin/nxvk_port: it wants an absolute path, such as /"
    end

    test "is no number" do
      assert_raise DeviceError, ~r/a device is a number.*Got: "llvmpipe"/, fn -> VPort.get!("llvmpipe") end
    end

    test "has a setting that says nothing" do
      System.put_env("NXVK_BULK", "bogus")
      on_exit(fn -> System.delete_env("NXVK_BULK") end)
      assert {:error, %DeviceError{reason: :start, message: message}} = VPort.start(@device)
      assert message =~ ~s(NXVK_BULK is "stdio" or not set, got: "bogus")
    end

    test "is no program" do
      path = Path.join(System.tmp_dir!(), "nxvk-noprogram-#{System.pid()}")
      File.write!(path, <<0, 1, 2, 3>>)
      File.chmod!(path, 0o755)
      on_exit(fn -> File.rm(path) end)
      System.put_env("NXVK_PORT", path)
      assert {:error, %DeviceError{reason: :start, message: message}} = VPort.start(@device)
      assert message =~ path or message =~ "ended before it was ready"
    end

    test "speaks another version" do
      FakePort.start_using(:version)
      assert {:error, %DeviceError{reason: :version, message: message}} = VPort.start(@device)
      assert message =~ "speaks version 2 of the wire, this library version 1"
      assert message =~ "upgrade the library :nx_vulkan"
    end

    test "refuses" do
      FakePort.start_using(:refuse)

      assert {:error, %DeviceError{reason: :start, message: "device 921 (epoch " <> message}} =
               VPort.start(@device)

      assert message =~ "no Vulkan device"
    end

    test "ends" do
      FakePort.start_using(:exit)
      assert {:error, %DeviceError{reason: :start, message: message}} = VPort.start(@device)
      assert message =~ "exit status 7"
    end

    test "writes garbage" do
      FakePort.start_using(:garbage)
      assert {:error, %DeviceError{reason: :protocol, message: message}} = VPort.start(@device)
      assert message =~ "21 bytes that are no frame"
    end

    test "says nothing, and is killed" do
      FakePort.start_using(:silent)
      Application.put_env(:nx_vulkan, :start_timeout, 1_500)
      assert {:error, %DeviceError{reason: :timeout}} = VPort.start(@device)
    end

    test "talks before it greets" do
      FakePort.start_using(:log)
      {result, log} = quietly(fn -> VPort.start(@device) end)
      assert {:ok, _} = result
      assert log =~ "a word before the greeting"
    end

    test "and comes up when it is tried again" do
      FakePort.start_using(:refuse)
      assert {:error, _} = VPort.start(@device)
      FakePort.start_using()
      assert {:ok, _} = VPort.start(@device)
    end
  end

  describe "a port that dies" do
    test "by kill -9: waiting calls and later casts get the fault, and a new epoch starts" do
      port = VPort.get!(@device)
      {_, handle} = Handle.new(port, 4)

      {_, log} =
        quietly(fn ->
          waiting =
            for _ <- 1..10 do
              Task.async(fn -> VPort.call(port, :info) end)
            end

          assert eventually(fn -> Table.waiting() == 10 end)
          started = System.monotonic_time(:millisecond)
          {_, 0} = System.cmd("kill", ["-9", "#{port.os_pid}"])

          for result <- Task.await_many(waiting) do
            assert {:error, %DeviceError{reason: :port_died} = error} = result
            assert error.message =~ "signal 9" or error.message =~ "epipe"
          end

          assert System.monotonic_time(:millisecond) - started < 2_000
          assert Table.waiting() == 0

          assert {:error, %DeviceError{reason: :port_died}} = VPort.call(port, :stats)
          assert_raise DeviceError, ~r/its port ended/, fn -> op(port, :copy) end

          next = VPort.get!(@device)
          assert next.epoch == port.epoch + 1
          assert {:ok, %{tensors: 0}} = VPort.call(next, :stats)
          error = assert_raise DeviceError, fn -> Handle.id!(handle, next) end
          assert error.reason == :lost
        end)

      assert log =~ "nx_vulkan: device 921"
    end

    test "while many processes write to it" do
      port = VPort.get!(@device)

      quietly(fn ->
        writers =
          for _ <- 1..8 do
            Task.async(fn ->
              try do
                for _ <- Stream.cycle([1]) do
                  VPort.cast(port, {:upload, VPort.next_id(port), :u8, {30_000}, :binary.copy(<<0>>, 30_000)})
                end
              rescue
                error in DeviceError -> error
              end
            end)
          end

        Process.sleep(100)
        op(port, :kill)

        for error <- Task.await_many(writers, 20_000) do
          assert %DeviceError{reason: :port_died, epoch: epoch} = error
          assert epoch == port.epoch
        end

        assert VPort.get!(@device).epoch > port.epoch
      end)
    end

    test "with an exit status" do
      port = VPort.get!(@device)

      quietly(fn ->
        op(port, :exit)
        assert {:error, %DeviceError{message: message}} = VPort.call(port, :stats)
        assert message =~ "exit status 3"
      end)
    end

    test "by garbage on its stdout" do
      port = VPort.get!(@device)

      quietly(fn ->
        op(port, :garbage)
        assert {:error, %DeviceError{reason: :protocol, message: message}} = VPort.call(port, :stats)
        assert message =~ "19 bytes that are no frame of the wire"
        assert message =~ "lavapipe says"
        assert VPort.get!(@device).epoch == port.epoch + 1
        assert eventually(fn -> not os_alive?(port.os_pid) end)
      end)
    end

    test "because its device is lost" do
      port = VPort.get!(@device)

      quietly(fn ->
        op(port, :fault)
        assert {:error, %DeviceError{reason: :device_lost, message: message}} = VPort.call(port, :info)
        assert message =~ "vkQueueSubmit: device lost"
        assert VPort.get!(@device).epoch == port.epoch + 1
      end)
    end

    test "too often is left down, says so, and comes back on request" do
      Application.put_env(:nx_vulkan, :max_restarts, 1)
      Application.put_env(:nx_vulkan, :max_seconds, 60)

      quietly(fn ->
        first = VPort.get!(@device)
        op(first, :exit)
        assert {:error, _} = VPort.call(first, :stats)
        second = VPort.get!(@device)
        assert second.epoch == first.epoch + 1
        op(second, :exit)
        assert {:error, _} = VPort.call(second, :stats)

        assert eventually(fn ->
                 match?({:error, %DeviceError{reason: :down}}, VPort.start(@device))
               end)

        error = assert_raise DeviceError, fn -> VPort.get!(@device) end
        assert error.message =~ "device 921 is down: its port ended more than 1 times within 60 seconds"
        assert error.message =~ "exit status 3"
        assert error.message =~ "Nx.Vulkan.Port.restart(921)"

        assert {:ok, third} = VPort.restart(@device)
        assert third.epoch > second.epoch
        assert {:ok, _} = VPort.call(third, :stats)
      end)
    end
  end

  test "a port that hangs suspends who writes to it, and restart ends that" do
    port = VPort.get!(@device)
    op(port, :hang)
    assert {:error, %DeviceError{reason: :timeout}} = VPort.call(port, :stats, 100)

    writer =
      Task.async(fn ->
        try do
          for _ <- 1..1_000, do: VPort.cast(port, {:upload, 1, :u8, {60_000}, :binary.copy(<<0>>, 60_000)})
          :written
        rescue
          error in DeviceError -> error
        end
      end)

    assert Task.yield(writer, 300) == nil
    assert {:ok, next} = VPort.restart(@device)
    assert next.epoch == port.epoch + 1
    assert %DeviceError{reason: :stopped} = Task.await(writer, 10_000)
    # Its stdin is closed, but it does not read.
    assert eventually(fn -> not os_alive?(port.os_pid) end)
  end

  test "a killed owner takes its calls along" do
    port = VPort.get!(@device)

    quietly(fn ->
      waiting = Task.async(fn -> VPort.call(port, :info) end)
      assert eventually(fn -> Table.waiting() == 1 end)
      Process.exit(port.owner, :kill)
      assert {:error, %DeviceError{reason: :port_died}} = Task.await(waiting)
      assert eventually(fn -> match?(%{epoch: e} when e > port.epoch, VPort.whereis(@device)) end)

      # Where nobody starts the next one, that is seen too.
      Application.put_env(:nx_vulkan, :max_restarts, 0)
      {:ok, last} = VPort.restart(@device)
      Process.exit(last.owner, :kill)
      assert eventually(fn -> match?({:error, %DeviceError{reason: :down}}, VPort.start(@device)) end)
    end)
  end
end

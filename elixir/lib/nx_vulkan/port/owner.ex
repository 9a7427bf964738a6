defmodule Nx.Vulkan.Port.Owner do
  @moduledoc """
  Owns one port program for one epoch.

  It starts the program, greets it, publishes the `t:Nx.Vulkan.Port.t/0` that everybody writes through, hands
  replies to their callers without decoding them, and turns events into log lines. When the program ends, for
  whatever reason, it notes why, and ends too: its supervisor starts the next epoch.

  A program that ends while it is written to shows only as `{:EXIT, port, :epipe}`, an idle one also by its exit
  status; hence the trapped exits.
  """

  use GenServer, restart: :permanent, shutdown: 5_000
  require Logger

  alias Nx.Vulkan.{DeviceError, Handle, Wire}
  alias Nx.Vulkan.Port, as: VPort
  alias Nx.Vulkan.Port.{Bulk, Executable, Table}

  @start_timeout 60_000

  # How long an ended port program may take to be gone before it is killed.
  @grace 2_000

  @doc false
  def start_link(device) do
    # Frames that have been passed on are garbage here, and keep their bytes until they are collected.
    GenServer.start_link(__MODULE__, device, spawn_opt: [message_queue_data: :off_heap, fullsweep_after: 16])
  end

  @impl true
  def init(device) do
    Process.flag(:trap_exit, true)
    # All that it does for a reply is to pass it on, and somebody waits for it.
    Process.flag(:priority, :high)
    epoch = Table.next_epoch(device)
    Table.forget_calls(device, epoch)
    state = %{device: device, epoch: epoch, port: nil, os_pid: nil, bulk: nil, status: nil}

    with {:ok, path} <- find(state),
         :ok <- settings(state),
         {:ok, state} <- spawn_port(path, state),
         {:ok, info} <- greet(state) do
      publish(state, info)
      {:ok, state}
    else
      {:error, error, state} ->
        Table.put_fault(error)
        close(state)

        # The last of several restarts says why the device is down; a first start just fails.
        if match?({:restarting, _}, :persistent_term.get({VPort, device}, nil)),
          do: :persistent_term.put({VPort, device}, {:restarting, error})

        telemetry([:nx_vulkan, :port, :fault], state, %{reason: error.reason})
        {:stop, error}
    end
  end

  defp find(state) do
    with {:error, message} <- Executable.find(),
         do: {:error, error(state, :not_found, message), state}
  end

  defp settings(state) do
    with {:error, message} <- Bulk.setting(),
         do: {:error, error(state, :start, message), state}
  end

  defp spawn_port(path, state) do
    bulk = Bulk.open(state.device, state.epoch)

    port =
      Port.open({:spawn_executable, path}, [
        {:packet, 4},
        :binary,
        :exit_status,
        :hide,
        args: ["serve"],
        env: environment(state.device)
      ])

    os_pid =
      case Port.info(port, :os_pid) do
        {:os_pid, pid} -> pid
        nil -> nil
      end

    {:ok, %{state | port: port, os_pid: os_pid, bulk: bulk}}
  rescue
    error in ErlangError ->
      message = "cannot run #{path}: #{inspect(error.original)}"
      {:error, error(state, :start, message), state}
  end

  # Device 0 is the port's own choice, which NXVK_DEVICE may make.
  defp environment(0), do: []
  defp environment(device), do: [{~c"NXVK_DEVICE", Integer.to_charlist(device)}]

  defp greet(state) do
    options = %{epoch: state.epoch}

    options =
      if state.bulk,
        do: Map.merge(options, %{runtime_dir: state.bulk.dir, bulk_threshold: state.bulk.threshold}),
        else: options

    try do
      :erlang.port_command(state.port, Wire.call(0, {:hello, Wire.version(), options}))
    rescue
      # It has ended already; the mailbox says how.
      ArgumentError -> :ok
    end

    timeout = Application.get_env(:nx_vulkan, :start_timeout, @start_timeout)
    await_hello(state, System.monotonic_time(:millisecond) + timeout, timeout)
  end

  defp await_hello(%{port: port} = state, deadline, timeout) do
    receive do
      {^port, {:data, frame}} ->
        case Wire.split(frame) do
          {:reply, 0, term} -> hello_reply(state, Wire.reply(term))
          {:event, term} -> await_after(event(Wire.event(term), state), state, deadline, timeout)
          _ -> {:error, error(state, :protocol, garbage(frame)), state}
        end

      {^port, {:exit_status, status}} ->
        state = %{state | status: status}
        message = "its port ended before it was ready, with #{status(status)}"
        {:error, error(state, :start, message), state}

      {:EXIT, ^port, reason} ->
        message = "its port ended before it was ready: #{inspect(reason)}"
        {:error, error(state, :start, message), state}
    after
      max(deadline - System.monotonic_time(:millisecond), 0) ->
        {:error, error(state, :timeout, "its port did not answer within #{timeout} ms"), state}
    end
  end

  defp await_after(:ok, state, deadline, timeout), do: await_hello(state, deadline, timeout)
  defp await_after({:fault, error}, state, _, _), do: {:error, error, state}

  defp hello_reply(state, {:ok, %{version: version} = info}) do
    if version == Wire.version(),
      do: {:ok, info},
      else: {:error, error(state, :version, version_message(version)), state}
  end

  defp hello_reply(state, {:ok, other}) do
    {:error, error(state, :protocol, "its port greets with #{inspect(other)}"), state}
  end

  defp hello_reply(state, {:error, %{reason: :version, message: message}}) do
    {:error, error(state, :version, message), state}
  end

  defp hello_reply(state, {:error, %{message: message}}) do
    {:error, error(state, :start, message), state}
  end

  defp version_message(version) do
    ours = Wire.version()

    advice =
      if is_integer(version) and version > ours,
        do: "upgrade the library :nx_vulkan, or use the port program that belongs to it",
        else: "upgrade the port program: \"mix compile --force\", or unset NXVK_PORT"

    "its port speaks version #{inspect(version)} of the wire, this library version #{ours}: #{advice}"
  end

  defp publish(state, info) do
    :persistent_term.put({VPort, state.device}, %VPort{
      device: state.device,
      epoch: state.epoch,
      port: state.port,
      owner: self(),
      ids: Table.ids(),
      stamp: Handle.stamp(state.device, state.epoch),
      bulk: state.bulk,
      os_pid: state.os_pid,
      info: info
    })

    Table.watch(state.device, state.epoch, self())
    telemetry([:nx_vulkan, :port, :start], state, %{info: info})
  end

  @impl true
  def handle_info({port, {:data, <<0, req::64, term::binary>>}}, %{port: port} = state) do
    case Table.take_call(req) do
      # The caller has given up or died, and reads no file.
      nil -> discard(term, state)
      ref -> send(ref, {ref, term})
    end

    {:noreply, state}
  end

  def handle_info({port, {:data, <<1, term::binary>>}}, %{port: port} = state) do
    case event(Wire.event(term), state) do
      :ok -> {:noreply, state}
      {:fault, error} -> fail(error, state)
    end
  end

  def handle_info({port, {:data, frame}}, %{port: port} = state) do
    fail(error(state, :protocol, garbage(frame)), state)
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = state) do
    state = %{state | status: status}
    fail(error(state, :port_died, "its port ended with #{status(status)}"), state)
  end

  def handle_info({:EXIT, port, reason}, %{port: port} = state) do
    fail(error(state, :port_died, "its port ended (#{inspect(reason)})"), state)
  end

  def handle_info(_other, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    if :persistent_term.get({VPort, state.device}, nil) |> ours?(state) do
      :persistent_term.erase({VPort, state.device})
      Table.put_fault(error(state, :stopped, "its port was stopped"))
    end

    close(state)
  end

  defp ours?(%VPort{epoch: epoch}, %{epoch: epoch}), do: true
  defp ours?(_, _), do: false

  defp discard(term, %{bulk: %Bulk{} = bulk}) do
    with {:ok, {:file, name, _}} <- Wire.reply(term), do: Bulk.delete(bulk, name)
  end

  defp discard(_, _), do: :ok

  # The fault is noted before this process ends: whoever sees it end can read it.
  defp fail(error, state) do
    Table.put_fault(error)
    :persistent_term.put({VPort, state.device}, {:restarting, error})
    Logger.error("nx_vulkan: " <> error.message)
    telemetry([:nx_vulkan, :port, :fault], state, %{reason: error.reason})
    {:stop, {:shutdown, error}, state}
  end

  defp event({:log, level, message}, _state) do
    level = if level in [:debug, :info, :warning, :error], do: level, else: :info
    Logger.log(level, ["nx_vulkan: ", message])
    :ok
  end

  # Before it is ready: why it could not start.
  defp event({:fault, :start, message}, state) do
    {:fault, error(state, :start, "its port cannot start: " <> message)}
  end

  defp event({:fault, _reason, message}, state) do
    {:fault, error(state, :device_lost, message)}
  end

  defp event({:unknown, event}, _state) do
    Logger.debug("nx_vulkan: event of unknown form: #{inspect(event, limit: 10)}")
    :ok
  end

  defp event(:error, state) do
    {:fault, error(state, :protocol, "its port sent an event that is no term")}
  end

  defp error(state, reason, message) do
    %DeviceError{
      device: state.device,
      epoch: state.epoch,
      reason: reason,
      at: DateTime.utc_now(),
      message: "device #{state.device} (epoch #{state.epoch}): #{message}"
    }
  end

  defp garbage(frame) do
    "its port wrote #{byte_size(frame)} bytes that are no frame of the wire, starting with " <>
      inspect(binary_part(frame, 0, min(byte_size(frame), 16)))
  end

  # erl_child_setup adds 128 to the number of a signal.
  defp status(status) when status > 128, do: "signal #{status - 128}"
  defp status(status), do: "exit status #{status}"

  defp close(%{port: nil} = state), do: Bulk.close(state.bulk)

  defp close(state) do
    try do
      Port.close(state.port)
    rescue
      ArgumentError -> :ok
    end

    # A closed stdin ends the program, unless it hangs; one that has an exit status has ended.
    if state.status == nil and state.os_pid, do: kill_later(state.os_pid)
    Bulk.close(state.bulk)
  end

  defp kill_later(os_pid) do
    spawn(fn ->
      if kill = System.find_executable("kill") do
        pid = Integer.to_string(os_pid)
        wait_gone(kill, pid, System.monotonic_time(:millisecond) + @grace)
      end
    end)
  end

  defp wait_gone(kill, pid, deadline) do
    gone? = not match?({_, 0}, System.cmd(kill, ["-0", pid], stderr_to_stdout: true))

    cond do
      gone? ->
        :ok

      System.monotonic_time(:millisecond) > deadline ->
        System.cmd(kill, ["-KILL", pid], stderr_to_stdout: true)

      true ->
        Process.sleep(50)
        wait_gone(kill, pid, deadline)
    end
  end

  @compile {:no_warn_undefined, :telemetry}
  defp telemetry(event, state, metadata) do
    if Code.ensure_loaded?(:telemetry) do
      :telemetry.execute(
        event,
        %{system_time: System.system_time()},
        Map.merge(metadata, %{device: state.device, epoch: state.epoch})
      )
    end

    :ok
  end
end

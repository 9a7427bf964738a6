defmodule Nx.Vulkan.Port do
  @moduledoc """
  One running port program: the way to a device.

  Any process writes to the port directly, so there is no process on the way of an operation:

      port = Nx.Vulkan.Port.get!(0)
      {id, handle} = Nx.Vulkan.Handle.new(port, 16)
      :ok = Nx.Vulkan.Port.upload(port, id, :f32, {4}, data)
      {:ok, ^data} = Nx.Vulkan.Port.read(port, id, 0, 16)

  `get!/1` starts the device on first use. A `t:t/0` belongs to one *epoch*, the life of one port program: take
  it once at the start of an operation, and use it for the ids and the frame alike. When the program dies, it
  is started again with the next epoch; a cast or call through the old `t:t/0` raises or returns the fault, and
  handles of the old epoch say that their tensors are lost.

  ## Casts and calls

  `cast/2` returns when the frame is in the port's queue, and does not wait for anything else. It may wait when the
  port is behind by more than the driver's queue holds. Frames are taken in the order in which the casts returned,
  across processes too: an id that was sent by message after its cast is known to the port before the receiver
  can use it.

  `call/3` waits for the answer. It watches the owner of the port, so a dying port gives an error at once.

  ## Telemetry

  `[:nx_vulkan, :port, :start]` when a port is ready, `[:nx_vulkan, :port, :fault]` when it has ended or did not come up.
  Measurements: `:system_time`. Metadata: `:device`, `:epoch`, and `:info` (what the port said of the device) or
  `:reason` (as in `Nx.Vulkan.DeviceError`).

  ## Configuration

    * `config :nx_vulkan, start: [0]` - devices to start with the application;
    * `config :nx_vulkan, start_timeout: 60_000` - milliseconds for a port to come up;
    * `config :nx_vulkan, max_restarts: 3, max_seconds: 30` - a port that dies more often than this is left down
      until `restart/1`;
    * `NXVK_PORT` - absolute path of the port program;
    * `NXVK_DEVICE` - index or name of the device that device 0 stands for;
    * `NXVK_BULK=stdio` - send all bytes over stdio, use no files.
  """

  alias Nx.Vulkan.DeviceError
  alias Nx.Vulkan.Port.{Bulk, Table}
  alias Nx.Vulkan.Wire

  @enforce_keys [:device, :epoch, :port, :owner, :ids, :stamp]
  defstruct [:device, :epoch, :port, :owner, :ids, :stamp, :bulk, :os_pid, info: %{}]

  @typedoc """
  A running port.

    * `:device`, `:epoch` - which device, and which of its lives;
    * `:ids` - the counters that ids of tensors (1) and requests (2) come from;
    * `:stamp` - what the handles of this port start with;
    * `:bulk` - where bulk files go, or `nil`;
    * `:info` - what the port said of its device when it started.
  """
  @type t :: %__MODULE__{
          device: non_neg_integer(),
          epoch: pos_integer(),
          port: port(),
          owner: pid(),
          ids: :atomics.atomics_ref(),
          stamp: binary(),
          bulk: Bulk.t() | nil,
          os_pid: non_neg_integer() | nil,
          info: map()
        }

  @type device :: non_neg_integer()

  @doc """
  The running port of a device, which is started if need be.

  Returns a `t:t/0` unchanged.
  """
  @spec get!(device() | t()) :: t()
  def get!(%__MODULE__{} = port), do: port

  def get!(device) do
    case :persistent_term.get({__MODULE__, device}, nil) do
      %__MODULE__{} = port ->
        port

      _ ->
        case start(device) do
          {:ok, port} -> port
          {:error, error} -> raise error
        end
    end
  end

  @doc """
  The running port of a device, or `nil`: starts nothing.
  """
  @spec whereis(device()) :: t() | nil
  def whereis(device) do
    case :persistent_term.get({__MODULE__, device}, nil) do
      %__MODULE__{} = port -> port
      _ -> nil
    end
  end

  @doc """
  Starts a device, or waits for the one that is starting.
  """
  @spec start(device()) :: {:ok, t()} | {:error, DeviceError.t()}
  def start(device) when is_integer(device) and device >= 0 do
    case whereis(device) do
      nil -> start_child(device)
      port -> {:ok, port}
    end
  end

  def start(other) do
    {:error,
     %DeviceError{
       device: other,
       reason: :start,
       message:
         "a device is a number, 0 or more, as \"nxvk_port info\" lists them; 0 is the one that NXVK_DEVICE names, " <>
           "by index or a part of its name, else the best. Got: #{inspect(other)}"
     }}
  end

  # A device whose port has ended is its supervisor's to restart; when that has given up, nobody starts it unasked.
  defp start_child(device) do
    with :ok <- ensure_application(device) do
      supervisor = Process.whereis(Nx.Vulkan.Port.Supervisor.name(device))

      case :persistent_term.get({__MODULE__, device}, nil) do
        %__MODULE__{} = port -> {:ok, port}
        {:restarting, last} when supervisor == nil -> {:error, down(device, last)}
        {:restarting, _} -> await(device, supervisor)
        nil -> start_supervisor(device)
      end
    end
  end

  defp start_supervisor(device) do
    case DynamicSupervisor.start_child(Nx.Vulkan.Port.Devices, {Nx.Vulkan.Port.Supervisor, device}) do
      {:ok, _} -> started(device)
      {:error, {:already_started, pid}} -> await(device, pid)
      {:error, reason} -> {:error, start_error(device, reason)}
    end
  end

  defp started(device) do
    case whereis(device) do
      # It died between its start and now.
      nil -> start(device)
      port -> {:ok, port}
    end
  end

  # A supervisor that restarts its child answers when that is done.
  defp await(device, supervisor) do
    try do
      Supervisor.count_children(supervisor)
    catch
      # It gives up at this moment.
      :exit, _ -> :ok
    end

    with nil <- whereis(device) do
      Process.sleep(10)
      start_child(device)
    else
      port -> {:ok, port}
    end
  end

  defp ensure_application(device) do
    if Process.whereis(Nx.Vulkan.Port.Devices) do
      :ok
    else
      case Application.ensure_all_started(:nx_vulkan) do
        {:ok, _} ->
          :ok

        {:error, reason} ->
          {:error,
           %DeviceError{
             device: device,
             reason: :start,
             message: "the application :nx_vulkan does not start: #{inspect(reason)}"
           }}
      end
    end
  end

  defp down(device, last) do
    {restarts, seconds} = Nx.Vulkan.Port.Supervisor.intensity()

    %{
      last
      | reason: :down,
        message:
          "device #{device} is down: its port ended more than #{restarts} times within #{seconds} seconds, " <>
            "the last time with: #{last.message}. Nx.Vulkan.Port.restart(#{device}) starts it again"
    }
  end

  defp start_error(_device, {:shutdown, {:failed_to_start_child, _, %DeviceError{} = error}}),
    do: error

  defp start_error(device, reason) do
    %DeviceError{
      device: device,
      reason: :start,
      message: "device #{device} does not start: #{inspect(reason)}"
    }
  end

  @doc """
  Stops the port of a device. Its tensors are lost.
  """
  @spec stop(device()) :: :ok
  def stop(device) do
    case Process.whereis(Nx.Vulkan.Port.Supervisor.name(device)) do
      nil ->
        :ok

      pid ->
        _ = DynamicSupervisor.terminate_child(Nx.Vulkan.Port.Devices, pid)
        :ok
    end

    :persistent_term.erase({__MODULE__, device})
    :ok
  end

  @doc """
  Stops the port of a device, one that hangs too, and starts a new one.
  """
  @spec restart(device()) :: {:ok, t()} | {:error, DeviceError.t()}
  def restart(device) do
    stop(device)
    start(device)
  end

  @doc """
  Devices that run now.
  """
  @spec running() :: [device()]
  def running do
    for {{__MODULE__, device}, %__MODULE__{}} <- :persistent_term.get(), do: device
  end

  @doc """
  A new tensor id. `Nx.Vulkan.Handle.new/2` makes one together with its handle.
  """
  @spec next_id(t()) :: Wire.id()
  def next_id(%__MODULE__{ids: ids}), do: :atomics.add_get(ids, 1, 1)

  @doc """
  Sends a cast: `{:op, node, ins, outs}` and its like.

  Raises `Nx.Vulkan.DeviceError` when the port is gone.
  """
  @spec cast(device() | t(), Wire.cast()) :: :ok
  def cast(device, term) do
    port = get!(device)
    command(port, Wire.cast(term))
  end

  @doc """
  Sends a request and waits for its answer.

  Returns `{:error, %Nx.Vulkan.Error{}}` when the port refuses it, `{:error, %Nx.Vulkan.DeviceError{}}` when the
  port is gone, or has not answered within `timeout` milliseconds.
  """
  @spec call(device() | t(), Wire.request(), timeout()) ::
          {:ok, term()} | {:error, Nx.Vulkan.Error.t() | DeviceError.t()}
  def call(device, request, timeout \\ :infinity) do
    port = get!(device)
    req = :atomics.add_get(port.ids, 2, 1)
    frame = Wire.call(req, request)
    # The reply goes to an alias that lives as long as this monitor: none comes late into the mailbox.
    ref = :erlang.monitor(:process, port.owner, alias: :reply_demonitor)
    Table.put_call(req, ref, port)

    # The receive stands here, where the reference is made, so that it skips what was in the mailbox before.
    case try_command(port, frame) do
      :ok ->
        receive do
          {^ref, term} ->
            Wire.reply(term)

          {:DOWN, ^ref, _, _, _} ->
            Table.delete_call(req)
            {:error, fault(port)}
        after
          timeout ->
            forget(req, ref)
            {:error, timeout(port, request, timeout)}
        end

      error ->
        forget(req, ref)
        error
    end
  end

  defp forget(req, ref) do
    Process.demonitor(ref, [:flush])
    Table.delete_call(req)

    # The answer may have come at the last moment.
    receive do
      {^ref, _} -> :ok
    after
      0 -> :ok
    end
  end

  defp timeout(port, request, timeout) do
    name = if is_tuple(request), do: elem(request, 0), else: request

    %DeviceError{
      device: port.device,
      epoch: port.epoch,
      op: name,
      reason: :timeout,
      message: "#{name}: no answer from device #{port.device} within #{timeout} ms"
    }
  end

  @doc """
  Like `call/3`, but returns the value or raises the error.
  """
  @spec call!(device() | t(), Wire.request(), timeout()) :: term()
  def call!(device, request, timeout \\ :infinity) do
    case call(device, request, timeout) do
      {:ok, value} -> value
      {:error, error} -> raise error
    end
  end

  @doc """
  Makes tensor `id` of `data`, little-endian in Nx's layout.

  Many bytes go through a file in the runtime directory, or in parts where there is none.
  """
  @spec upload(device() | t(), Wire.id(), Wire.type(), Wire.shape(), binary()) :: :ok
  def upload(device, id, type, shape, data) when is_binary(data) do
    port = get!(device)
    size = byte_size(data)

    with %Bulk{threshold: threshold} = bulk when size >= threshold <- port.bulk,
         {:ok, name} <- Bulk.write(bulk, id, data) do
      try do
        command(port, Wire.cast({:upload, id, type, shape, {:file, name, size}}))
      rescue
        error in DeviceError ->
          Bulk.delete(bulk, name)
          reraise error, __STACKTRACE__
      end
    else
      _ -> upload_inline(port, id, type, shape, data)
    end
  end

  defp upload_inline(port, id, type, shape, data) do
    part = Wire.part_size()

    if byte_size(data) <= part do
      command(port, Wire.cast({:upload, id, type, shape, data}))
    else
      upload_parts(port, id, type, shape, 0, data, part)
    end
  end

  defp upload_parts(port, id, type, shape, offset, data, part) do
    case data do
      <<bytes::binary-size(part), rest::binary>> ->
        command(port, Wire.cast({:upload_part, id, type, shape, offset, bytes}))
        upload_parts(port, id, type, shape, offset + part, rest, part)

      <<>> ->
        :ok

      rest ->
        command(port, Wire.cast({:upload_part, id, type, shape, offset, rest}))
    end
  end

  @doc """
  Reads `length` bytes of tensor `id` from byte `offset` on.

  Waits for everything that the tensor depends on; the error is that of the first operation that failed.
  """
  @spec read(device() | t(), Wire.id(), non_neg_integer(), non_neg_integer(), timeout()) ::
          {:ok, binary()} | {:error, Nx.Vulkan.Error.t() | DeviceError.t()}
  def read(device, id, offset, length, timeout \\ :infinity) do
    port = get!(device)
    step = if port.bulk, do: Bulk.max_read(), else: Wire.part_size()

    case read_ranges(port, id, offset, length, step, timeout, []) do
      {:ok, [bytes]} -> {:ok, bytes}
      {:ok, ranges} -> {:ok, IO.iodata_to_binary(Enum.reverse(ranges))}
      {:error, error} -> {:error, error}
    end
  end

  defp read_ranges(port, id, offset, length, step, timeout, ranges) do
    now = min(length, step)

    with {:ok, reply} <- call(port, {:read, id, offset, now}, timeout),
         {:ok, bytes} <- read_reply(port, reply, now) do
      ranges = [bytes | ranges]

      if now == length,
        do: {:ok, ranges},
        else: read_ranges(port, id, offset + now, length - now, step, timeout, ranges)
    else
      # The runtime directory is full, as the 64 MiB of a container's /dev/shm soon are: read what fits a frame.
      {:error, %Nx.Vulkan.Error{reason: :bad_file}} when now >= port.bulk.threshold ->
        read_ranges(port, id, offset, length, port.bulk.threshold - 1, timeout, ranges)

      error ->
        error
    end
  end

  defp read_reply(_port, bytes, length) when byte_size(bytes) == length, do: {:ok, bytes}

  defp read_reply(%{bulk: %Bulk{} = bulk} = port, {:file, name, length}, length) do
    with {:error, reason} <- Bulk.take(bulk, name, length) do
      {:error, read_error(port, "cannot read bulk file #{inspect(name)}: #{inspect(reason)}")}
    end
  end

  defp read_reply(port, reply, length) do
    got =
      case reply do
        bytes when is_binary(bytes) -> "#{byte_size(bytes)} bytes"
        {:file, _, size} -> "a file of #{size} bytes"
        other -> inspect(other)
      end

    {:error, read_error(port, "asked for #{length} bytes, got #{got}")}
  end

  defp read_error(port, message) do
    %DeviceError{
      device: port.device,
      epoch: port.epoch,
      op: :read,
      reason: :protocol,
      message: "read: " <> message
    }
  end

  defp command(port, frame) do
    with {:error, error} <- try_command(port, frame), do: raise(error)
  end

  # The port is closed when its program dies; the owner knows why.
  defp try_command(%__MODULE__{port: port} = state, frame) do
    :erlang.port_command(port, frame)
    :ok
  rescue
    ArgumentError -> {:error, fault(state)}
  end

  @doc """
  Why a port is gone. Waits for its owner to say so.
  """
  @spec fault(t()) :: DeviceError.t()
  def fault(%__MODULE__{} = port) do
    ref = Process.monitor(port.owner)

    receive do
      {:DOWN, ^ref, _, _, _} -> :ok
    after
      5_000 -> Process.demonitor(ref, [:flush])
    end

    Table.fault(port.device, port.epoch)
  end
end

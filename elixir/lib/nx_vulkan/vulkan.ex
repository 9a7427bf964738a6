defmodule Nx.Vulkan do
  @moduledoc """
  Nx on any GPU with a Vulkan driver, driven by an external program: no NIF, so no driver fault takes the VM down.

      Nx.default_backend(Nx.Vulkan.Backend)

      x = Nx.iota({3, 3}, type: :f32)
      Nx.dot(x, Nx.transpose(x))

  Start with `Nx.Vulkan.Backend` (what runs where, its options) and `Nx.Vulkan.Fallback` (seeing and
  refusing what runs on the host). This module asks devices about themselves and waits for them.

  A device is a number: 0 is the one that `NXVK_DEVICE` names, or the first choice of the port. It starts on
  first use.

  ## Settings of an earlier package

  `NXV_BATCH_MAX`, `NXV_CSE` and `NXV_F64` are accepted and not needed: submissions gather by themselves while the
  device is busy, equal subexpressions never cost accuracy, and f64 is used where the device has it.
  """

  alias Nx.Vulkan.{Error, Port}

  @type device :: non_neg_integer

  @doc """
  What the port says of its device: name, class, driver, limits, features, numerics, memory.
  """
  @spec info(device) :: map
  def info(device \\ 0), do: Port.call!(device, :info)

  @doc """
  The devices that run now, and what each said of itself when it started: `[{number, map}]`.

  Starts device 0 when none runs. All that the machine has are listed by `nxvk_port info`.
  """
  @spec devices() :: [{device, map}]
  def devices do
    if Port.running() == [], do: Port.get!(0)

    for device <- Enum.sort(Port.running()), port = Port.whereis(device) do
      {device, Map.get(port.info, :device, %{})}
    end
  end

  @doc """
  The name of a device.
  """
  @spec device_name(device) :: String.t()
  def device_name(device \\ 0) do
    case Port.get!(device).info do
      %{device: %{name: name}} -> name
      _ -> "unknown"
    end
  end

  @doc """
  Counters of the port: operations, submissions, dispatches, pipelines, bytes in use and more.
  """
  @spec stats(device) :: map
  def stats(device \\ 0), do: Port.call!(device, :stats)

  @doc """
  Memory of a device, as the port counts it.
  """
  @spec memory(device) :: map
  def memory(device \\ 0), do: Map.get(info(device), :memory, %{})

  @doc """
  Waits until everything sent so far has run.
  """
  @spec flush(device) :: :ok
  def flush(device \\ 0) do
    # A device that does not run has nothing to wait for.
    if Port.whereis(device), do: Port.call!(device, {:sync, []})
    :ok
  end

  @doc """
  Waits for tensors: a tensor, or any container of them. Raises the first failure among them.
  """
  @spec sync(term) :: :ok
  def sync(container) do
    handles =
      Nx.Defn.Composite.reduce(container, [], fn
        %Nx.Tensor{data: %Nx.Vulkan.Backend{state: handle}}, acc when is_binary(handle) -> [handle | acc]
        _, acc -> acc
      end)

    handles
    |> Enum.group_by(&Nx.Vulkan.Handle.device/1)
    |> Enum.each(fn {device, handles} ->
      port = Port.get!(device)
      ids = handles |> Enum.reverse() |> Enum.map(&Nx.Vulkan.Handle.id!(&1, port))
      result = Port.call(port, {:sync, ids})
      Nx.Vulkan.Handle.keep(handles)
      with {:error, error} <- result, do: raise(Error.as_nx(error))
    end)
  end

  @doc """
  Runs `fun` with timestamps on the device, and returns its result with the time of each kernel:
  `[{kernel, count, nanoseconds}]`.
  """
  @spec profile((-> result), device) :: {result, [{binary, non_neg_integer, non_neg_integer}]}
        when result: var
  def profile(fun, device \\ 0) when is_function(fun, 0) do
    Port.call!(device, {:profile, true})

    try do
      fun.()
    else
      result -> {result, Port.call!(device, {:profile, false})}
    catch
      kind, reason ->
        # The device may be what failed; what is told is the first failure.
        with {:error, %Error{}} <- Port.call(device, {:profile, false}), do: :ok
        :erlang.raise(kind, reason, __STACKTRACE__)
    end
  end
end

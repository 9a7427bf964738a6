defmodule Nx.Vulkan.NativeV do
  @moduledoc """
  Entry points of an earlier package's native library, for code that called them directly.

  There is no native library here: they talk to the port like everything else.
  """

  alias Nx.Vulkan.{Handle, Port}

  @doc """
  A buffer of `bytes` bytes of zeros on device 0, and with it a started device.

  The buffer lives as long as the returned reference does. The first call prints the device on standard error.
  """
  @spec buf_alloc(pos_integer) :: {:ok, Handle.t()} | {:error, Exception.t()}
  def buf_alloc(bytes) when is_integer(bytes) and bytes > 0 do
    started? = Port.whereis(0) != nil

    with {:ok, port} <- Port.start(0) do
      unless started?, do: announce(port)
      {id, handle} = Handle.new(port, bytes)
      Port.cast(port, {:op, {:constant, :u8, {bytes}, %{value: <<0>>}}, [], [id]})
      result = Port.call(port, {:sync, [id]})
      Handle.keep(handle)
      with {:ok, _} <- result, do: {:ok, handle}
    end
  end

  defp announce(port) do
    device = Map.get(port.info, :device, %{})
    IO.puts(:stderr, "[nx_vulkan] device: #{device[:name] || "unknown"} (#{device[:class] || "unknown"})")
  end

  @doc """
  Waits until everything sent so far has run on device 0.
  """
  @spec flush() :: :ok
  def flush, do: Nx.Vulkan.flush()
end

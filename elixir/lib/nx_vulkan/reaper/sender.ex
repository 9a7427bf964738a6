defmodule Nx.Vulkan.Reaper.Sender do
  @moduledoc """
  Takes the ids of dead tensors to one device.

  A busy port suspends whoever writes to it. This process may wait; the reaper goes on, and what has come together
  meanwhile leaves in one frame.
  """

  use GenServer

  alias Nx.Vulkan.DeviceError

  # Ids in one frame: under 64 KiB.
  @most 4_096

  @doc false
  def start_link(device), do: GenServer.start_link(__MODULE__, device, name: name(device))

  @doc """
  Frees tensors of a device, soon.
  """
  @spec free(non_neg_integer(), [pos_integer()]) :: :ok
  def free(device, ids) do
    # No sender, no port: the tensors are gone.
    with pid when pid != nil <- Process.whereis(name(device)), do: send(pid, {:free, ids})
    :ok
  end

  defp name(device), do: :"#{__MODULE__}.#{device}"

  @impl true
  def init(device), do: {:ok, device}

  @impl true
  def handle_info({:free, ids}, device) do
    with %{} = port <- Nx.Vulkan.Port.whereis(device) do
      ids
      |> gather(length(ids))
      |> Enum.chunk_every(@most)
      |> Enum.each(&cast(port, &1))
    end

    {:noreply, device}
  end

  def handle_info(_other, device), do: {:noreply, device}

  defp gather(ids, n) when n >= @most, do: ids

  defp gather(ids, n) do
    receive do
      {:free, more} -> gather(more ++ ids, n + length(more))
    after
      0 -> ids
    end
  end

  defp cast(port, ids) do
    Nx.Vulkan.Port.cast(port, {:free, ids})
  rescue
    # The port has died, and the tensors with it.
    DeviceError -> :ok
  end
end

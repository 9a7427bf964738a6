defmodule Nx.Vulkan.Port.Supervisor do
  @moduledoc """
  Supervises one device: the owner of its port program, and the process that takes frees to it.

  An owner that ends is started again, with a new epoch, up to `:max_restarts` times in `:max_seconds` (by default 3
  in 30). After that the device is down, and says so, until `Nx.Vulkan.Port.restart/1`.
  """

  use Supervisor, restart: :temporary

  @doc """
  The registered name of a device's supervisor.
  """
  @spec name(non_neg_integer()) :: atom()
  def name(device), do: :"#{__MODULE__}.#{device}"

  @doc """
  How many restarts in how many seconds.
  """
  @spec intensity() :: {non_neg_integer(), pos_integer()}
  def intensity do
    {Application.get_env(:nx_vulkan, :max_restarts, 3), Application.get_env(:nx_vulkan, :max_seconds, 30)}
  end

  @doc false
  def start_link(device), do: Supervisor.start_link(__MODULE__, device, name: name(device))

  @impl true
  def init(device) do
    {restarts, seconds} = intensity()

    Supervisor.init(
      [
        {Nx.Vulkan.Reaper.Sender, device},
        {Nx.Vulkan.Port.Owner, device}
      ],
      strategy: :one_for_one,
      max_restarts: restarts,
      max_seconds: seconds
    )
  end
end

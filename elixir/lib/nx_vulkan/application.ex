defmodule Nx.Vulkan.Application do
  @moduledoc """
  The processes of `:nx_vulkan`.

      Nx.Vulkan.Supervisor
      ├── Nx.Vulkan.Port.Table      the tables that outlive a port
      ├── Nx.Vulkan.Plan            where operations run, by their signature
      ├── Nx.Vulkan.Reaper          frees tensors that nobody holds any more
      └── Nx.Vulkan.Port.Devices    one supervisor a device, started on first use
          └── Nx.Vulkan.Port.Supervisor
              ├── Nx.Vulkan.Reaper.Sender   takes frees to the port
              └── Nx.Vulkan.Port.Owner      one port program, one epoch

  `config :nx_vulkan, start: [0]` starts devices with the application instead of on first use; a device that
  does not come up is logged, and tried again when it is used.
  """

  use Application
  require Logger

  @impl true
  def start(_type, _args) do
    children = [
      Nx.Vulkan.Port.Table,
      Nx.Vulkan.Plan,
      Nx.Vulkan.Reaper,
      {DynamicSupervisor, name: Nx.Vulkan.Port.Devices, strategy: :one_for_one}
    ]

    with {:ok, pid} <-
           Supervisor.start_link(children, strategy: :one_for_one, name: Nx.Vulkan.Supervisor) do
      for device <- Application.get_env(:nx_vulkan, :start, []) do
        with {:error, error} <- Nx.Vulkan.Port.start(device) do
          Logger.error("nx_vulkan: device #{device} did not start: " <> Exception.message(error))
        end
      end

      {:ok, pid}
    end
  end
end

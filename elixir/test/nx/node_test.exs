defmodule Nx.Vulkan.NodeTest do
  # A tensor that another node made is read there: its bytes live with that node's port.
  use ExUnit.Case, async: false

  setup_all do
    System.cmd("epmd", ["-daemon"])

    started =
      Node.alive?() or match?({:ok, _}, Node.start(:"nxv#{System.pid()}@127.0.0.1", :longnames))

    if started do
      {:ok, peer, node} = :peer.start(%{name: :"nxp#{System.pid()}", host: ~c"127.0.0.1"})
      :ok = :erpc.call(node, :code, :add_paths, [:code.get_path()])
      {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [:elixir])
      {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [:nx_vulkan])
      {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [:nx])

      on_exit(fn ->
        :peer.stop(peer)
        Node.stop()
      end)

      {:ok, node: node}
    else
      IO.puts("SKIPPED Nx.Vulkan.NodeTest: this node cannot be distributed (epmd?)")
      {:ok, node: nil}
    end
  end

  test "is read on its node, while that node holds it", %{node: node} do
    if node do
      # By name: the functions of this module are not loaded there.
      {:ok, agent} =
        :erpc.call(node, Agent, :start, [Nx, :tensor, [[1, 2, 3], [backend: Nx.Vulkan.Backend]]])

      tensor = Agent.get(agent, Function, :identity, [])
      assert Nx.to_list(tensor) == [1, 2, 3]
      assert inspect(tensor) =~ "[1, 2, 3]"
      assert Nx.backend_copy(tensor, Nx.BinaryBackend) |> Nx.to_list() == [1, 2, 3]
      # It computes where it lives.
      assert_raise Nx.Vulkan.DeviceError, ~r/node/, fn -> Nx.add(tensor, tensor) end
      Agent.stop(agent)
    end
  end
end

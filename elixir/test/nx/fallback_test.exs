defmodule Nx.Vulkan.FallbackTest do
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog
  alias Nx.Vulkan.{Fallback, FallbackError}

  setup do
    Nx.default_backend(Nx.Vulkan.Backend)
    on_exit(fn -> Application.delete_env(:nx_vulkan, :host_fallback) end)
    %{t: Nx.tensor([3.0, 1.0, 2.0])}
  end

  test "counts by callback, and adds inner counts to outer ones", %{t: t} do
    {{sorted, inner}, outer} =
      Fallback.count(fn ->
        Nx.argsort(t)
        Fallback.count(fn -> Nx.sort(t) end)
      end)

    assert Nx.to_list(sorted) == [1.0, 2.0, 3.0]
    assert inner == %{{:sort, 3} => 1}
    assert outer == %{{:sort, 3} => 1, {:argsort, 3} => 1}
    assert {_, 2} = Fallback.count_total(fn -> {Nx.sort(t), Nx.sort(t)} end)
  end

  test "what the device does is not counted", %{t: t} do
    assert {_, %{}} = Fallback.count(fn -> t |> Nx.add(1) |> Nx.exp() |> Nx.sum() |> Nx.to_number() end)
  end

  test "blocks count what their primitives are", %{t: t} do
    {_, counts} = Fallback.count(fn -> Nx.take(t, Nx.tensor([0, 2])) end)
    assert counts == %{{:gather, 4} => 1}
    {_, counts} = Fallback.count(fn -> Nx.logical_not(t) end)
    assert counts == %{}
    {_, counts} = Fallback.count(fn -> Nx.LinAlg.cholesky(Nx.tensor([[2.0, 0.0], [0.0, 2.0]])) end)
    assert counts == %{{:block, 4} => 1}
  end

  test "types that no device tensor has are counted", %{t: t} do
    {c, counts} = Fallback.count(fn -> Nx.complex(t, t) end)
    assert c.type == {:c, 64}
    assert Enum.any?(counts)
    {_, counts} = Fallback.count(fn -> Nx.abs(c) end)
    assert counts == %{{:abs, 2} => 1}
  end

  test "strict raises before anything moves, and names the operation", %{t: t} do
    error =
      assert_raise FallbackError, fn -> Fallback.strict(fn -> Nx.sort(t) end) end

    assert {error.callback, error.arity} == {:sort, 3}
    assert error.message =~ "sort/3 of f32{3} runs on the host"
    assert Fallback.mode() == :allow

    # A failed tensor would raise its own error if it were read.
    bad = failed()
    assert_raise FallbackError, fn -> Fallback.strict(fn -> Nx.sort(bad) end) end
    assert Fallback.strict(fn -> Nx.sort(t) end, allow: [:sort]) |> Nx.to_list() == [1.0, 2.0, 3.0]
    assert Fallback.strict(fn -> Nx.sort(t) end, allow: [{:sort, 3}]) |> Nx.to_list() == [1.0, 2.0, 3.0]

    assert_raise FallbackError, ~r/block Nx.Block.LinAlg.Cholesky/, fn ->
      Fallback.strict(fn -> Nx.LinAlg.cholesky(Nx.tensor([[2.0, 0.0], [0.0, 2.0]])) end)
    end
  end

  test "the configuration", %{t: t} do
    Application.put_env(:nx_vulkan, :host_fallback, :raise)
    assert Fallback.mode() == :raise
    assert_raise FallbackError, fn -> Nx.sort(t) end

    Application.put_env(:nx_vulkan, :host_fallback, :warn)
    assert Fallback.mode() == :warn
    assert capture_log(fn -> Nx.sort(t) end) =~ "sort/3 of f32{3} runs on the host"

    Application.put_env(:nx_vulkan, :host_fallback, :sometimes)
    assert_raise ArgumentError, ~r/host_fallback/, fn -> Nx.sort(t) end
  end

  test "counts belong to a process", %{t: t} do
    {_, counts} =
      Fallback.count(fn -> Task.await(Task.async(fn -> Nx.sort(t) |> Nx.to_list() end)) end)

    assert counts == %{}
  end

  defp failed do
    t = Nx.tensor([1.0, 2.0])
    :ok = Nx.backend_deallocate(t)
    Nx.add(t, t)
  end
end

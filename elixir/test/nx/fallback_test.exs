defmodule Nx.Vulkan.FallbackTest do
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog
  import Nx.Testing, only: [assert_all_close: 2]
  alias Nx.Vulkan.{Fallback, FallbackError}

  # Where an operation runs is the port's answer, so what happens elsewhere is tried on signatures whose answer is
  # written down beforehand.
  @none [cbrt: 2, erf: 2]
  @host [erfc: 2, cholesky: 4]

  setup do
    Nx.default_backend(Nx.Vulkan.Backend)
    t = Nx.tensor([3.0, 1.0, 2.0])
    m = Nx.tensor([[2.0, 0.0], [0.0, 2.0]])
    for {op, _} <- @none, do: answer(op, nil, :none)
    for {op, _} <- @host -- [cholesky: 4], do: answer(op, nil, :host)
    answer(:cholesky, {{2, 2}, [{2, 2}], []}, :host)

    on_exit(fn ->
      Application.delete_env(:nx_vulkan, :host_fallback)
      Application.delete_env(:nx_vulkan, :host_work)
      :ets.delete_all_objects(Nx.Vulkan.Plan)
    end)

    %{t: t, m: m}
  end

  defp answer(op, detail, tier) do
    :ets.insert(Nx.Vulkan.Plan, {{0, Nx.Vulkan.Port.get!(0).epoch, op, :f32, [:f32], detail}, tier})
  end

  test "counts by callback, and adds inner counts to outer ones", %{t: t} do
    {{root, inner}, outer} =
      Fallback.count(fn ->
        Nx.erf(t)
        Fallback.count(fn -> Nx.cbrt(Nx.multiply(t, t)) end)
      end)

    assert_all_close(root, Nx.tensor([2.0800838, 1.0, 1.5874011]))
    assert inner == %{{:cbrt, 2} => 1}
    assert outer == %{{:cbrt, 2} => 1, {:erf, 2} => 1}
    assert {_, 2} = Fallback.count_total(fn -> {Nx.cbrt(t), Nx.cbrt(t)} end)
  end

  test "what the device does is not counted", %{t: t} do
    step = fn -> t |> Nx.add(1) |> Nx.exp() |> Nx.sum() |> Nx.to_number() end
    assert {{_, %{}}, %{}} = Fallback.count_host(fn -> Fallback.count(step) end)
    assert Fallback.strict(step, host: false) > 0
  end

  test "work of the port's CPU is counted apart", %{t: t, m: m} do
    work = fn -> {Nx.erfc(t), Nx.LinAlg.cholesky(m), Nx.LinAlg.cholesky(m)} end
    {{_, fallbacks}, host} = Fallback.count_host(fn -> Fallback.count(work) end)
    assert fallbacks == %{}
    assert host == %{{:erfc, 2} => 1, {Nx.Block.LinAlg.Cholesky, 4} => 2}
    assert {:ok, _} = Fallback.strict(fn -> {:ok, work.()} end)

    error = assert_raise FallbackError, fn -> Fallback.strict(work, host: false) end
    assert {error.callback, error.arity} == {:erfc, 2}
    assert error.message =~ "erfc/2 of f32{3} runs on the port's CPU"

    error = assert_raise FallbackError, fn -> Fallback.strict(work, host: false, allow: [:erfc]) end
    assert {error.callback, error.arity} == {Nx.Block.LinAlg.Cholesky, 4}

    for allow <- [Nx.Block.LinAlg.Cholesky, {Nx.Block.LinAlg.Cholesky, 4}, :block, {:block, 4}] do
      assert {:ok, _} = Fallback.strict(fn -> {:ok, work.()} end, host: false, allow: [:erfc, allow])
    end

    Application.put_env(:nx_vulkan, :host_work, :raise)
    assert_raise FallbackError, work
    Application.put_env(:nx_vulkan, :host_work, :warn)
    assert capture_log(work) =~ "block Nx.Block.LinAlg.Cholesky/4 of f32{2, 2} runs on the port's CPU"
  end

  test "strict raises before anything moves, and names the operation", %{t: t} do
    error =
      assert_raise FallbackError, fn -> Fallback.strict(fn -> Nx.cbrt(t) end) end

    assert {error.callback, error.arity} == {:cbrt, 2}
    assert error.message =~ "cbrt/2 of f32{3} runs in the BEAM"
    assert Fallback.mode() == :allow

    # A failed tensor would raise its own error if it were read.
    bad = failed()
    assert_raise FallbackError, fn -> Fallback.strict(fn -> Nx.cbrt(bad) end) end
    for allow <- [:cbrt, {:cbrt, 2}], do: assert(Fallback.strict(fn -> Nx.cbrt(t) end, allow: [allow]))
  end

  test "the configuration", %{t: t} do
    Application.put_env(:nx_vulkan, :host_fallback, :raise)
    assert Fallback.mode() == :raise
    assert_raise FallbackError, fn -> Nx.cbrt(t) end

    Application.put_env(:nx_vulkan, :host_fallback, :warn)
    assert Fallback.mode() == :warn
    assert capture_log(fn -> Nx.cbrt(t) end) =~ "cbrt/2 of f32{3} runs in the BEAM"

    Application.put_env(:nx_vulkan, :host_fallback, :sometimes)
    assert_raise ArgumentError, ~r/host_fallback/, fn -> Nx.cbrt(t) end
  end

  test "counts belong to a process", %{t: t} do
    {_, counts} =
      Fallback.count(fn -> Task.await(Task.async(fn -> Nx.cbrt(t) |> Nx.to_list() end)) end)

    assert counts == %{}
  end

  test "telemetry tells of both, in every process", %{t: t} do
    me = self()

    :telemetry.attach_many(
      {__MODULE__, me},
      [[:nx_vulkan, :fallback], [:nx_vulkan, :host]],
      &__MODULE__.tell/4,
      me
    )

    on_exit(fn -> :telemetry.detach({__MODULE__, me}) end)
    Task.await(Task.async(fn -> {Nx.cbrt(t), Nx.erfc(t)} end))
    assert_received {[:nx_vulkan, :fallback], %{count: 1}, %{callback: :cbrt, arity: 2}}
    assert_received {[:nx_vulkan, :host], %{count: 1}, %{callback: :erfc, arity: 2}}
  end

  def tell(event, measurements, metadata, pid), do: send(pid, {event, measurements, metadata})

  defp failed do
    t = Nx.tensor([1.0, 2.0])
    :ok = Nx.backend_deallocate(t)
    Nx.add(t, t)
  end
end

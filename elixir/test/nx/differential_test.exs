defmodule Nx.Vulkan.DifferentialTest do
  # Random calls against Nx.BinaryBackend. NXVK_CASES says how many (500), NXVK_SEED which; a failure names
  # the seed and the case, and Nx.Vulkan.Test.Differential.draw/3 makes it again.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.Test.Differential

  @moduletag :differential
  @moduletag timeout: :infinity

  defp setting(name, default), do: String.to_integer(System.get_env(name, default))

  test "random calls agree with BinaryBackend" do
    seed = setting("NXVK_SEED", "1")
    count = setting("NXVK_CASES", "500")
    opts = [subnormals: not Nx.Vulkan.info().numerics.flush_f32]

    outcomes =
      for number <- 1..count do
        drawn = Differential.draw(seed, number, opts)
        {number, drawn, Differential.check(drawn, Nx.Vulkan.Backend)}
      end

    bad = for {number, drawn, {:bad, why}} <- outcomes, do: {Differential.weight(drawn), number, drawn, why}

    report =
      bad
      |> Enum.group_by(fn {_, _, drawn, _} -> elem(drawn.call, 0) end)
      |> Enum.map_join("\n\n", fn {op, cases} ->
        {_, number, drawn, why} = Enum.min_by(cases, &elem(&1, 0))

        "#{op}: #{length(cases)} cases, the smallest is #{number} of seed #{seed}: #{why}\n#{inspect(drawn, limit: 40)}"
      end)

    assert bad == [], "#{length(bad)} of #{count} calls disagree\n\n" <> report
    # A generator that only makes calls which are refused would prove nothing.
    assert Enum.count(outcomes, &match?({_, _, :ok}, &1)) > 0.8 * count
  end
end

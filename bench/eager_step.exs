# One eager training step of the demo's network (784-128-10, batch 32, gradients and Adam), and what a caller
# waits for Nx.add(x, 1).
#
#     cd elixir && MIX_ENV=prod mix run ../bench/eager_step.exs
#
# Prints medians. Every operation of a step is sent one by one; the loss is read at the end of each.

source = File.read!(Path.expand("../examples/mnist.exs", __DIR__))
[definitions, _main] = String.split(source, ~r/\ndefmodule MNIST do/, parts: 2)
Code.eval_string(definitions)

defmodule EagerStep do
  def median(list), do: list |> Enum.sort() |> Enum.at(div(length(list), 2))

  def state do
    {params, m, v} = MNIST.Model.init()
    {move(params), move(m), move(v)}
  end

  defp move(tensors) do
    tensors |> Tuple.to_list() |> Enum.map(&Nx.backend_transfer(&1, Nx.Vulkan.Backend)) |> List.to_tuple()
  end

  # The state after step t, and the microseconds it took.
  def step(state, t, pixels, classes) do
    {us, {_loss, state}} =
      :timer.tc(fn ->
        {loss, state} =
          Nx.Defn.jit_apply(&MNIST.Model.step/4, [state, t, pixels, classes], compiler: Nx.Defn.Evaluator)

        {Nx.to_number(loss), state}
      end)

    {us, state}
  end
end

Nx.default_backend(Nx.Vulkan.Backend)
bytes = for i <- 1..(32 * 784), into: <<>>, do: <<rem(i * i, 251)>>
pixels = bytes |> Nx.from_binary(:u8) |> Nx.reshape({32, 784})
classes = Nx.remainder(Nx.iota({32}, type: :s32), 10)
run = fn steps, state -> Enum.map_reduce(steps, state, &EagerStep.step(&2, &1, pixels, classes)) end

{_, state} = run.(1..10, EagerStep.state())
before = Nx.Vulkan.stats()
{times, _} = run.(11..110, state)
later = Nx.Vulkan.stats()
counts = for key <- [:ops, :dispatches], do: "#{round((later[key] - before[key]) / 100)} #{key}"

IO.puts("device       #{Nx.Vulkan.device_name()}")
IO.puts("step         #{Float.round(EagerStep.median(times) / 1000, 2)} ms, #{Enum.join(counts, ", ")}")

x = Nx.iota({10}, type: :f32)

calls =
  for _ <- 1..200 do
    {us, _} = :timer.tc(fn -> Enum.each(1..20, fn _ -> Nx.add(x, 1) end) end)
    Nx.Vulkan.sync(x)
    us / 20
  end

IO.puts("Nx.add(x, 1) #{Float.round(EagerStep.median(calls), 1)} us for its caller")

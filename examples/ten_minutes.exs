# The ten-minute introduction of the earlier Vulkan package, cell by cell as it was written, with every result
# that it states checked.
#
#     cd elixir && AXON_PATH=… POLARIS_PATH=… MIX_ENV=test mix run ../examples/ten_minutes.exs
#
# Sections 4 and 5 need Axon; without it they print a SKIPPED line.

section = fn title -> IO.puts("\n## #{title}") end

close? = fn close?, got, wanted ->
  case {got, wanted} do
    {a, b} when is_float(a) and is_float(b) -> abs(a - b) <= 1.0e-6 * max(1.0, abs(b))
    {[a | as], [b | bs]} -> close?.(close?, a, b) and close?.(close?, as, bs)
    {a, b} when is_tuple(a) and is_tuple(b) -> close?.(close?, Tuple.to_list(a), Tuple.to_list(b))
    {a, b} -> a == b
  end
end

expect = fn what, got, wanted ->
  if close?.(close?, got, wanted) do
    IO.puts("ok  #{what}: #{inspect(got)}")
  else
    raise "#{what}: got #{inspect(got)}, stated #{inspect(wanted)}"
  end
end

section.("1. Boot the backend")

# Allocate a one-byte buffer just to force vulkano context init.
{:ok, _ref} = Nx.Vulkan.NativeV.buf_alloc(4)

section.("2. Move a tensor to GPU")

x = Nx.tensor([1.0, 2.0, 3.0, 4.0, 5.0], type: :f32)
IO.inspect(x.data.__struct__, label: "before transfer")
expect.("the struct before", x.data.__struct__, Nx.BinaryBackend)

x_vk = Nx.backend_transfer(x, Nx.Vulkan.VulkanoBackend)
IO.inspect(x_vk.data.__struct__, label: "after transfer")
# The tensor's struct is the one backend of this package, whatever name it was reached by.
expect.("the struct after", x_vk.data.__struct__, Nx.Vulkan.Backend)

x_back = Nx.backend_transfer(x_vk, Nx.BinaryBackend)
IO.inspect(Nx.to_list(x_back), label: "round-trip")
expect.("the round trip", Nx.to_list(x_back), [1.0, 2.0, 3.0, 4.0, 5.0])

section.("3. Run some ops")

a = Nx.tensor([1.0, 2.0, 3.0, 4.0], backend: Nx.Vulkan.VulkanoBackend)
b = Nx.tensor([10.0, 20.0, 30.0, 40.0], backend: Nx.Vulkan.VulkanoBackend)

result = Nx.add(a, b) |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()
expect.("elementwise binary", result, [11.0, 22.0, 33.0, 44.0])

result = Nx.sigmoid(a) |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()
expect.("elementwise unary", Enum.take(result, 2), [0.7310585975646973, 0.8807970881462097])

m = Nx.iota({4, 4}, type: :f32, backend: Nx.Vulkan.VulkanoBackend)

result =
  {
    Nx.sum(m) |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_number(),
    Nx.sum(m, axes: [0]) |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()
  }

expect.("reduction", result, {120.0, [24.0, 28.0, 32.0, 36.0]})

a = Nx.iota({2, 3}, type: :f32, backend: Nx.Vulkan.VulkanoBackend) |> Nx.divide(Nx.tensor(1.0))
b = Nx.iota({3, 2}, type: :f32, backend: Nx.Vulkan.VulkanoBackend) |> Nx.divide(Nx.tensor(1.0))
result = Nx.dot(a, b) |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()
expect.("matmul", result, [[10.0, 13.0], [28.0, 40.0]])

# Axon's names are resolved when this runs, so that the file compiles where Axon is not.
with_axon = Code.ensure_loaded?(Axon)

unless with_axon do
  IO.puts("\nSKIPPED sections 4 and 5: they need Axon (AXON_PATH and POLARIS_PATH name checkouts)")
end

if with_axon do
  _ = Application.ensure_all_started(:axon)

  Code.eval_quoted(
    quote do
      section = var!(section)
      expect = var!(expect)

      section.("4. Forward pass on an Axon model")

      model =
        Axon.input("x", shape: {nil, 8})
        |> Axon.dense(16, activation: :sigmoid)
        |> Axon.dense(2)

      {init_fn, predict_fn} = Axon.build(model)
      params = init_fn.(%{"x" => Nx.template({1, 8}, :f32)}, Axon.ModelState.empty())

      # Walk the model state, transferring each parameter tensor.
      transfer = fn state ->
        %{
          state
          | data:
              Map.new(state.data, fn {layer, ps} ->
                {layer,
                 Map.new(ps, fn {k, v} ->
                   {k, Nx.backend_transfer(v, Nx.Vulkan.VulkanoBackend)}
                 end)}
              end)
        }
      end

      params_vk = transfer.(params)

      x_vk =
        Nx.tensor([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]],
          type: :f32,
          backend: Nx.Vulkan.VulkanoBackend
        )

      {out, fallbacks} = Nx.Vulkan.Fallback.count(fn -> predict_fn.(params_vk, %{"x" => x_vk}) end)
      result = out |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()

      x = Nx.tensor([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]], type: :f32)
      expect.("the forward pass", result, predict_fn.(params, %{"x" => x}) |> Nx.to_list())
      expect.("its host fallbacks", fallbacks, %{})

      section.("5. One training step with gradient")

      target = Nx.tensor([[1.0, -1.0]], type: :f32, backend: Nx.Vulkan.VulkanoBackend)

      loss_fn = fn params, x_in, y_in ->
        out = predict_fn.(params, %{"x" => x_in})
        diff = Nx.subtract(out, y_in)
        Nx.divide(Nx.sum(Nx.multiply(diff, diff)), Nx.tensor(elem(Nx.shape(y_in), 0) * 1.0))
      end

      grad_fn = fn p, x_in, y_in ->
        Nx.Defn.value_and_grad(p, fn pp -> loss_fn.(pp, x_in, y_in) end)
      end

      {{loss, grads}, fallbacks} =
        Nx.Vulkan.Fallback.count(fn ->
          Nx.Defn.jit_apply(grad_fn, [params_vk, x_vk, target], compiler: Nx.Defn.Evaluator)
        end)

      result = {
        Nx.to_number(loss),
        grads.data["dense_0"]["kernel"]
        |> Nx.backend_transfer(Nx.BinaryBackend)
        |> Nx.sum()
        |> Nx.to_number()
      }

      # "Both numbers match what Nx.BinaryBackend would produce to f32 precision."
      {host_loss, host_grads} =
        Nx.Defn.jit_apply(
          grad_fn,
          [params, x, Nx.tensor([[1.0, -1.0]], type: :f32)],
          compiler: Nx.Defn.Evaluator
        )

      host_sum = host_grads.data["dense_0"]["kernel"] |> Nx.sum() |> Nx.to_number()
      expect.("loss and gradient sum", result, {Nx.to_number(host_loss), host_sum})
      expect.("their host fallbacks", fallbacks, %{})

      lr = 0.01

      apply_sgd = fn p, g ->
        %{
          p
          | data:
              Map.new(p.data, fn {layer, layer_p} ->
                layer_g = g.data[layer]

                {layer,
                 Map.new(layer_p, fn {pname, w} ->
                   {pname, Nx.subtract(w, Nx.multiply(layer_g[pname], Nx.tensor(lr)))}
                 end)}
              end)
        }
      end

      # The cell above has transferred one of these gradients away, and they are used again: a transfer
      # leaves the tensor on the device for whoever still holds it.
      params_updated = apply_sgd.(params_vk, grads)

      # Check the dense_0 kernel changed
      before = params_vk.data["dense_0"]["kernel"] |> Nx.sum() |> Nx.to_number()
      after_step = params_updated.data["dense_0"]["kernel"] |> Nx.sum() |> Nx.to_number()
      IO.puts("dense_0 kernel sum: #{before} → #{after_step}")

      # "exactly -lr * sum(grad)", to f32 precision
      expect.("the change", after_step - before, -lr * elem(result, 1))
    end,
    section: section,
    expect: expect
  )
end

IO.puts("\nEvery stated result is as stated.")

# Every operation once on Nx.BinaryBackend and several times on the device, over 10,000 elements or so: a
# table of microseconds, slowest ratio first. No operation should be slower than BinaryBackend.
#
#     cd elixir && MIX_ENV=prod mix run ../bench/ops.exs            # --only sort,fft   --type f64   --elements 100000
#
# A time is from the call to the end of its work on the device (for BinaryBackend: to its return), operands in
# place. The device's is the median of 9 after one that makes the pipeline, BinaryBackend's of 1 to 5.

defmodule Ops do
  @unary [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :cosh, :sinh, :tanh, :acos, :asin, :atan] ++
           [:asinh, :atanh, :sqrt, :rsqrt, :cbrt, :erf, :erfc, :erf_inv, :abs, :ceil, :floor, :negate, :round] ++
           [:sign, :is_nan, :is_infinity]
  @binary [:add, :subtract, :multiply, :divide, :pow, :remainder, :atan2, :min, :max, :equal, :less, :logical_and]
  @integer [:quotient, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift]
  @blocks [:sum, :product, :reduce_max, :reduce_min, :all, :any, :argmax, :argmin]

  # {name, function of tensors, the tensors' shapes}: n elements, m = sqrt(n) to a side.
  def cases(n, m) do
    k = 24

    for(op <- @unary, do: {op, &apply(Nx, op, [&1]), [{n}]}) ++
      [{:acosh, &Nx.acosh(Nx.add(&1, 1)), [{n}]}] ++
      for(op <- @binary, do: {op, &apply(Nx, op, [&1, &2]), [{n}, {n}]}) ++
      for(op <- @integer, do: {op, &apply(Nx, op, [&1, &2]), [{:s32, {n}}, {:s32, {n}}]}) ++
      for(op <- [:bitwise_not, :population_count, :count_leading_zeros], do: {op, &apply(Nx, op, [&1]), [{:s32, {n}}]}) ++
      for(op <- @blocks, do: {op, &apply(Nx, op, [&1]), [{n}]}) ++
      for(op <- [:sum, :argmax], do: {:"#{op} of rows", &apply(Nx, op, [&1, [axis(op, 1)]]), [{m, m}]}) ++
      for(op <- [:sum, :argmax], do: {:"#{op} of columns", &apply(Nx, op, [&1, [axis(op, 0)]]), [{m, m}]}) ++
      [
        {:as_type, &Nx.as_type(&1, :s64), [{n}]},
        {:bitcast, &Nx.bitcast(&1, {:u, elem(&1.type, 1)}), [{n}]},
        {:reshape, &Nx.reshape(&1, {m, m}), [{m * m}]},
        {:"transpose, read", &Nx.add(Nx.transpose(&1), 0), [{m, m}]},
        {:"reverse, read", &Nx.add(Nx.reverse(&1), 0), [{n}]},
        {:"broadcast, read", &Nx.add(Nx.broadcast(&1, {m, m}), 0), [{m}]},
        {:pad, &Nx.pad(&1, 0, [{1, 1, 0}, {2, 0, 1}]), [{m, m}]},
        {:"slice, read", &Nx.add(Nx.slice(&1, [1, 1], [m - 1, m - 1]), 0), [{m, m}]},
        {:put_slice, &Nx.put_slice(&1, [1, 1], &2), [{m, m}, {m - 1, m - 1}]},
        {:concatenate, &Nx.concatenate([&1, &2]), [{n}, {n}]},
        {:stack, &Nx.stack([&1, &2], axis: 1), [{n}, {n}]},
        {:select, &Nx.select(Nx.greater(&1, &2), &1, &2), [{n}, {n}]},
        {:clip, &Nx.clip(&1, 0.3, 0.6), [{n}]},
        {:iota, fn -> Nx.iota({n}, type: :f32) end, []},
        {:eye, fn -> Nx.eye(m) end, []},
        {:dot, &Nx.dot/2, [{m, m}, {m, m}]},
        {:"dot of vectors", &Nx.dot/2, [{n}, {n}]},
        {:"dot of batches", &Nx.dot(&1, [2], [0], &2, [1], [0]), [{10, 32, 32}, {10, 32, 32}]},
        {:conv, &Nx.conv(&1, &2, padding: :same), [{1, 4, 50, 50}, {4, 4, 3, 3}]},
        {:"conv, strided", &Nx.conv(&1, &2, strides: [2, 2]), [{1, 4, 50, 50}, {4, 4, 3, 3}]},
        {:gather, &Nx.gather(&1, &2, axes: [0]), [{m, m}, {:index, {m, 1}, m}]},
        {:"gather of elements", &Nx.gather(&1, &2), [{m, m}, {:index, {n, 2}, m}]},
        {:take, &Nx.take(&1, &2, axis: 1), [{m, m}, {:index, {m}, m}]},
        {:take_along_axis, &Nx.take_along_axis(&1, &2, axis: 1), [{m, m}, {:index, {m, m}, m}]},
        {:indexed_add, &Nx.indexed_add(&1, &2, &3, axes: [0]), [{m, m}, {:index, {m, 1}, m}, {m, m}]},
        {:"indexed_add of elements", &Nx.indexed_add(&1, &2, &3), [{m, m}, {:index, {n, 2}, m}, {n}]},
        {:indexed_put, &Nx.indexed_put(&1, &2, &3, axes: [0]), [{m, m}, {:index, {m, 1}, m}, {m, m}]},
        {:reduce, fn x -> Nx.reduce(x, 0.0, [axes: [1]], &Nx.add/2) end, [{m, m}]},
        {:window_reduce, fn x -> Nx.window_reduce(x, 0.0, {2, 2}, &Nx.max/2) end, [{m, m}]},
        {:window_sum, &Nx.window_sum(&1, {3, 3}, padding: :same), [{m, m}]},
        {:window_product, &Nx.window_product(&1, {3, 3}), [{m, m}]},
        {:window_max, &Nx.window_max(&1, {2, 2}, strides: [2, 2]), [{m, m}]},
        {:window_min, &Nx.window_min(&1, {3, 3}, padding: :same), [{m, m}]},
        {:window_scatter_max, &Nx.window_scatter_max(&1, &2, 0, {2, 2}, strides: [2, 2]),
         [{m, m}, {div(m, 2), div(m, 2)}]},
        {:window_scatter_min, &Nx.window_scatter_min(&1, &2, 0, {2, 2}, strides: [2, 2]),
         [{m, m}, {div(m, 2), div(m, 2)}]},
        {:sort, &Nx.sort/1, [{n}]},
        {:"sort of rows", &Nx.sort(&1, axis: 1), [{m, m}]},
        {:argsort, &Nx.argsort/1, [{n}]},
        {:top_k, &Nx.top_k(&1, k: 10), [{n}]},
        {:cumulative_sum, &Nx.cumulative_sum/1, [{n}]},
        {:cumulative_max, &Nx.cumulative_max(&1, axis: 0), [{m, m}]},
        {:cumulative_product, &Nx.cumulative_product(&1, axis: 1), [{m, m}]},
        {:fft, &Nx.fft/1, [{m, m}]},
        {:ifft, &Nx.ifft/1, [{m, m}]},
        {:fft2, &Nx.fft2/1, [{m, m}]},
        {:rfft, &Nx.rfft/1, [{m, m}]},
        {:all_close, &Nx.all_close/2, [{n}, {n}]},
        {:logical_not, &Nx.logical_not/1, [{n}]},
        {:complex, &Nx.complex/2, [{n}, {n}]},
        {:"complex multiply", fn x, y -> Nx.multiply(Nx.complex(x, y), Nx.complex(y, x)) end, [{n}, {n}]},
        {:phase, fn x, y -> Nx.phase(Nx.complex(x, y)) end, [{n}, {n}]},
        {:triangular_solve, &Nx.LinAlg.triangular_solve(shift(&1), &2), [{m, m}, {m, 4}]},
        {:cholesky, &(&1 |> Nx.dot(Nx.transpose(&1)) |> shift() |> Nx.LinAlg.cholesky()), [{k, k}]},
        {:solve, &Nx.LinAlg.solve(shift(&1), &2), [{k, k}, {k}]},
        {:lu, &Nx.LinAlg.lu/1, [{k, k}]},
        {:qr, &Nx.LinAlg.qr/1, [{k, k}]},
        {:svd, &Nx.LinAlg.svd/1, [{k, k}]},
        {:eigh, &Nx.LinAlg.eigh(Nx.add(&1, Nx.transpose(&1))), [{k, k}]},
        {:determinant, &Nx.LinAlg.determinant/1, [{k, k}]},
        {:"cholesky of a batch", &(&1 |> Nx.dot([2], [0], &1, [2], [0]) |> shift() |> Nx.LinAlg.cholesky()), [{100, 5, 5}]},
        {:"lu of a batch", &Nx.LinAlg.lu/1, [{100, 5, 5}]}
      ]
  end

  defp axis(:argmax, axis), do: {:axis, axis}
  defp axis(_op, axis), do: {:axes, [axis]}

  # Far from singular.
  defp shift(x), do: Nx.add(x, Nx.multiply(Nx.eye(Nx.axis_size(x, -1)), 10))

  def operand({:index, shape, below}, _type, seed), do: number(shape, :s32, seed, &rem(&1 * 7919 + seed, below))
  def operand({:s32, shape}, _type, seed), do: number(shape, :s32, seed, &(rem(&1 * 7919, 29) + 1))
  def operand(shape, type, seed), do: number(shape, type, seed, &(0.05 + 0.9 * rem(&1 * 7919 + seed, 10007) / 10007))

  defp number(shape, type, seed, value) do
    1..Nx.size(shape)
    |> Enum.map(&value.(&1 + seed))
    |> Nx.tensor(type: type, backend: Nx.BinaryBackend)
    |> Nx.reshape(shape)
  end

  def median(list), do: list |> Enum.sort() |> Enum.at(div(length(list), 2))

  def time(fun) do
    {us, _} = :timer.tc(fun)
    max(us, 1)
  end

  # One case: {microseconds on the device, on BinaryBackend, work that left the device}.
  def measure({_name, fun, shapes}, type) do
    operands = for {shape, seed} <- Enum.with_index(shapes), do: operand(shape, type, seed)

    binary =
      Nx.with_default_backend(Nx.BinaryBackend, fn ->
        once = time(fn -> apply(fun, operands) end)
        if once > 300_000, do: once, else: median(for _ <- 1..5, do: time(fn -> apply(fun, operands) end))
      end)

    Nx.with_default_backend(Nx.Vulkan.Backend, fn ->
      operands = for t <- operands, do: Nx.backend_copy(t, Nx.Vulkan.Backend)

      run = fn ->
        result = apply(fun, operands)
        Nx.Vulkan.sync(result)
        result
      end

      before = host_ops()
      {_, fallbacks} = Nx.Vulkan.Fallback.count_total(run)
      host = host_ops() - before
      {median(for(_ <- 1..9, do: time(run))), binary, fallbacks, host}
    end)
  end

  defp host_ops do
    Nx.Vulkan.stats() |> Map.get(:host_ops, 0)
  end
end

{opts, [], []} = OptionParser.parse(System.argv(), strict: [only: :string, type: :string, elements: :integer])
type = Nx.Type.normalize!(String.to_atom(opts[:type] || "f32"))
n = opts[:elements] || 10_000
only = opts[:only] && String.split(opts[:only], ",")

rows =
  for {name, _, _} = one <- Ops.cases(n, trunc(:math.sqrt(n))), only == nil or Atom.to_string(name) in only do
    {device, binary, fallbacks, host} = Ops.measure(one, type)
    {name, device, binary, device / binary, fallbacks, host}
  end

IO.puts("#{Nx.Vulkan.device_name()}, #{n} elements of #{Nx.Type.to_string(type)}\n")
IO.puts("| operation | device µs | BinaryBackend µs | faster by | runs on |\n| --- | --- | --- | --- | --- |")

for {name, device, binary, ratio, fallbacks, host} <- Enum.sort_by(rows, &(-elem(&1, 3))) do
  where = if fallbacks > 0, do: "BEAM", else: if(host > 0, do: "host", else: "device")
  IO.puts("| #{name} | #{device} | #{binary} | #{Float.round(1 / ratio, 1)} | #{where} |")
end

slower = for {name, _, _, ratio, _, _} <- rows, ratio > 1, do: name
IO.puts("\n#{length(rows)} operations; slower than BinaryBackend: #{inspect(slower)}")

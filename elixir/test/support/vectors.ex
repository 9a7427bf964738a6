if Code.ensure_loaded?(Nx) do
  defmodule Mix.Tasks.NxVulkan.Vectors do
    @shortdoc "Writes conformance vectors: what the wire carries and what Nx.BinaryBackend answers"

    @moduledoc """
    Writes conformance vectors into `test/vectors` of the repository.

        MIX_ENV=test mix nx_vulkan.vectors [FOLDER]

    For every operation, over every type and a set of hard values and shapes: the frames that the backend sent,
    byte by byte, and the answer of Nx.BinaryBackend. `go test ./test` replays them without a BEAM; the format is
    in `test/README.md`. Run it when the wire, or an operation, changes.
    """

    use Mix.Task

    alias Nx.Vulkan.Handle
    alias Nx.Vulkan.Port, as: VPort
    alias Nx.Vulkan.Backend.Types
    alias Nx.Vulkan.Test.{Calls, Operations, Reference, VectorFamilies}

    @impl true
    def run(args) do
      Mix.Task.run("compile")
      {:ok, _} = Application.ensure_all_started(:nx)
      {:ok, _} = Application.ensure_all_started(:nx_vulkan)
      folder = List.first(args) || Path.expand("../test/vectors")
      File.mkdir_p!(folder)
      record = Path.join(System.tmp_dir!(), "nx_vulkan_vectors.#{System.pid()}")

      # Everything inline, so that a recording holds every byte.
      System.put_env("NXVK_RECORD", record)
      System.put_env("NXVK_BULK", "stdio")
      Nx.default_backend(Nx.Vulkan.Backend)
      {:ok, port} = VPort.restart(0)

      groups = for {name, cases} <- groups(), do: {name, Enum.map(cases, &perform(port, &1))}
      VPort.call!(port, {:sync, []})
      VPort.stop(0)
      casts = record |> read(sections(groups)) |> Enum.map(&casts/1)
      File.rm!(record)

      Enum.reduce(groups, casts, fn {name, cases}, casts ->
        {mine, casts} = Enum.split(casts, length(cases))
        write(folder, name, Enum.zip_with(cases, mine, &vector/2))
        casts
      end)
    end

    ## Cases: {name, function yielding device tensors, function yielding what each must be}

    defp groups do
      for(op <- Operations.binary(), do: {op, binary_cases(op)}) ++
        for(op <- Operations.unary(), do: {op, unary_cases(op)}) ++
        [as_type: cast_cases(), bitcast: bitcast_cases(), select: select_cases(), clip: clip_cases()] ++
        [iota: iota_cases(), eye: eye_cases(), constant: constant_cases()] ++
        Enum.map(Calls.all(), fn {name, call} -> {name, call_cases(name, call)} end) ++
        [nan: nan_cases(), sums: sum_cases()] ++
        for {name, calls} <- families(), do: {name, Enum.flat_map(calls, &family_cases(name, &1))}
    end

    defp families, do: Nx.with_default_backend(Nx.BinaryBackend, &VectorFamilies.all/0)

    # One case for each result.
    defp family_cases(name, {label, fun, operands, tolerance}) do
      wanted = Nx.with_default_backend(Nx.BinaryBackend, fn -> Calls.list(apply(fun, operands)) end)

      for {want, i} <- Enum.with_index(wanted) do
        {"#{name} #{label} #{i}",
         fn -> fun |> apply(Enum.map(operands, &vulkan/1)) |> Calls.list() |> Enum.at(i) end,
         fn _result -> {Nx.to_binary(want), [], 0, bound(want, tolerance)} end}
      end
    end

    defp bound(_want, 0), do: 0.0

    defp bound(want, tolerance) do
      want |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number() |> max(1.0) |> Kernel.*(tolerance)
    end

    defp binary_cases(op) do
      for type <- Reference.types(), Operations.takes?(op, type), how <- [:tensor, :value] do
        left = Reference.tensor(Reference.hard(type), type, {:auto, 1})

        right =
          case how do
            :tensor -> Reference.tensor(Reference.amounts(op, type), type, {1, :auto})
            :value -> Reference.tensor([3], type, {})
          end

        make = fn ->
          right = if how == :tensor, do: vulkan(right), else: Nx.tensor(3, type: type)
          apply(Nx, op, [vulkan(left), right])
        end

        {"#{op} #{type} #{how}", make, &elementwise(op, &1, [left, right])}
      end
    end

    defp unary_cases(op) do
      for type <- Reference.types(), Operations.takes?(op, type) do
        x = Reference.tensor(Reference.hard(type), type, {:auto})
        {"#{op} #{type}", fn -> apply(Nx, op, [vulkan(x)]) end, &elementwise(op, &1, [x])}
      end
    end

    defp cast_cases do
      for from <- Reference.types(), to <- Reference.types(), from != to do
        more = if from in [:f32, :f64], do: [300.7, -1.5, 3.0e9, -3.0e9], else: []
        x = Reference.tensor(Reference.hard(from) ++ more, from, {:auto})
        {"as_type #{from} #{to}", fn -> Nx.as_type(vulkan(x), to) end, &elementwise(:as_type, &1, [x])}
      end
    end

    defp bitcast_cases do
      for {from, to} <- [f32: :u32, u32: :f32, f64: :s64, s64: :f64, f16: :u16, bf16: :s16, s8: :u8] do
        x = Reference.tensor(Reference.hard(from), from, {:auto})
        {"bitcast #{from} #{to}", fn -> Nx.bitcast(vulkan(x), to) end, exactly(fn -> Nx.bitcast(x, to) end)}
      end
    end

    defp select_cases do
      for type <- Reference.types(), shape <- [:vector, :scalar] do
        x = Reference.tensor(Reference.hard(type), type, {:auto})
        n = Nx.size(x)

        pred =
          if shape == :scalar,
            do: Reference.tensor([0], :u8, {}),
            else: Reference.tensor(Enum.map(1..n, &rem(&1, 3)), :u8, {n})

        {"select #{type} #{shape}", fn -> Nx.select(vulkan(pred), vulkan(x), Nx.reverse(vulkan(x))) end,
         exactly(fn -> Nx.select(pred, x, Nx.reverse(x)) end)}
      end
    end

    defp clip_cases do
      for type <- Reference.types() do
        x = Reference.tensor(Reference.hard(type), type, {:auto})
        [low, high] = for n <- [1, 3], do: Reference.tensor([n], type, {})

        {"clip #{type}", fn -> Nx.clip(vulkan(x), Nx.tensor(1, type: type), Nx.tensor(3, type: type)) end,
         exactly(fn -> Nx.clip(x, low, high) end)}
      end
    end

    defp iota_cases do
      for type <- Reference.types(),
          {shape, axis} <- [{{5}, nil}, {{3, 4}, nil}, {{3, 4}, 0}, {{2, 3, 2}, 1}] do
        opts = [type: type, axis: axis]

        {"iota #{type} #{inspect(shape)} #{inspect(axis)}", fn -> Nx.iota(shape, opts) end,
         exactly(fn -> Nx.iota(shape, [backend: Nx.BinaryBackend] ++ opts) end)}
      end
    end

    defp eye_cases do
      for type <- Reference.types(), shape <- [{3, 3}, {2, 4}, {2, 3, 2}] do
        {"eye #{type} #{inspect(shape)}", fn -> Nx.eye(shape, type: type) end,
         exactly(fn -> Nx.eye(shape, type: type, backend: Nx.BinaryBackend) end)}
      end
    end

    # A constant becomes a tensor only where one is wanted.
    defp constant_cases do
      for type <- Reference.types() do
        whole = fn t -> Nx.concatenate([Nx.broadcast(t, {2, 3}), Nx.broadcast(t, {1, 3})]) end

        {"constant #{type}", fn -> whole.(Nx.tensor(2, type: type)) end,
         exactly(fn -> whole.(Reference.tensor([2], type, {})) end)}
      end
    end

    defp call_cases(name, {fun, shapes}) do
      for type <- Reference.types(),
          operands = Enum.map(shapes, &Calls.operand(&1, type)),
          wanted = Nx.with_default_backend(Nx.BinaryBackend, fn -> Calls.list(apply(fun, operands)) end),
          {want, i} <- Enum.with_index(wanted) do
        {"#{name} #{type} #{i}",
         fn -> fun |> apply(Enum.map(operands, &vulkan/1)) |> Calls.list() |> Enum.at(i) end,
         exactly(fn -> want end)}
      end
    end

    defp nan_cases do
      for type <- [:f16, :bf16, :f32, :f64],
          op <- [:reduce_max, :reduce_min, :argmax, :argmin, :sum, :product] do
        x = Reference.tensor([1.0, :nan, 3.0, :infinity], type, {4})
        {"#{op} #{type} of NaN", fn -> apply(Nx, op, [vulkan(x)]) end, exactly(fn -> apply(Nx, op, [x]) end)}
      end
    end

    # Sums and dots of f32 have a bound: 2^-24 of the sum of magnitudes. The answer is summed in f64.
    defp sum_cases do
      values = for i <- 1..3000, do: :math.sin(i) * 1000
      x = Reference.tensor(values, :f32, {3000})
      m = Nx.reshape(x, {30, 100})
      bound = Enum.sum(Enum.map(values, &abs/1)) * :math.pow(2, -24)
      dot_bound = Enum.sum(Enum.map(values, &(&1 * &1))) * :math.pow(2, -24)

      [
        {"sum f32 bound", fn -> Nx.sum(vulkan(x)) end, exactly(fn -> Nx.sum(x) end, bound)},
        {"sum f32 axis bound", fn -> Nx.sum(vulkan(m), axes: [0]) end,
         exactly(fn -> Nx.sum(m, axes: [0]) end, bound)},
        {"dot f32 bound", fn -> Nx.dot(vulkan(x), vulkan(x)) end, exactly(fn -> Nx.dot(x, x) end, dot_bound)},
        {"dot f32 matrix bound", fn -> Nx.dot(vulkan(m), Nx.transpose(vulkan(m))) end,
         exactly(fn -> Nx.dot(m, Nx.transpose(m)) end, dot_bound)}
      ]
    end

    ## Answers: {bytes, elements that are not compared, units in the last place, absolute bound}

    defp elementwise(op, result, operands) do
      columns =
        for x <- operands, do: {x |> Nx.broadcast(result.shape) |> Reference.bits(), x.type}

      {bits, types} = Enum.unzip(columns)
      size = div(elem(result.type, 1), 8)

      {elements, skip} =
        op
        |> Reference.elements(result.type, columns)
        |> Enum.zip(Enum.zip_with(bits, & &1))
        |> Enum.with_index()
        |> Enum.map_reduce([], fn {{element, row}, i}, skip ->
          numbers = Enum.zip_with(row, types, &Reference.number/2)

          if element == :raises or Reference.excepted?(op, numbers),
            do: {<<0::size(size)-unit(8)>>, [i | skip]},
            else: {element, skip}
        end)

      {IO.iodata_to_binary(elements), Enum.reverse(skip), Reference.ulps(op, result.type), 0.0}
    end

    defp exactly(fun, bound \\ 0.0) do
      fn _result ->
        want = Nx.with_default_backend(Nx.BinaryBackend, fun)
        {Nx.to_binary(want), [], 0, bound}
      end
    end

    defp vulkan(tensor), do: Nx.backend_copy(tensor, Nx.Vulkan.Backend)

    ## Recording

    # A sync separates the cases in the recording.
    defp perform(port, {name, make, want}) do
      VPort.call!(port, {:sync, []})
      result = make.()
      true = is_binary(result.data.state)
      id = Handle.id(result.data.state)
      # The backend's tensors are held until the end: no free comes in between.
      {name, id, result, want.(result)}
    end

    defp sections(groups), do: groups |> Enum.map(fn {_, cases} -> length(cases) end) |> Enum.sum()

    # What was sent after each sync but the last: one list of frames for each case.
    defp read(path, count) do
      <<"NXVKREC1", frames::binary>> = File.read!(path)

      sections =
        frames
        |> frames([])
        |> Enum.chunk_while(
          [],
          fn {term, frame}, section ->
            if match?({_, {:sync, []}}, term),
              do: {:cont, Enum.reverse(section), []},
              else: {:cont, [{term, frame} | section]}
          end,
          &{:cont, Enum.reverse(&1), []}
        )

      # The first is the greeting, the last what came after the end.
      sections |> Enum.drop(1) |> Enum.take(count)
    end

    defp frames(<<0, _us::64-little, n::32-little, frame::binary-size(n), rest::binary>>, acc),
      do: frames(rest, [{:erlang.binary_to_term(frame), frame} | acc])

    defp frames(<<1, _us::64-little, n::32-little, _::binary-size(n), rest::binary>>, acc),
      do: frames(rest, acc)

    defp frames(_end, acc), do: Enum.reverse(acc)

    # Calls (plan) begin with a number; frees are of no interest.
    defp casts(section) do
      for {term, frame} <- section, is_atom(elem(term, 0)), elem(term, 0) != :free, do: {term, frame}
    end

    defp vector({name, id, result, {want, skip, ulps, bound}}, casts) do
      made = Enum.flat_map(casts, fn {term, _} -> made(term) end)
      true = id in made

      {name, Enum.map(casts, &elem(&1, 1)), id, made, Types.wire(result.type), result.shape, want, skip, ulps,
       bound}
    end

    defp made({:op, _, _, ids}), do: ids
    defp made({:upload, id, _, _, _}), do: [id]

    defp write(folder, name, vectors) do
      path = Path.join(folder, "#{name}.etf")

      File.write!(
        path,
        :erlang.term_to_binary({:nx_vulkan_vectors, 1, vectors}, compressed: 9, minor_version: 2)
      )

      Mix.shell().info("#{path}: #{length(vectors)} cases, #{File.stat!(path).size} bytes")
    end
  end
end

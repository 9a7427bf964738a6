# A port program in Elixir that speaks docs/WIRE.md and computes with Nx.BinaryBackend: the oracle that
# the backend is tested against where there is no device, and a second implementation of the wire.
#
# It is started by the script oracle_port beside it (NXVK_PORT), and keeps tensors as {type, shape, bytes}, or
# {:failed, error}, in its process dictionary.
defmodule NxVulkan.OraclePort do
  @version 1

  def main do
    port = :erlang.open_port({:fd, 0, 1}, [{:packet, 4}, :binary, :eof])
    loop(port)
  end

  defp loop(port) do
    receive do
      {^port, {:data, frame}} ->
        handle(port, decode(frame))
        loop(port)

      {^port, :eof} ->
        :erlang.halt(0)
    end
  end

  defp decode(frame) do
    {:term, :erlang.binary_to_term(frame)}
  rescue
    ArgumentError -> :malformed
  end

  defp handle(port, :malformed) do
    event(port, {:log, :error, "a frame that is no term"})
  end

  defp handle(port, {:term, {req, request}}) when is_integer(req) do
    reply =
      try do
        case call(request) do
          {:failed, error} -> {:error, error}
          result -> {:ok, result}
        end
      rescue
        e -> {:error, error(request, e)}
      end

    true = Port.command(port, [<<0, req::64>>, :erlang.term_to_binary(reply)])
  end

  defp handle(port, {:term, cast}) do
    try do
      cast(cast)
    rescue
      e -> event(port, {:log, :error, Exception.message(e)})
    end
  end

  defp event(port, term), do: true = Port.command(port, [<<1>>, :erlang.term_to_binary(term)])

  ## Calls

  defp call({:hello, version, options}) do
    if version != @version, do: raise("wire version #{version} is not #{@version}: upgrade the older side")

    Process.put(:runtime_dir, options[:runtime_dir])

    %{
      version: @version,
      epoch: options[:epoch] || 0,
      device: %{name: "Nx.BinaryBackend", class: :oracle, api: "0", index: 0}
    }
  end

  defp call({:plan, {op, _type, _shape, _attrs}, _specs}) do
    case System.get_env("ORACLE_PLAN_" <> Atom.to_string(op)) do
      nil -> :device
      tier -> String.to_atom(tier)
    end
  end

  defp call({:read, id, offset, length}) do
    case fetch(id) do
      {:failed, _} = failed -> failed
      {_type, _shape, bytes} -> binary_part(bytes, offset, length)
    end
  end

  defp call({:sync, ids}), do: Enum.find_value(ids, :ok, &failure/1)

  defp call(:info), do: %{device: %{name: "Nx.BinaryBackend", class: :oracle}, memory: %{}}

  defp call(:stats) do
    tensors = for {id, {_, _, bytes}} when is_integer(id) <- Process.get(), do: byte_size(bytes)
    %{tensors: length(tensors), bytes: Enum.sum(tensors), ops: Process.get(:ops, 0)}
  end

  defp call({:profile, _on}), do: []

  defp failure(id) do
    case fetch(id) do
      {:failed, _} = failed -> failed
      _ -> nil
    end
  end

  ## Casts

  defp cast({:upload, id, type, shape, data}), do: Process.put(id, {type, shape, bulk(data)})

  defp cast({:upload_part, id, type, shape, offset, data}) do
    parts = Process.get({:part, id}, [])
    ^offset = IO.iodata_length(parts)
    parts = [parts, data]

    if IO.iodata_length(parts) == bytes(type, shape) do
      Process.delete({:part, id})
      Process.put(id, {type, shape, IO.iodata_to_binary(parts)})
    else
      Process.put({:part, id}, parts)
    end
  end

  defp cast({:op, {op, type, shape, attrs} = node, ins, [out]}) do
    Process.put(:ops, Process.get(:ops, 0) + 1)

    result =
      case Enum.find_value(ins, &(is_integer(&1) and failure(&1))) do
        {:failed, _} = failed ->
          failed

        _ ->
          try do
            inputs = Enum.map(ins, &tensor/1)
            attrs = if attrs == [], do: %{}, else: attrs
            result = run(op, template(type, shape), inputs, attrs)
            bytes = Nx.to_binary(result)

            if byte_size(bytes) != bytes(type, shape),
              do:
                raise(
                  "#{op}: the result has #{byte_size(bytes)} bytes, not those of #{type} #{inspect(shape)}"
                )

            {type, shape, bytes}
          rescue
            e -> {:failed, error(node, e)}
          end
      end

    Process.put(out, result)
  end

  defp cast({:free, ids}), do: Enum.each(ids, &Process.delete/1)

  defp bulk({:file, name, bytes}) do
    path = Path.join(Process.get(:runtime_dir), name)
    data = File.read!(path)
    File.rm!(path)
    ^bytes = byte_size(data)
    data
  end

  defp bulk(data), do: data

  defp fetch(id) do
    case Process.get(id) do
      nil -> {:failed, %{op: :read, reason: :unknown_id, message: "no tensor #{id}: freed, or never made"}}
      value -> value
    end
  end

  defp error(what, e) do
    op =
      case what do
        {op, _, _, _} -> op
        tuple when is_tuple(tuple) -> elem(tuple, 0)
        other -> other
      end

    %{op: op, reason: :failed, message: "#{op}: " <> Exception.message(e)}
  end

  ## Tensors

  defp tensor({type, bytes}), do: binary(type, {}, bytes)

  defp tensor(id) do
    case fetch(id) do
      {:failed, error} -> raise error.message
      {type, shape, bytes} -> binary(type, shape, bytes)
    end
  end

  defp binary(type, shape, bytes) do
    Nx.BinaryBackend.from_binary(template(type, shape), bytes, [])
  end

  defp template(type, shape), do: Nx.template(shape, type)
  defp bytes(type, shape), do: div(Nx.size(shape) * elem(Nx.Type.normalize!(type), 1), 8)

  ## Operations

  defp run(:constant, out, [], %{value: value}) do
    Nx.BinaryBackend.from_binary(out, :binary.copy(value, Nx.size(out)), [])
  end

  defp run(:iota, out, [], %{axis: axis}), do: Nx.BinaryBackend.iota(out, axis, [])
  defp run(:eye, out, [], _), do: Nx.BinaryBackend.eye(out, [])

  defp run(op, out, [x], %{axes: axes} = attrs)
       when op in [:sum, :product, :reduce_max, :reduce_min, :all, :any] do
    # A scalar has no axes to reduce; BinaryBackend then wants to be told of none at all.
    axes = if axes == [], do: nil, else: axes
    apply(Nx.BinaryBackend, op, [out, x, [axes: axes, keep_axes: Map.get(attrs, :keep_axes, false)]])
  end

  defp run(op, out, [x], attrs) when op in [:argmax, :argmin] do
    opts = [
      axis: attrs.axis,
      keep_axis: Map.get(attrs, :keep_axes, false),
      tie_break: Map.get(attrs, :tie_break, :low)
    ]

    apply(Nx.BinaryBackend, op, [out, x, opts])
  end

  defp run(:squeeze, out, [x], %{axes: axes}), do: Nx.BinaryBackend.squeeze(out, x, axes)
  defp run(:reverse, out, [x], %{axes: axes}), do: Nx.BinaryBackend.reverse(out, x, axes)
  defp run(:transpose, out, [x], %{axes: axes}), do: Nx.BinaryBackend.transpose(out, x, axes)

  defp run(:broadcast, out, [x], %{axes: axes}),
    do: Nx.BinaryBackend.broadcast(out, x, out.shape, axes)

  defp run(:pad, out, [x, value], %{config: config}) do
    x = Nx.BinaryBackend.as_type(%{x | type: out.type}, x)
    Nx.BinaryBackend.pad(out, x, value, config)
  end

  defp run(:slice, out, [x | starts], %{lengths: lengths, strides: strides}),
    do: Nx.BinaryBackend.slice(out, x, starts, lengths, strides)

  defp run(:put_slice, out, [x, update | starts], _),
    do: Nx.BinaryBackend.put_slice(out, x, starts, update)

  defp run(:concatenate, out, ins, %{axis: axis}), do: Nx.BinaryBackend.concatenate(out, ins, axis)
  defp run(:stack, out, ins, %{axis: axis}), do: Nx.BinaryBackend.stack(out, ins, axis)

  defp run(:dot, out, [a, b], attrs) do
    Nx.BinaryBackend.dot(
      out,
      a,
      attrs.contract_a,
      Map.get(attrs, :batch_a, []),
      b,
      attrs.contract_b,
      Map.get(attrs, :batch_b, [])
    )
  end

  defp run(op, out, ins, _attrs) do
    apply(Nx.BinaryBackend, op, [out | spread(op, out, ins)])
  end

  # Operands broadcast to the result's shape; BinaryBackend does so for pairs, but select wants its predicate whole.
  defp spread(:select, out, [pred, on_true, on_false]) do
    [if(pred.shape == {}, do: pred, else: Nx.broadcast(pred, out.shape)), on_true, on_false]
  end

  defp spread(_op, _out, ins), do: ins
end

NxVulkan.OraclePort.main()

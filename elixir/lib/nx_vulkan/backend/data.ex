defmodule Nx.Vulkan.Backend.Data do
  @moduledoc false
  # Creating, reading, moving and showing tensors.

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.{DeviceError, Error, Handle, Port}
  alias Nx.Vulkan.Backend, as: B
  alias Nx.Vulkan.Backend.{Eager, Host, Trace, Types}

  ## Where

  @doc """
  A backend struct for backend options: the device and how errors come, to be given a state.
  """
  def place([]) do
    %B{
      device: Application.get_env(:nx_vulkan, :device, 0),
      errors: errors(Application.get_env(:nx_vulkan, :errors, :async)),
      state: nil
    }
  end

  def place(%B{device: nil}), do: place([])
  def place(%B{} = placed), do: placed

  def place(opts), do: placed(place([]), B.init(opts))

  defp errors(errors) when errors in [:async, :sync], do: errors

  defp errors(other) do
    raise ArgumentError, "config :nx_vulkan, errors: expected :async or :sync, got: #{inspect(other)}"
  end

  ## Creation

  @doc false
  # A constant without options is nowhere: it goes where it is needed, so nothing is looked up for it.
  def constant(%T{type: type} = out, number, []) do
    %{out | data: %B{state: {:constant, Types.number(number, type)}}}
  end

  def constant(%T{type: type} = out, number, opts) do
    %{out | data: %{place(opts) | state: {:constant, Types.number(number, type)}}}
  end

  @doc false
  def from_binary(out, binary, opts) when is_bitstring(binary), do: store(out, binary, place(opts))

  def from_binary(out, iodata, opts),
    do: store(out, :erlang.list_to_bitstring(iodata), place(opts))

  @doc false
  def iota(%T{shape: {}} = out, nil, opts), do: constant(out, 0, opts)
  def iota(out, axis, opts), do: create(:iota, out, %{axis: axis}, [out, axis, opts])

  @doc false
  def eye(out, opts), do: create(:eye, out, [], [out, opts])

  # These take no operand, so the options say where.
  defp create(name, out, attrs, args) do
    place = place(List.last(args))

    case Eager.attempt(name, [out], [], 0, attrs, {name, args}, place) do
      {:ok, [result]} -> result
      {:none, why} -> Host.fallback(name, List.replace_at(args, -1, []), why, place)
    end
  end

  @doc """
  Puts bits of a whole tensor where tensors of its type live.
  """
  def store(%T{type: type, shape: shape} = out, bits, %B{} = place) do
    place = place(place)

    port = Port.get!(place.device)
    {_id, handle} = upload(port, type, Types.wire(type), shape, bits)
    %{out | data: %{place | state: handle}}
  end

  defp upload(port, type, wire, shape, bits) do
    {id, handle} = Handle.new(port, Types.bytes(type, Nx.size(shape)))
    Port.upload(port, id, wire, shape, Types.pad(bits))
    {id, handle}
  end

  @doc """
  Makes a device tensor of an operand that is none: a host constant, or a tensor of another backend.
  """
  def upload(port, %T{type: type, shape: shape, data: %B{state: {:constant, bits}}}) do
    {id, handle} = Handle.new(port, Types.bytes(type, Nx.size(shape)))
    Port.cast(port, {:op, {:constant, Types.wire(type), shape, %{value: bits}}, [], [id]})
    {id, handle}
  end

  def upload(port, %T{type: type, shape: shape, data: %module{}} = t) do
    upload(port, type, Types.wire(type), shape, module.to_binary(t, Nx.size(shape)))
  end

  @doc """
  The data of a tensor that stays as it is: the backend's own is shared, another's moves here.
  """
  def adopt(%T{data: %B{} = data}), do: data

  def adopt(%T{data: %module{}} = t),
    do: store(t, module.to_binary(t, Nx.size(t.shape)), place([])).data

  ## Reading

  @doc false
  def to_binary(%T{type: type, shape: shape, data: %B{state: state} = b}, limit) do
    case state do
      handle when is_binary(handle) -> read_elements(handle, type, limit)
      {:constant, bits} -> repeat(bits, min(limit, Nx.size(shape)))
      {:traced, _, _} -> Trace.leave()
      nil -> raise ArgumentError, "the tensor holds no data: #{inspect(b)}"
    end
  end

  defp read_elements(handle, type, count) do
    bytes = read(handle, 0, Types.packed(type, count))
    part(bytes, 0, count * bit_width(type))
  end

  @doc """
  Bytes of a device tensor, as they lie on the wire. One of another node is read there.
  """
  def read(handle, offset, length) do
    if Handle.local?(handle) do
      port = Port.get!(Handle.device(handle))
      result = Port.read(port, Handle.id!(handle, port), offset, length)
      Handle.keep(handle)

      case result do
        {:ok, bytes} -> bytes
        {:error, error} -> raise Error.as_nx(error)
      end
    else
      read_there(Handle.owner(handle), handle, offset, length)
    end
  end

  defp read_there(owner, handle, offset, length) when owner not in [nil, node()] do
    :erpc.call(owner, __MODULE__, :read, [handle, offset, length])
  end

  defp read_there(_unknown, handle, _offset, _length) do
    {:error, error} = Handle.check(handle)
    raise error
  end

  defp repeat(bits, 1), do: bits
  defp repeat(bits, n) when is_binary(bits), do: :binary.copy(bits, n)
  defp repeat(bits, n), do: for(_ <- 1..n//1, into: <<>>, do: bits)

  defp part(bits, 0, size) when bit_size(bits) == size, do: bits

  defp part(bits, skip, size) do
    <<_::size(^skip)-bitstring, part::size(^size)-bitstring, _::bitstring>> = bits
    part
  end

  defp bit_width({_, size}), do: size

  @doc """
  The tensor on Nx.BinaryBackend.
  """
  def to_host(%T{shape: shape} = t),
    do: Nx.BinaryBackend.from_binary(t, to_binary(t, Nx.size(shape)), [])

  @doc false
  def inspect(%T{shape: shape} = t, %Inspect.Opts{limit: limit} = opts) do
    size = Nx.size(shape)
    # One more than is shown, so that Nx sees that there is more.
    count = if limit == :infinity, do: size, else: min(size, limit + 1)

    try do
      to_binary(t, count)
    rescue
      error in [Error, DeviceError, ArgumentError] ->
        Inspect.Algebra.string("** (#{Kernel.inspect(error.__struct__)}) " <> Exception.message(error))
    else
      binary -> Nx.Backend.inspect(t, binary, opts)
    end
  end

  ## Batches

  @doc false
  def to_batched(out, t, opts) do
    size = elem(t.shape, 0)
    batch = elem(out.shape, 0)
    full = div(size, batch)
    last = if rem(size, batch) != 0 and opts[:leftover] == :repeat, do: full, else: full - 1

    Stream.map(0..last//1, fn
      ^full ->
        # The last batch is filled up from the front.
        rest = size - full * batch
        tail = rows(out, t, full * batch, rest)
        head = rows(out, t, 0, batch - rest)
        B.concatenate(out, [tail, head], 0)

      i ->
        rows(out, t, i * batch, batch)
    end)
  end

  defp rows(out, t, start, count) do
    [_ | dims] = Tuple.to_list(t.shape)
    out = %{out | shape: List.to_tuple([count | dims])}

    B.slice(
      out,
      t,
      [start | Enum.map(dims, fn _ -> 0 end)],
      [count | dims],
      List.duplicate(1, length(dims) + 1)
    )
  end

  ## Moving

  @vulkan [B, Nx.Vulkan.VulkanoBackend]

  @doc false
  def backend_copy(%T{data: %B{} = data} = t, backend, opts) when backend in @vulkan do
    case {here?(data, opts), data.state} do
      {true, handle} when is_binary(handle) -> alias_of(t, opts)
      {true, _} -> %{t | data: placed(data, opts)}
      {false, {:constant, _}} -> %{t | data: placed(data, opts)}
      {false, _} -> store(t, to_binary(t, Nx.size(t.shape)), place(opts))
    end
  end

  def backend_copy(t, backend, _opts) when backend in [Nx.Tensor, Nx.BinaryBackend], do: to_host(t)

  def backend_copy(t, backend, opts), do: backend.from_binary(t, to_binary(t, Nx.size(t.shape)), opts)

  @doc false
  # What goes to another backend is deallocated here, as Nx wants it; see the backend's option `:transfer`.
  def backend_transfer(%T{data: %B{} = data} = t, backend, opts) when backend in @vulkan do
    if here?(data, opts), do: %{t | data: placed(data, opts)}, else: moved(t, backend, opts)
  end

  def backend_transfer(t, backend, opts), do: moved(t, backend, opts)

  defp moved(t, backend, opts) do
    copy = backend_copy(t, backend, opts)
    if t.data.transfer != :copy, do: backend_deallocate(t)
    copy
  end

  # Options that name no device leave the tensor where it is.
  defp here?(%B{device: device}, opts), do: Keyword.get(opts, :device, device) == device

  defp placed(data, opts) do
    %{
      data
      | device: Keyword.get(opts, :device, data.device),
        errors: Keyword.get(opts, :errors, data.errors),
        transfer: Keyword.get(opts, :transfer, data.transfer)
    }
  end

  # A tensor of its own over the same bytes: tensors are never written, so the port shares them.
  defp alias_of(%T{type: type, shape: shape, data: data} = t, opts) do
    port = Port.get!(data.device)
    source = Handle.id!(data.state, port)
    {id, handle} = Handle.new(port, Types.bytes(type, Nx.size(shape)))
    Port.cast(port, {:op, {:reshape, Types.wire(type), shape, []}, [source], [id]})
    Handle.keep(data.state)
    %{t | data: %{placed(data, opts) | state: handle}}
  end

  @doc false
  def backend_deallocate(%T{data: %B{state: handle}}) when is_binary(handle),
    do: Handle.free(handle)

  def backend_deallocate(_t), do: :ok
end

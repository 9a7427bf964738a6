defmodule Nx.Vulkan.Backend do
  @moduledoc """
  Nx tensors on a Vulkan device.

      Nx.default_backend(Nx.Vulkan.Backend)
      Nx.tensor([1.0, 2.0]) |> Nx.exp() |> Nx.sum()

  ## Options

    * `:device` - which device, by number (0 is what `NXVK_DEVICE` names, or the port's choice). Without it
      `config :nx_vulkan, device: n`, else 0.
    * `:errors` - `:async` (the default) or `:sync`. Operations are sent without waiting. One that
      fails makes a failed tensor: reading it, or anything computed from it, raises the first error.
      With `:sync` each operation is waited for and raises where it is called, at the price of a round trip.
      `config :nx_vulkan, errors: :sync` sets it for all.

  ## What a tensor holds

  One of three things, in the field `state`:

    * a handle: the tensor lives on the device;
    * `{:constant, element}`: every element is this number. Nothing was sent: `constant/3` keeps it on
      the host, arithmetic of such tensors alone happens here, and as an operand it travels inside the
      operation's own frame;
    * `{:host, bits}`: a type that no device tensor has (complex, 8-bit floats, less than 8 bits).

  ## Where operations run

  On the device, for the types u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64: what `@device` lists.
  Everything else runs through `Nx.BinaryBackend`, counted by `Nx.Vulkan.Fallback`, with the result
  moved back to the device. Blocks (`Nx.block/4`) run their default implementation operation by operation,
  except those of linear algebra, which are loops over single numbers: they move to the host as a whole.

  Pointers are not supported: the memory belongs to another program.
  """

  @behaviour Nx.Backend

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.Backend.{Data, Eager, Host}

  @type state :: Nx.Vulkan.Handle.t() | {:constant, bitstring} | {:host, bitstring}
  @typedoc "`device` and `errors` are `nil` in a constant that was given no options."
  @type t :: %__MODULE__{
          device: non_neg_integer | nil,
          errors: :async | :sync | nil,
          state: state
        }

  @enforce_keys [:state]
  defstruct [:device, :errors, :state]

  @impl true
  def init([]), do: []

  def init(opts) do
    Enum.each(opts, fn
      {:device, device} when is_integer(device) and device >= 0 ->
        :ok

      {:errors, errors} when errors in [:async, :sync] ->
        :ok

      other ->
        raise ArgumentError,
              "#{inspect(__MODULE__)} takes device: a number and errors: :async or :sync, got: #{inspect(other)}"
    end)

    opts
  end

  ## Creation, reading, moving

  @impl true
  defdelegate constant(out, number, opts), to: Data
  @impl true
  defdelegate from_binary(out, binary, opts), to: Data
  @impl true
  defdelegate iota(out, axis, opts), to: Data
  @impl true
  defdelegate eye(out, opts), to: Data
  @impl true
  defdelegate to_binary(tensor, limit), to: Data
  @impl true
  defdelegate inspect(tensor, inspect_opts), to: Data
  @impl true
  defdelegate to_batched(out, tensor, opts), to: Data
  @impl true
  defdelegate backend_copy(tensor, backend, opts), to: Data
  @impl true
  defdelegate backend_transfer(tensor, backend, opts), to: Data
  @impl true
  defdelegate backend_deallocate(tensor), to: Data

  @impl true
  def from_pointer(_pointer, _type, _shape, _backend_opts, _opts) do
    raise ArgumentError, "#{Kernel.inspect(__MODULE__)} has no pointers: its memory belongs to the port"
  end

  @impl true
  def to_pointer(_tensor, _opts) do
    raise ArgumentError, "#{Kernel.inspect(__MODULE__)} has no pointers: its memory belongs to the port"
  end

  ## Operations of the device

  # {callback, its arguments after the result template, operands on the wire, how host constants
  #  take part, attributes}. Constants: :map (evaluate once, for any shape), :same (the result is the
  #  same constant), {:values, n} (the first n operands must be tensors, the rest may travel by value).
  x = Macro.var(:x, __MODULE__)
  y = Macro.var(:y, __MODULE__)
  z = Macro.var(:z, __MODULE__)
  axes = Macro.var(:axes, __MODULE__)
  opts = Macro.var(:opts, __MODULE__)

  binary =
    [:add, :subtract, :multiply, :pow, :remainder, :divide, :atan2, :min, :max, :quotient] ++
      [:bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
      [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
      [:logical_and, :logical_or, :logical_xor]

  unary =
    [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :cosh, :sinh, :tanh] ++
      [:acos, :asin, :atan, :acosh, :asinh, :atanh, :sqrt, :rsqrt, :cbrt, :erf, :erfc, :erf_inv] ++
      [:abs, :bitwise_not, :ceil, :conjugate, :floor, :negate, :round, :sign] ++
      [:count_leading_zeros, :population_count, :real, :imag, :is_nan, :is_infinity]

  device =
    for(op <- binary, do: {op, [x, y], [x, y], :map, []}) ++
      for(op <- unary, do: {op, [x], [x], :map, []}) ++
      for op <- [:product, :reduce_max, :reduce_min, :all, :any] do
        {op, [x, opts], [x], {:values, 1}, quote(do: Eager.reduction(unquote(x), unquote(opts)))}
      end ++
      for op <- [:argmax, :argmin] do
        {op, [x, opts], [x], {:values, 1}, quote(do: Eager.arg_reduction(unquote(opts)))}
      end ++
      [
        {:sum, [x, opts], [x], {:values, 1}, quote(do: Eager.sum(unquote(x), unquote(opts)))},
        {:select, [x, y, z], [x, y, z], :map, []},
        {:squeeze, [x, axes], [x], :same, quote(do: %{axes: Enum.sort(unquote(axes))})},
        {:transpose, [x, axes], [x], :same, quote(do: %{axes: unquote(axes)})},
        {:reverse, [x, axes], [x], :same, quote(do: %{axes: unquote(axes)})},
        {:broadcast, [x, y, axes], [x], :same, quote(do: %{axes: unquote(axes)})}
      ]

  @device Enum.map(device, &elem(&1, 0)) ++
            [:as_type, :bitcast, :reshape, :pad, :clip, :slice, :put_slice, :concatenate, :stack, :dot]

  for {name, args, operands, constants, attrs} <- device do
    @impl true
    def unquote(name)(out, unquote_splicing(args)) do
      Eager.run(unquote(name), out, unquote(operands), unquote(constants), unquote(attrs), [
        out,
        unquote_splicing(args)
      ])
    end
  end

  @impl true
  def as_type(%T{type: type} = out, %T{type: type} = x), do: %{out | data: Data.adopt(x)}
  def as_type(out, x), do: Eager.run(:as_type, out, [x], :map, [], [out, x])

  @impl true
  def bitcast(%T{type: type} = out, %T{type: type} = x), do: %{out | data: Data.adopt(x)}
  def bitcast(out, x), do: Eager.run(:bitcast, out, [x], :same, [], [out, x])

  @impl true
  def reshape(%T{shape: shape} = out, %T{shape: shape} = x), do: %{out | data: Data.adopt(x)}
  def reshape(out, x), do: Eager.run(:reshape, out, [x], :same, [], [out, x])

  @impl true
  # A scalar has no axis to pad: what remains is the cast.
  def pad(%T{shape: {}} = out, x, _value, []), do: as_type(out, x)

  def pad(out, x, value, config) do
    Eager.run(:pad, out, [x, value], {:values, 1}, %{config: config}, [out, x, value, config])
  end

  @impl true
  def clip(out, x, min, max) do
    constants = if Host.constant?([x, min, max]), do: :map, else: {:values, 1}
    Eager.run(:clip, out, [x, min, max], constants, [], [out, x, min, max])
  end

  @impl true
  def slice(out, x, starts, lengths, strides) do
    args = [out, x, starts, lengths, strides]

    if Host.constant?([x]) do
      Eager.run(:slice, out, [x], :same, [], args)
    else
      attrs = %{lengths: lengths, strides: strides}
      Eager.run(:slice, out, [x | starts], {:values, 1}, attrs, args)
    end
  end

  @impl true
  def put_slice(out, x, starts, update) do
    args = [out, x, starts, update]
    Eager.run(:put_slice, out, [x, update | starts], {:values, 2}, [], args)
  end

  @impl true
  def concatenate(out, tensors, axis) do
    Eager.run(:concatenate, out, tensors, {:values, length(tensors)}, %{axis: axis}, [out, tensors, axis])
  end

  @impl true
  # Scalars may travel by value; anything larger needs to be a tensor.
  def stack(out, [%T{shape: shape} | _] = tensors, axis) do
    whole = if shape == {}, do: 0, else: length(tensors)
    Eager.run(:stack, out, tensors, {:values, whole}, %{axis: axis}, [out, tensors, axis])
  end

  @impl true
  def dot(out, x, contract_x, batch_x, y, contract_y, batch_y) do
    attrs = Eager.contraction(contract_x, batch_x, contract_y, batch_y)

    Eager.run(:dot, out, [x, y], {:values, 2}, attrs, [
      out,
      x,
      contract_x,
      batch_x,
      y,
      contract_y,
      batch_y
    ])
  end

  ## Operations of the host

  @host [
    gather: [:x, :indices, :opts],
    indexed_add: [:x, :indices, :updates, :opts],
    indexed_put: [:x, :indices, :updates, :opts],
    conv: [:x, :kernel, :opts],
    reduce: [:x, :acc, :opts, :fun],
    window_reduce: [:x, :acc, :window, :opts, :fun],
    window_sum: [:x, :window, :opts],
    window_product: [:x, :window, :opts],
    window_max: [:x, :window, :opts],
    window_min: [:x, :window, :opts],
    window_scatter_max: [:x, :source, :init, :window, :opts],
    window_scatter_min: [:x, :source, :init, :window, :opts],
    sort: [:x, :opts],
    argsort: [:x, :opts],
    triangular_solve: [:x, :y, :opts],
    fft: [:x, :opts],
    ifft: [:x, :opts]
  ]

  for {name, args} <- @host do
    args = Enum.map(args, &Macro.var(&1, __MODULE__))

    @impl true
    def unquote(name)(out, unquote_splicing(args)) do
      Host.fallback(unquote(name), [out, unquote_splicing(args)], "there is no kernel for it yet")
    end
  end

  @impl true
  def block(struct, out, args, fun), do: Host.block(struct, out, args, fun)

  @doc """
  The callbacks that run on the device.
  """
  @spec device_callbacks() :: [atom]
  def device_callbacks, do: @device

  @doc """
  The callbacks that run on the host, whatever the types.
  """
  @spec host_callbacks() :: [atom]
  def host_callbacks, do: Keyword.keys(@host)
end

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
    * `:transfer` - what `Nx.backend_transfer/2` to another backend leaves behind: nothing (`:deallocate`, the
      default, as `Nx` documents it), or the tensor, for the reaper to free once nobody holds it (`:copy`).

  ## What a tensor holds

  One of two things, in the field `state`:

    * a handle: the tensor lives on the device;
    * `{:constant, element}`: every element is this number. Nothing was sent: `constant/3` keeps it on
      the host, arithmetic of such tensors alone happens here, and as an operand it travels inside the
      operation's own frame.

  ## Where operations run

  Every callback, and every block of Nx (`Nx.block/4`), is an operation of the port's. `Nx.Vulkan.Plan` asks it once
  for each signature where it will run: on the device, or on the CPU inside the port, where that is faster or the
  device lacks what it takes. Either way nothing comes back to the BEAM. `Nx.Vulkan.Fallback` counts both, and can
  refuse them: what the port's CPU does, and what the port cannot do at all, which runs through
  `Nx.BinaryBackend` with the result moved back.

  A block that the port does not know, such as one of another library, runs its default implementation, which comes
  back to this backend operation by operation.

  Pointers are not supported: the memory belongs to another program.
  """

  @behaviour Nx.Backend

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.Backend.{Blocks, Data, Eager, Host, Trace}

  @type state :: Nx.Vulkan.Handle.t() | {:constant, bitstring}
  @typedoc "All but `state` are `nil` in a constant that was given no options; `transfer` is unless it was given."
  @type t :: %__MODULE__{
          device: non_neg_integer | nil,
          errors: :async | :sync | nil,
          transfer: :deallocate | :copy | nil,
          state: state
        }

  @enforce_keys [:state]
  defstruct [:device, :errors, :transfer, :state]

  @impl true
  def init([]), do: []

  def init(opts) do
    Enum.each(opts, fn
      {:device, device} when is_integer(device) and device >= 0 ->
        :ok

      {:errors, errors} when errors in [:async, :sync] ->
        :ok

      {:transfer, transfer} when transfer in [:deallocate, :copy] ->
        :ok

      other ->
        raise ArgumentError,
              "#{inspect(__MODULE__)} takes device: a number, errors: :async or :sync, and transfer: :deallocate or :copy, got: #{inspect(other)}"
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

  ## Operations that take more than host constants can say

  # {callback, its arguments after the result template, operands, how many of them must be tensors, attributes}.
  indices = Macro.var(:indices, __MODULE__)
  updates = Macro.var(:updates, __MODULE__)
  window = Macro.var(:window, __MODULE__)

  more =
    [
      {:gather, [x, indices, opts], [x, indices], 2, quote(do: %{axes: unquote(opts)[:axes]})},
      {:conv, [x, y, opts], [x, y], 2, quote(do: Eager.conv(unquote(opts)))},
      {:triangular_solve, [x, y, opts], [x, y], 2, quote(do: Map.new(unquote(opts)))}
    ] ++
      for op <- [:indexed_add, :indexed_put] do
        {op, [x, indices, updates, opts], [x, indices, updates], 3, quote(do: %{axes: unquote(opts)[:axes]})}
      end ++
      for op <- [:window_sum, :window_product, :window_max, :window_min] do
        {op, [x, window, opts], [x], 1, quote(do: Eager.window(unquote(window), unquote(opts)))}
      end ++
      for op <- [:window_scatter_max, :window_scatter_min] do
        {op, [x, y, z, window, opts], [x, y, z], 2, quote(do: Eager.window(unquote(window), unquote(opts)))}
      end ++
      for op <- [:sort, :argsort] do
        attrs = quote(do: %{axis: unquote(opts)[:axis], direction: unquote(opts)[:direction]})
        {op, [x, opts], [x], 1, attrs}
      end ++
      for(op <- [:fft, :ifft], do: {op, [x, opts], [x], 1, quote(do: Eager.fft(unquote(opts)))})

  for {name, args, operands, whole, attrs} <- more do
    @impl true
    def unquote(name)(out, unquote_splicing(args)) do
      Eager.send_op(unquote(name), out, unquote(operands), unquote(whole), unquote(attrs), [
        out,
        unquote_splicing(args)
      ])
    end
  end

  @impl true
  def reduce(out, x, acc, opts, fun) do
    with_function(:reduce, out, x, acc, Eager.reduction(x, opts), fun, [out, x, acc, opts, fun])
  end

  @impl true
  def window_reduce(out, x, acc, window, opts, fun) do
    attrs = Eager.window(window, opts)
    with_function(:window_reduce, out, x, acc, attrs, fun, [out, x, acc, window, opts, fun])
  end

  defp with_function(name, out, x, acc, attrs, fun, args) do
    case Trace.graph(fun, out.type) do
      {:ok, graph} -> Eager.send_op(name, out, [x, acc], 1, Map.put(attrs, :fun, graph), args)
      :error -> Host.fallback(name, args, "its function is no graph of scalars")
    end
  end

  @impl true
  def block(struct, out, args, fun), do: Blocks.run(struct, out, args, fun)
end

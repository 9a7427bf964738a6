defmodule Nx.Vulkan.Backend.Host do
  @moduledoc false
  # What is computed in the BEAM: arithmetic of host constants (never counted, nothing moves for it), and
  # fallbacks through Nx.BinaryBackend (always counted, before anything moves).

  alias Nx.Tensor, as: T
  alias Nx.Vulkan.Fallback
  alias Nx.Vulkan.Backend, as: B
  alias Nx.Vulkan.Backend.{Data, Types}

  @floats [:f8, :f8_e4m3fn, :f16, :bf16, :f32, :f64, :c64, :c128]

  ## Constants

  @doc """
  Whether all operands are host constants (static slice starts are).
  """
  def constant?([%T{data: %B{state: {:constant, _}}} | rest]), do: constant?(rest)
  def constant?([integer | rest]) when is_integer(integer), do: constant?(rest)
  def constant?([_ | _]), do: false
  def constant?([]), do: true

  @doc """
  The result of an operation of host constants alone, or `:device` where it has to be computed there.
  """
  # A view of a constant, or other bits of the same element.
  def constant(_name, out, [x | _], :same, _args), do: %{out | data: x.data}

  # Where BinaryBackend would compute with other numbers than the device, the device does: one rounding for all.
  def constant(name, out, operands, constants, args) do
    if Enum.all?([out | operands], &exact?/1),
      do: of_constants(name, out, operands, constants, args),
      else: :device
  end

  defp exact?(%T{type: type}), do: Types.exact_on_host?(type)
  defp exact?(_start), do: true

  # Every element is the same, so one is computed.
  defp of_constants(name, out, [x | _] = operands, :map, _args) do
    scalar = %{out | shape: {}, names: []}

    case evaluate(name, [scalar | Enum.map(operands, &scalar(&1, {}))], out.type) do
      {:ok, result} -> constant_like(out, x.data, Nx.BinaryBackend.to_binary(result, 1))
      :device -> :device
    end
  end

  # Reductions, stacks and the like of single elements.
  defp of_constants(name, out, [x | _] = operands, {:values, _}, [_ | args]) do
    if Enum.all?(operands, &(is_integer(&1) or Nx.size(&1.shape) == 1)) do
      case evaluate(name, [out | Enum.map(args, &single/1)], out.type) do
        {:ok, result} -> adopt(result, out, x.data)
        :device -> :device
      end
    else
      :device
    end
  end

  # Where BinaryBackend raises for floats the device has the IEEE result; for integers it raises here as there.
  defp evaluate(name, args, type) do
    {:ok, apply(Nx.BinaryBackend, name, args)}
  rescue
    error in ArithmeticError ->
      if Nx.Type.float?(type), do: :device, else: reraise(error, __STACKTRACE__)
  end

  defp single(%T{shape: shape} = t), do: scalar(t, shape)
  defp single([%T{} | _] = list), do: Enum.map(list, &single/1)
  defp single(other), do: other

  defp scalar(%T{data: %B{state: {:constant, bits}}} = t, shape),
    do: Nx.BinaryBackend.from_binary(%{t | shape: shape}, bits, [])

  defp scalar(integer, _shape) when is_integer(integer), do: integer

  defp constant_like(out, %B{} = b, bits), do: %{out | data: %{b | state: {:constant, bits}}}

  @doc """
  Raises for host scalars that no device would refuse but Nx does.
  """
  def check!(name, type, [_, %T{data: %B{state: {:constant, bits}}, type: {kind, size}}])
      when name in [:left_shift, :right_shift, :quotient, :remainder, :pow] and kind in [:s, :u] do
    value =
      case kind do
        :s -> with(<<n::size(^size)-signed-native>> <- bits, do: n)
        :u -> with(<<n::size(^size)-unsigned-native>> <- bits, do: n)
      end

    refuse_scalar!(name, type, value)
  end

  def check!(:atan2, type, _operands) when type in [:c64, :c128],
    do: raise(ArithmeticError, "Complex.atan2 only accepts real numbers as arguments")

  def check!(_name, _type, _operands), do: :ok

  defp refuse_scalar!(:left_shift, _type, n) when n < 0, do: raise(ArgumentError, "cannot left shift by #{n}")

  defp refuse_scalar!(:right_shift, _type, n) when n < 0,
    do: raise(ArgumentError, "cannot right shift by #{n}")

  defp refuse_scalar!(op, type, 0)
       when op in [:quotient, :remainder] and type not in @floats,
       do: raise(ArithmeticError, "bad argument in arithmetic expression: #{op} by zero")

  defp refuse_scalar!(:pow, type, n) when n < 0 and type not in @floats,
    do: raise(ArithmeticError, "bad argument in arithmetic expression: integer pow by #{n}")

  defp refuse_scalar!(_op, _type, _n), do: :ok

  ## Fallbacks

  @doc """
  Runs a callback through Nx.BinaryBackend and moves the result back.
  """
  def fallback(name, [out | rest] = args, why, place \\ nil) do
    Fallback.note(name, args, why)
    like = place || like(rest)
    args = [out | Enum.map(rest, &move/1)]
    result = on_host(fn -> apply(Nx.BinaryBackend, name, args) end)
    adopt(result, out, like)
  end

  # Functions given to reduce/5 and numbers made inside BinaryBackend must not come back to the device.
  defp on_host(fun), do: Nx.with_default_backend(Nx.BinaryBackend, fun)

  defp like([%T{data: %B{} = b} | _]), do: b
  defp like([[%T{} | _] = list | rest]), do: like(list ++ rest)
  defp like([_ | rest]), do: like(rest)
  defp like([]), do: Data.place([])

  defp move(%T{data: %B{}} = t), do: Data.to_host(t)
  defp move([%T{} | _] = list), do: Enum.map(list, &move/1)
  # Slice starts mix integers and tensors.
  defp move([integer | _] = list) when is_integer(integer), do: Enum.map(list, &move/1)
  defp move(other), do: other

  @doc """
  Takes a result of Nx.BinaryBackend in: a scalar stays a host constant, the rest goes to the device.
  """
  def adopt(%T{data: %Nx.BinaryBackend{}} = result, out, %B{} = like) do
    case out.shape do
      {} -> constant_like(out, like, Nx.BinaryBackend.to_binary(result, 1))
      _ -> Data.store(out, Nx.BinaryBackend.to_binary(result, Nx.size(result)), like)
    end
  end

  # The function of a reduce, or a block, may hand back what it was given, or compute on the device.
  def adopt(%T{data: %B{}} = result, out, _like), do: %{out | data: result.data}
end

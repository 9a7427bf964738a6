defmodule Nx.Vulkan.Backend.Types do
  @moduledoc false
  # The element types of the wire, and the bytes of single elements in Nx's native layout.

  @wire [u: 8, u: 16, u: 32, u: 64, s: 8, s: 16, s: 32, s: 64, f: 16, bf: 16, f: 32, f: 64]

  @doc """
  The wire's name of an Nx type, or `nil` for one that no device tensor has.
  """
  @spec wire(Nx.Type.t()) :: atom | nil
  for {kind, size} = type <- @wire do
    def wire(unquote(type)), do: unquote(:"#{kind}#{size}")
  end

  def wire(_other), do: nil

  @doc """
  Bytes of `count` elements of a wire type.
  """
  @spec bytes(Nx.Type.t(), non_neg_integer) :: non_neg_integer
  def bytes({_kind, size}, count), do: div(size * count, 8)

  @doc """
  One integer as `s64`: how static slice starts travel.
  """
  @spec start(integer) :: {:s64, binary}
  def start(integer), do: {:s64, <<integer::64-signed-native>>}

  @doc """
  The bits of one element. What is out of an integer type's range wraps, as in `Nx.BinaryBackend`.
  """
  @spec number(term, Nx.Type.t()) :: bitstring
  def number(n, {:s, size}) when is_integer(n), do: <<n::size(size)-signed-native>>
  def number(n, {:u, size}) when is_integer(n), do: <<n::size(size)-unsigned-native>>
  def number(n, {:f, size}) when is_number(n) and size != 8, do: <<n::size(size)-float-native>>

  def number(n, type) do
    out = %Nx.Tensor{type: type, shape: {}, names: []}
    out |> Nx.BinaryBackend.constant(n, []) |> Nx.BinaryBackend.to_binary(1)
  end
end

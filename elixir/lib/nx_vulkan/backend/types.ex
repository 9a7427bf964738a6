defmodule Nx.Vulkan.Backend.Types do
  @moduledoc false
  # The element types of the wire, and the bytes of single elements in Nx's native layout.

  @wire [u: 2, u: 4, u: 8, u: 16, u: 32, u: 64, s: 2, s: 4, s: 8, s: 16, s: 32, s: 64] ++
          [f: 8, f: 16, bf: 16, f: 32, f: 64, c: 64, c: 128]

  @doc """
  The wire's name of an Nx type, or `nil` for one that no device tensor has.
  """
  @spec wire(Nx.Type.t()) :: atom | nil
  for {kind, size} = type <- @wire do
    def wire(unquote(type)), do: unquote(:"#{kind}#{size}")
  end

  def wire({:f8_e4m3fn, 8}), do: :f8_e4m3fn
  def wire(_other), do: nil

  @doc """
  Bytes of `count` elements of a wire type on the device, where each takes a byte at least.
  """
  @spec bytes(Nx.Type.t(), non_neg_integer) :: non_neg_integer
  def bytes({_kind, size}, count) when size < 8, do: count
  def bytes({_kind, size}, count), do: div(size * count, 8)

  @doc """
  Bytes of `count` elements of a wire type on the wire, where types below 8 bits lie close together.
  """
  @spec packed(Nx.Type.t(), non_neg_integer) :: non_neg_integer
  def packed({_kind, size}, count), do: div(size * count + 7, 8)

  @doc """
  Bits as a binary: filled up with zeros to whole bytes.
  """
  @spec pad(bitstring) :: binary
  def pad(bits) when is_binary(bits), do: bits
  def pad(bits), do: <<bits::bitstring, 0::size(8 - rem(bit_size(bits), 8))>>

  @doc """
  Whether Nx.BinaryBackend computes with a type as the device does. It rounds bf16 down, reads the zeros and subnormals of f8
  as other numbers, and cannot write less than a byte.
  """
  @spec exact_on_host?(Nx.Type.t()) :: boolean
  def exact_on_host?(type) when type in [{:bf, 16}, {:f, 8}, {:f8_e4m3fn, 8}], do: false
  def exact_on_host?({_kind, size}), do: size >= 8

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

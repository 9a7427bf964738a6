defmodule Nx.Vulkan.Wire do
  @moduledoc """
  The wire, version 1, as Erlang terms: what goes into a frame and what comes out of one.

  A cast is a tuple that starts with an atom; a call is `{req, request}`. Both become one frame in external
  term format, which the port driver prefixes with its length (`{:packet, 4}`). A frame from the port starts
  with one byte: `0` for a reply, followed by the request id as 64 bits big-endian and a term; `1` for an
  event, followed by a term. The request id stands outside the term so that the owner of the port can route
  a reply without decoding it.

  This module knows nothing of processes or devices.
  """

  @version 1

  # Frames stay under 16 MiB and 64 KiB; tensor bytes over @part go in parts or through a file.
  @max_frame 16 * 1024 * 1024 + 64 * 1024
  @part 8 * 1024 * 1024

  # Below this a copy is cheaper than the list of segments that term_to_iovec/1 makes.
  @iovec 4096

  @type id :: pos_integer()
  @type req :: non_neg_integer()
  @type type :: atom()
  @type shape :: tuple()
  @type op_node :: {op :: atom(), type(), shape(), attrs :: map() | []}
  @type operand :: id() | {type(), binary()}

  @typedoc "A cast of the wire. `t:request/0` has what is answered."
  @type cast ::
          {:upload, id(), type(), shape(), binary() | {:file, binary(), non_neg_integer()}}
          | {:upload_part, id(), type(), shape(), offset :: non_neg_integer(), binary()}
          | {:op, op_node(), [operand()], [id()]}
          | {:run, program :: non_neg_integer(), [operand()], [id()]}
          | {:free, [id()]}

  @typedoc "A request of the wire, without its request id."
  @type request ::
          {:hello, version :: pos_integer(), map()}
          | {:compile, tuple()}
          | {:plan, op_node(), [{type(), shape() | :value}]}
          | {:read, id(), non_neg_integer(), non_neg_integer()}
          | {:sync, [id()]}
          | :info
          | :stats
          | {:profile, boolean()}

  @doc """
  The version of the wire that this library speaks.
  """
  @spec version() :: pos_integer()
  def version, do: @version

  @doc """
  The largest frame, in bytes.
  """
  @spec max_frame() :: pos_integer()
  def max_frame, do: @max_frame

  @doc """
  How many tensor bytes travel in one frame at most; more go in parts.
  """
  @spec part_size() :: pos_integer()
  def part_size, do: @part

  @doc """
  Encodes a cast.

  Tensor bytes of `:upload` and `:upload_part` are not copied when there are many of them.
  """
  @spec cast(cast()) :: iodata()
  def cast({:upload, _, _, _, data} = term) when is_binary(data) and byte_size(data) >= @iovec,
    do: checked(:erlang.term_to_iovec(term), :upload)

  def cast({:upload_part, _, _, _, _, data} = term) when byte_size(data) >= @iovec,
    do: checked(:erlang.term_to_iovec(term), :upload_part)

  def cast(term), do: checked(:erlang.term_to_binary(term), term)

  @doc """
  Encodes a call with its request id.
  """
  @spec call(req(), request()) :: iodata()
  def call(req, request), do: checked(:erlang.term_to_binary({req, request}), request)

  defp checked(frame, _term) when is_binary(frame) and byte_size(frame) <= @max_frame, do: frame

  defp checked(frame, term) do
    case :erlang.iolist_size(frame) do
      size when size <= @max_frame -> frame
      size -> raise ArgumentError, too_large(term, size)
    end
  end

  defp too_large(term, size) do
    name = if is_tuple(term), do: elem(term, 0), else: term

    "#{inspect(name)}: a frame of #{size} bytes is over the wire's limit of #{@max_frame}; " <>
      "send large tensors with Nx.Vulkan.Port.upload/5, not inside another term"
  end

  @doc """
  Splits a frame from the port by its first byte, without decoding the term.

      iex> Nx.Vulkan.Wire.split(<<0, 7::64, 131, 97, 1>>)
      {:reply, 7, <<131, 97, 1>>}
      iex> Nx.Vulkan.Wire.split("what?")
      :error
  """
  @spec split(binary()) :: {:reply, req(), binary()} | {:event, binary()} | :error
  def split(<<0, req::64, term::binary>>), do: {:reply, req, term}
  def split(<<1, term::binary>>), do: {:event, term}
  def split(_), do: :error

  @doc """
  Decodes the term of a reply.
  """
  @spec reply(binary()) :: {:ok, term()} | {:error, Nx.Vulkan.Error.t()}
  def reply(term) do
    case decode(term) do
      {:ok, {:ok, value}} -> {:ok, value}
      {:ok, {:error, error}} -> {:error, Nx.Vulkan.Error.from_reply(error)}
      _ -> {:error, Nx.Vulkan.Error.from_reply(term)}
    end
  end

  @doc """
  Decodes the term of an event.
  """
  @spec event(binary()) ::
          {:log, atom(), binary()} | {:fault, atom(), binary()} | {:unknown, term()} | :error
  def event(term) do
    case decode(term) do
      {:ok, {:log, level, message}} when is_atom(level) and is_binary(message) ->
        {:log, level, message}

      {:ok, {:fault, reason, message}} when is_atom(reason) and is_binary(message) ->
        {:fault, reason, message}

      {:ok, other} ->
        {:unknown, other}

      :error ->
        :error
    end
  end

  defp decode(term) do
    {:ok, :erlang.binary_to_term(term)}
  rescue
    ArgumentError -> :error
  end
end

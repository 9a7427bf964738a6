defmodule Nx.Vulkan.Handle do
  @moduledoc """
  What a tensor holds of its bytes on the device: a binary that names them.

  Nobody tells the BEAM's users when a term dies. But a binary of more than 64 bytes is counted by reference, and a
  process can ask for the counts of the binaries that it refers to. A handle is such a binary; `Nx.Vulkan.Reaper`
  holds one reference to each, and frees the tensor when its own is the last. So handles must not be copied by bytes
  (`:binary.copy/1`, `:erlang.term_to_binary/1`): a copy does not keep the tensor, and says so when it is used after
  the tensor is gone. Closures, ETS, mailboxes, persistent terms and messages all count.

  ## Layout

      "NXVK"  format::8  device::16  epoch::32  vm::64  id::64  bytes::64  size of node::16  node  padding

  `vm` is drawn when the node starts, so that a handle from an earlier run names nothing. What comes before `id` is
  the same for all handles of one port: its *stamp*.

  ## Size

  `65 + code + 256 · w` bytes. `code` is the id modulo 256: among 256 handles made in a row the sizes tell which is
  which, and the reaper needs that once. `w` grows with the tensor (`weight/1`), so that the BEAM sees that a process
  drops something big, and collects it: a process keeps some 1,900 dead tensors below 4 KiB, 90 of 64 KiB, 13 of 1 MiB,
  6 of 64 MiB and more.

  ## Keeping

  Once a callback has taken the id out of a handle, the VM may drop the handle, while the id is on its way to the port.
  So every function that sends ids calls `keep/1` with the handles *after* the cast or the reply.
  """

  alias Nx.Vulkan.{DeviceError, Error, Nursery}
  alias Nx.Vulkan.Port.Table

  @type t :: binary()

  @typedoc "What a handle says."
  @type info :: %{
          device: non_neg_integer(),
          epoch: pos_integer(),
          vm: non_neg_integer(),
          id: pos_integer(),
          bytes: non_neg_integer(),
          node: String.t()
        }

  @format 1
  @stamp_size 19
  # stamp, id, bytes, size of node
  @fixed 37
  @base 65
  @zeros <<0::size(@base + 256 * 256)-unit(8)>>

  @doc """
  What the handles of a port start with.
  """
  @spec stamp(non_neg_integer(), pos_integer()) :: binary()
  def stamp(device, epoch) do
    <<"NXVK", @format, device::16, epoch::32, vm()::64>>
  end

  @doc false
  # Draws what tells this run of the node from all others. Called by one process, at the start.
  @spec draw() :: :ok
  def draw, do: Table.once(__MODULE__, fn -> :rand.uniform(0x1_0000_0000_0000_0000) - 1 end)

  defp vm, do: :persistent_term.get(__MODULE__)

  @doc """
  A new tensor id with its handle, for a tensor of `bytes` bytes.

  The reaper knows the handle when this returns, so it can be called before the cast that makes the tensor.
  """
  @spec new(Nx.Vulkan.Port.t(), non_neg_integer()) :: {Nx.Vulkan.Wire.id(), t()}
  def new(%{ids: ids, stamp: stamp}, bytes) do
    id = :atomics.add_get(ids, 1, 1)
    handle = build(stamp, id, bytes)
    Nursery.put(id, handle)
    {id, handle}
  end

  @doc """
  Builds the handle of a tensor without making it known to anyone.
  """
  @spec build(binary(), pos_integer(), non_neg_integer()) :: t()
  def build(stamp, id, bytes) do
    node = Atom.to_string(node())
    named = byte_size(node)
    size = max(@base, @fixed + named) + Bitwise.band(id, 255) + 256 * weight(bytes)
    padding = size - @fixed - named
    zeros = @zeros

    # Made in one go, at its full size: appended to a binary it would get room to grow.
    <<stamp::binary-size(@stamp_size), id::64, bytes::64, named::16, node::binary,
      zeros::binary-size(padding)>>
  end

  @doc """
  How heavy the handle of a tensor of `bytes` bytes is, from 0 to 255.

  One for every 4 KiB up to 64 KiB, then 24 more for each doubling.
  """
  @spec weight(non_neg_integer()) :: 0..255
  def weight(bytes) when bytes < 65_536, do: Bitwise.bsr(bytes, 12)
  def weight(bytes), do: min(16 + 24 * (trunc(:math.log2(bytes)) - 16), 255)

  @doc """
  The id of a handle for use with this port.

  Raises `Nx.Vulkan.DeviceError` when the tensor went with an earlier port, or belongs to another node or device.
  """
  @spec id!(t(), Nx.Vulkan.Port.t()) :: Nx.Vulkan.Wire.id()
  def id!(handle, %{stamp: stamp} = port) do
    case handle do
      <<^stamp::binary-size(@stamp_size), id::64, _::binary>> -> id
      _ -> raise mismatch(handle, port)
    end
  end

  defp mismatch(handle, port) do
    info = parse!(handle)

    cond do
      info.vm != vm() ->
        foreign(info)

      info.device != port.device ->
        %DeviceError{
          device: info.device,
          epoch: info.epoch,
          reason: :foreign,
          message: "the tensor is on device #{info.device}, not on device #{port.device}"
        }

      true ->
        lost(info)
    end
  end

  @doc """
  Whether a tensor is there, as far as this node knows: `:ok`, or the reason why not.
  """
  @spec check(t()) :: :ok | {:error, Error.t() | DeviceError.t()}
  def check(handle) do
    info = parse!(handle)

    cond do
      info.vm != vm() -> {:error, foreign(info)}
      freed?(handle) -> {:error, freed_error(info)}
      current?(info) -> :ok
      true -> {:error, lost(info)}
    end
  end

  defp current?(info) do
    case Nx.Vulkan.Port.whereis(info.device) do
      nil -> false
      port -> port.epoch == info.epoch
    end
  end

  defp lost(info) do
    fault = Table.fault(info.device, info.epoch)
    at = if fault.at, do: " at #{DateTime.truncate(fault.at, :second)}", else: ""

    %{
      fault
      | reason: :lost,
        message: "the tensor was lost with the device#{at}: #{fault.message}"
    }
  end

  defp foreign(info) do
    %DeviceError{
      device: info.device,
      epoch: info.epoch,
      reason: :foreign,
      message:
        if info.node == Atom.to_string(node()) do
          "the tensor belongs to an earlier run of node #{info.node}"
        else
          "the tensor is on node #{info.node}, device #{info.device}; copy it there to Nx.BinaryBackend first"
        end
    }
  end

  defp freed_error(info) do
    %Error{op: :tensor, reason: :freed, message: "tensor #{info.id} has been deallocated"}
  end

  @doc """
  Reads a handle.
  """
  @spec parse(term()) :: {:ok, info()} | :error
  def parse(
        <<"NXVK", @format, device::16, epoch::32, vm::64, id::64, bytes::64, named::16,
          node::binary-size(named), _::binary>>
      ) do
    {:ok, %{device: device, epoch: epoch, vm: vm, id: id, bytes: bytes, node: node}}
  end

  def parse(_), do: :error

  @doc """
  Reads a handle, raises `ArgumentError` when it is none.
  """
  @spec parse!(term()) :: info()
  def parse!(handle) do
    case parse(handle) do
      {:ok, info} -> info
      :error -> raise ArgumentError, "not a tensor handle: #{inspect(handle, limit: 8)}"
    end
  end

  @doc """
  The device of a handle.
  """
  @spec device(t()) :: non_neg_integer()
  def device(<<"NXVK", @format, device::16, _::binary>>), do: device
  def device(other), do: parse!(other).device

  @doc """
  How many bytes the tensor of a handle has on its device.
  """
  @spec bytes(t()) :: non_neg_integer()
  def bytes(<<"NXVK", @format, _::112, _::64, bytes::64, _::binary>>), do: bytes
  def bytes(other), do: parse!(other).bytes

  @doc """
  The id of a handle, whatever it belongs to.
  """
  @spec id(t()) :: pos_integer()
  def id(<<"NXVK", @format, _::112, id::64, _::binary>>), do: id
  def id(other), do: parse!(other).id

  @doc """
  Whether a handle was made by this run of this node.
  """
  @spec local?(t()) :: boolean()
  def local?(<<"NXVK", @format, _::48, vm::64, _::binary>>), do: vm == vm()
  def local?(_), do: false

  @doc """
  The node that a handle was made on, if this node is or was connected to it, else `nil`.
  """
  @spec owner(t()) :: node() | nil
  def owner(handle) do
    name = parse!(handle).node
    Enum.find([node() | Node.list(:known)], &(Atom.to_string(&1) == name))
  end

  @doc """
  Frees a tensor at once, without waiting for its handle to die.
  """
  @spec free(t()) :: :ok | :already_deallocated
  def free(handle) do
    info = parse!(handle)

    with true <- info.vm == vm(),
         %{epoch: epoch} = port when epoch == info.epoch <- Nx.Vulkan.Port.whereis(info.device),
         true <- Nursery.mark_freed(info.id) do
      try do
        Nx.Vulkan.Port.cast(port, {:free, [info.id]})
      rescue
        # It is free all the more.
        DeviceError -> :ok
      end

      keep(handle)
    else
      _ -> :already_deallocated
    end
  end

  @doc """
  Whether a tensor was freed by `free/1`.
  """
  @spec freed?(t()) :: boolean()
  def freed?(handle), do: Nursery.freed?(id(handle))

  @doc """
  Keeps handles alive up to here.

  It does nothing; but it is called, in another module, where no compiler removes the call: whatever is passed stays
  referred to until then.
  """
  @spec keep(term()) :: :ok
  def keep(_handles), do: :ok
end

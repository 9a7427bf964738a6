defmodule Nx.Vulkan.Error do
  @moduledoc """
  An operation that the port refused, or that failed on the device.

  The port names the operation (`:op`), says why in one atom (`:reason`, such as `:bad_op`, `:unknown_id`,
  `:out_of_memory`; `:freed` when this side knows) and in words (`:message`). An operation is a cast: its failure is told by the first
  read of a tensor that depends on it.
  """

  @type t :: %__MODULE__{op: atom(), reason: atom(), message: String.t()}

  defexception [:op, :reason, :message]

  @doc """
  Makes the exception from the map of an `{:error, map}` reply.
  """
  @spec from_reply(map()) :: t()
  def from_reply(%{op: op, reason: reason, message: message}) do
    %__MODULE__{op: op, reason: reason, message: message}
  end

  def from_reply(other) do
    %__MODULE__{
      op: :port,
      reason: :protocol,
      message: "the port answered with an error of unknown form: #{inspect(other)}"
    }
  end

  @doc """
  The exception to raise for a failed operation: `ArgumentError`, as Nx raises, where the values of its operands were
  at fault (an index out of range, a singular matrix), else the error itself.
  """
  @spec as_nx(Exception.t()) :: Exception.t()
  def as_nx(%__MODULE__{reason: reason, message: message}) when reason in [:out_of_range, :singular],
    do: %ArgumentError{message: message}

  def as_nx(error), do: error
end

defmodule Nx.Vulkan.DeviceError do
  @moduledoc """
  A device, or the port that drives it, is not there.

  `:reason` is one of

    * `:port_died` - the port program ended (driver crash, `kill -9`, out of memory);
    * `:device_lost` - the driver reported a lost device;
    * `:lost` - a tensor was made by an earlier port of this device, and went with it;
    * `:foreign` - a tensor belongs to another node;
    * `:protocol` - the port wrote something that is no frame of the wire;
    * `:version` - port and library speak different versions of the wire;
    * `:timeout` - no answer in the time given;
    * `:not_found` - there is no port program;
    * `:start` - the port program did not come up (no driver, no such device);
    * `:down` - the port died too often and is not restarted any more;
    * `:stopped` - it was stopped on request.

  `:epoch` counts the ports that a device has had on this node, `:at` is the time of the fault.
  """

  @type reason ::
          :port_died
          | :device_lost
          | :lost
          | :foreign
          | :protocol
          | :version
          | :timeout
          | :not_found
          | :start
          | :down
          | :stopped

  @type t :: %__MODULE__{
          device: non_neg_integer() | nil,
          epoch: non_neg_integer() | nil,
          op: atom(),
          reason: reason(),
          at: DateTime.t() | nil,
          message: String.t()
        }

  defexception [:device, :epoch, :reason, :at, :message, op: :port]
end

defmodule Nx.Vulkan.Backend.Checks do
  @moduledoc false
  # What Nx raises for by value and the device does not tell: zeros on the diagonal of a triangular system, whose
  # quotients are infinite there. With `errors: :sync` these are looked for first, on the device, at the price of a
  # read. (Indices out of range are the port's to find.)

  @doc """
  Raises what `Nx.BinaryBackend` raises for these operands of `op`.
  """
  def run!(:triangular_solve, [a, _b]) do
    zeros = Nx.logical_and(Nx.equal(a, 0), Nx.eye(a.shape, type: :u8, backend: Nx.Vulkan.Backend))
    if Nx.to_number(Nx.any(zeros)) == 1, do: raise(ArgumentError, "can't solve for singular matrix")
  end

  def run!(_op, _operands), do: :ok
end

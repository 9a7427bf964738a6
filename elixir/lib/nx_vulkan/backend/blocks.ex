defmodule Nx.Vulkan.Backend.Blocks do
  @moduledoc false
  # The blocks of Nx (`Nx.block/4`) that are one operation on the wire. What the port cannot do, and any block that
  # is not listed, runs its default implementation, which re-enters the backend operation by operation.

  alias Nx.Block, as: Block
  alias Nx.Vulkan.Backend.{Eager, Host}

  @doc """
  Runs a block.
  """
  # Of host constants alone their defaults are arithmetic of single numbers, which stays here.
  def run(%name{} = struct, out, args, fun) when name in [Block.LogicalNot, Block.Phase, Block.AllClose] do
    if Host.constant?(args), do: default(struct, args, fun), else: on_port(struct, out, args, fun)
  end

  def run(struct, out, args, fun), do: on_port(struct, out, args, fun)

  defp on_port(struct, out, args, fun) do
    with {op, attrs} <- operation(struct),
         outs = templates(out),
         {:ok, results} <-
           Eager.attempt(op, outs, args, length(args), attrs, {:block, [struct, out, args, fun]}) do
      fill(out, results)
    else
      _ -> default(struct, args, fun)
    end
  end

  defp default(struct, args, fun), do: apply(fun, [struct | args])

  defp templates(out) when is_tuple(out), do: Tuple.to_list(out)
  defp templates(out), do: [out]

  defp fill(out, results) when is_tuple(out), do: List.to_tuple(results)
  defp fill(_out, [result]), do: result

  # The wire's operation and its attributes (docs/WIRE.md), or nil.
  defp operation(%Block.LogicalNot{}), do: {:logical_not, []}
  defp operation(%Block.Phase{}), do: {:phase, []}

  defp operation(%Block.AllClose{} = b),
    do: {:all_close, %{rtol: float(b.rtol), atol: float(b.atol), equal_nan: b.equal_nan == true}}

  defp operation(%Block.CumulativeSum{} = b), do: {:cumulative_sum, Eager.accumulator(cumulative(b))}
  defp operation(%Block.CumulativeProduct{} = b), do: {:cumulative_product, cumulative(b)}
  defp operation(%Block.CumulativeMin{} = b), do: {:cumulative_min, cumulative(b)}
  defp operation(%Block.CumulativeMax{} = b), do: {:cumulative_max, cumulative(b)}

  defp operation(%Block.Take{axis: axis}), do: {:take, %{axis: axis}}
  defp operation(%Block.TakeAlongAxis{axis: axis}), do: {:take_along_axis, %{axis: axis}}
  defp operation(%Block.TopK{}), do: {:top_k, %{}}

  defp operation(%Block.FFT2{} = b), do: {:fft2, fft2(b)}
  defp operation(%Block.IFFT2{} = b), do: {:ifft2, fft2(b)}
  defp operation(%Block.RFFT{} = b), do: {:rfft, Eager.fft(Map.from_struct(b))}
  defp operation(%Block.IRFFT{} = b), do: {:irfft, Eager.fft(Map.from_struct(b))}

  defp operation(%Block.LinAlg.Cholesky{}), do: {:cholesky, []}
  defp operation(%Block.LinAlg.Solve{}), do: {:solve, []}
  defp operation(%Block.LinAlg.Determinant{}), do: {:determinant, []}
  defp operation(%Block.LinAlg.LU{} = b), do: {:lu, %{eps: float(b.eps)}}

  defp operation(%Block.LinAlg.QR{} = b),
    do: {:qr, %{eps: float(b.eps), full: b.mode == :complete}}

  defp operation(%Block.LinAlg.SVD{} = b),
    do: {:svd, %{full: b.full_matrices?, max_iter: b.max_iter}}

  defp operation(%Block.LinAlg.Eigh{} = b),
    do: {:eigh, %{eps: float(b.eps), max_iter: b.max_iter}}

  defp operation(_other), do: nil

  defp cumulative(b), do: %{axis: b.axis, reverse: b.reverse}

  # The last axis is transformed first.
  defp fft2(b), do: %{axes: Enum.reverse(b.axes), lengths: Enum.reverse(b.lengths), eps: float(b.eps)}

  defp float(number), do: number * 1.0
end

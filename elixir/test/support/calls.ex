if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Calls do
    @moduledoc """
    Calls of Nx that move, reduce or contract, each with the shapes that it takes: for tests on the device, and for
    conformance vectors.
    """

    # {name, function of the operands, their shapes}
    @calls [
      reshape: {&__MODULE__.reshape/1, [{4, 6}]},
      squeeze: {&__MODULE__.squeeze/1, [{1, 3, 1, 2}]},
      broadcast: {&__MODULE__.broadcast/1, [{3, 1}]},
      broadcast_axes: {&__MODULE__.broadcast_axes/1, [{3}]},
      transpose: {&__MODULE__.transpose/1, [{2, 3, 4}]},
      transpose_rank_8: {&__MODULE__.transpose8/1, [{2, 1, 3, 2, 1, 2, 2, 2}]},
      reverse: {&__MODULE__.reverse/1, [{3, 4}]},
      pad: {&__MODULE__.pad/1, [{3, 4}]},
      pad_crop: {&__MODULE__.pad_crop/1, [{4, 5}]},
      slice: {&__MODULE__.slice/1, [{5, 6}]},
      slice_clamped: {&__MODULE__.slice_clamped/1, [{5, 6}]},
      slice_dynamic: {&__MODULE__.slice_dynamic/1, [{5, 6}]},
      put_slice: {&__MODULE__.put_slice/2, [{5, 6}, {2, 3}]},
      concatenate: {&__MODULE__.concatenate/2, [{2, 3}, {2, 2}]},
      concatenate_0: {&__MODULE__.concatenate0/2, [{2, 3}, {1, 3}]},
      stack: {&__MODULE__.stack/2, [{2, 3}, {2, 3}]},
      chain: {&__MODULE__.chain/1, [{4, 6}]},
      sum: {&__MODULE__.sum/1, [{3, 4, 5}]},
      product: {&__MODULE__.product/1, [{3, 4}]},
      reduce_max: {&__MODULE__.reduce_max/1, [{3, 4, 5}]},
      reduce_min: {&__MODULE__.reduce_min/1, [{3, 4, 5}]},
      all: {&__MODULE__.all/1, [{3, 4, 5}]},
      any: {&__MODULE__.any/1, [{3, 4, 5}]},
      argmax: {&__MODULE__.argmax/1, [{3, 4, 5}]},
      argmin: {&__MODULE__.argmin/1, [{3, 4, 5}]},
      dot: {&__MODULE__.dot/2, [{4, 5}, {5, 3}]},
      dot_vectors: {&__MODULE__.dot/2, [{7}, {7}]},
      dot_axes: {&__MODULE__.dot_axes/2, [{2, 3, 4}, {4, 2, 5}]},
      dot_batched: {&__MODULE__.dot_batched/2, [{2, 3, 4}, {2, 4, 5}]},
      outer: {&__MODULE__.outer/2, [{3}, {4}]}
    ]

    # Each is what its name says, of one operand or two.
    @doc false
    def reshape(t), do: Nx.reshape(t, {2, 3, 4})
    def squeeze(t), do: Nx.squeeze(t)
    def broadcast(t), do: Nx.broadcast(t, {2, 3, 4})
    def broadcast_axes(t), do: Nx.broadcast(t, {2, 3, 4}, axes: [1])
    def transpose(t), do: {Nx.transpose(t), Nx.transpose(t, axes: [1, 2, 0])}
    def transpose8(t), do: Nx.transpose(t, axes: [7, 2, 5, 0, 3, 6, 1, 4])
    def reverse(t), do: {Nx.reverse(t), Nx.reverse(t, axes: [1])}
    def pad(t), do: Nx.pad(t, 1, [{1, 2, 1}, {0, 1, 2}])
    def pad_crop(t), do: {Nx.pad(t, 0, [{-1, 2, 0}, {1, -2, 0}]), Nx.pad(t, 3, [{-2, -1, 2}, {0, -3, 1}])}
    def slice(t), do: {Nx.slice(t, [1, 2], [3, 2]), Nx.slice(t, [0, 1], [5, 5], strides: [2, 3])}
    def slice_clamped(t), do: Nx.slice(t, [4, Nx.tensor(100)], [3, 2])

    def slice_dynamic(t),
      do:
        {Nx.slice(t, [Nx.tensor(1), Nx.tensor(2, type: :u8)], [2, 2]),
         Nx.slice(t, [Nx.tensor([-3])[0], 1], [2, 2])}

    def put_slice(t, u), do: {Nx.put_slice(t, [1, 2], u), Nx.put_slice(t, [Nx.tensor(9), Nx.tensor(9)], u)}
    def concatenate(a, b), do: Nx.concatenate([a, b, a], axis: 1)
    def concatenate0(a, b), do: Nx.concatenate([a, b])
    def stack(a, b), do: {Nx.stack([a, b]), Nx.stack([a, b], axis: 2)}

    # Views of views, read by a kernel.
    def chain(t) do
      t
      |> Nx.transpose()
      |> Nx.reverse(axes: [0])
      |> Nx.slice([1, 1], [4, 3])
      |> Nx.reshape({2, 6})
      |> Nx.add(1)
    end

    def sum(t), do: reductions(&Nx.sum/2, t)
    def product(t), do: {Nx.product(t, axes: [0]), Nx.product(t, axes: [1], keep_axes: true)}
    def reduce_max(t), do: reductions(&Nx.reduce_max/2, t)
    def reduce_min(t), do: reductions(&Nx.reduce_min/2, t)
    def all(t), do: reductions(&Nx.all/2, t)
    def any(t), do: reductions(&Nx.any/2, t)

    defp reductions(fun, t) do
      {fun.(t, []), fun.(t, axes: [1]), fun.(t, axes: [0, 2]), fun.(t, axes: [2, 0], keep_axes: true),
       fun.(t, keep_axes: true)}
    end

    def argmax(t), do: extremes(&Nx.argmax/2, t)
    def argmin(t), do: extremes(&Nx.argmin/2, t)

    defp extremes(fun, t) do
      {fun.(t, []), fun.(t, axis: 1), fun.(t, axis: 2, keep_axis: true), fun.(t, tie_break: :high),
       fun.(t, axis: 0, tie_break: :high, type: :u8), fun.(t, keep_axis: true)}
    end

    def dot(a, b), do: Nx.dot(a, b)
    def dot_axes(a, b), do: Nx.dot(a, [2, 0], b, [0, 1])
    def dot_batched(a, b), do: Nx.dot(a, [2], [0], b, [1], [0])
    def outer(a, b), do: Nx.outer(a, b)

    @doc "All of them: `[{name, {function, shapes}}]`."
    def all, do: @calls

    @doc """
    Numbers from 0 to 4 that go up and down, so that ties and order show, and sums stay exact in every type.
    """
    def operand(shape, type) do
      Nx.with_default_backend(Nx.BinaryBackend, fn ->
        Nx.iota(shape, type: :s32) |> Nx.multiply(7) |> Nx.remainder(5) |> Nx.as_type(type)
      end)
    end

    @doc "Results as a list."
    def list(tuple) when is_tuple(tuple), do: Tuple.to_list(tuple)
    def list(tensor), do: [tensor]
  end
end

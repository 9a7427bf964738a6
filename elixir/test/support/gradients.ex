if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Gradients do
    @moduledoc """
    Gradients on the device against those on Nx.BinaryBackend, with no fallback allowed on the way.
    """

    import ExUnit.Assertions, only: [assert: 2]
    alias Nx.Vulkan.Fallback

    @doc """
    Numbers of `type` in `shape` on Nx.BinaryBackend, drawn evenly from `lo..hi` by `seed`, no two alike.
    """
    def draw(shape, {lo, hi}, type, seed) do
      :rand.seed(:exsss, {seed, 17, 29})
      count = Nx.size(shape)
      # One from each of as many equal parts, shuffled: ties would make maxima and sorts ambiguous.
      values =
        for i <- Enum.shuffle(0..(count - 1)), do: lo + (hi - lo) * (i + 0.1 + 0.8 * :rand.uniform()) / count

      values |> Nx.tensor(type: type, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
    end

    @doc """
    The gradient of `loss` at `params` (a container on Nx.BinaryBackend), on the device and on
    BinaryBackend: every leaf agrees within `tolerance`, relative to the leaf's largest number.
    """
    def check(loss, params, tolerance, what) do
      wanted = gradient(loss, params, Nx.BinaryBackend)

      there = Nx.backend_copy(params, Nx.Vulkan.Backend)
      {value, grads} = Fallback.strict(fn -> gradient(loss, there, Nx.Vulkan.Backend) end)
      compare({value, grads}, wanted, tolerance, what)
    end

    defp gradient(loss, params, backend) do
      Nx.with_default_backend(backend, fn ->
        Nx.Defn.jit_apply(&Nx.Defn.value_and_grad(&1, loss), [params], compiler: Nx.Defn.Evaluator)
      end)
    end

    defp compare(got, wanted, tolerance, what) do
      Nx.Defn.Composite.traverse(wanted, leaves(got), fn want, [leaf | rest] ->
        leaf!(leaf, want, tolerance, what)
        {want, rest}
      end)

      :ok
    end

    defp leaves(container) do
      {_, leaves} = Nx.Defn.Composite.traverse(container, [], &{&1, [&1 | &2]})
      Enum.reverse(leaves)
    end

    defp leaf!(got, want, tolerance, what) do
      assert got.type == want.type and got.shape == want.shape,
             "#{what}: got #{inspect(got)}, wanted #{inspect(want)}"

      got = numbers(got)
      want = numbers(want)
      scale = want |> Enum.filter(&is_number/1) |> Enum.map(&abs/1) |> Enum.max(fn -> 0 end) |> max(1.0e-3)

      for {g, w} <- Enum.zip(got, want) do
        close = if is_number(g) and is_number(w), do: abs(g - w) <= tolerance * scale, else: g == w
        assert close, "#{what}: got #{inspect(g)}, wanted #{inspect(w)}, the largest is #{scale}"
      end
    end

    # Complex numbers as their parts.
    defp numbers(t) do
      t
      |> Nx.backend_copy(Nx.BinaryBackend)
      |> Nx.to_flat_list()
      |> Enum.flat_map(fn
        %Complex{re: re, im: im} -> [re, im]
        n -> [n]
      end)
    end
  end
end

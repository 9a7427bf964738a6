defmodule Nx.Vulkan.FallbackError do
  @moduledoc """
  Raised, before any data moves, when an operation would run on the host and the process refuses that.

  Fields: `callback` and `arity` (the `Nx.Backend` callback), `message`.
  """
  defexception [:callback, :arity, :message]
end

defmodule Nx.Vulkan.Fallback do
  @moduledoc """
  Counts, or refuses, operations that run on the host instead of the device.

  A host fallback returns the same values, so no assertion on values can find one, yet it moves every
  operand off the device and the result back. This module makes fallbacks visible.

      iex> {result, counts} = Nx.Vulkan.Fallback.count(fn -> Nx.sort(t) end)
      iex> counts
      %{{:sort, 3} => 1}

  The keys are callbacks of `Nx.Backend` with their arity: what ran, not what was asked for
  (`Nx.take/2` shows as `{:gather, 4}`). A linear algebra block runs as a whole: `{:block, 4}`.

  What is not counted, since nothing leaves the device for it: creating and reading tensors
  (`from_binary`, `to_binary`, `inspect`, copies and transfers), and arithmetic of host scalars alone, such
  as a loop counter.

  Counting and refusing are per process: tasks that a function starts are not seen. To watch all processes, attach
  to the telemetry event `[:nx_vulkan, :fallback]`: measurements `%{count: 1}`, metadata `%{callback: name,
  arity: arity, reason: why}`.

  ## What a fallback does

  `mode/0` says: `:allow` (the default), `:warn` (a log line for each) or `:raise`. It comes from

      config :nx_vulkan, host_fallback: :raise

  and, within `strict/1`, is `:raise` whatever the configuration.
  """

  require Logger

  @counts {__MODULE__, :counts}
  @strict {__MODULE__, :strict}

  @type callback :: {name :: atom, arity}
  @type mode :: :allow | :warn | :raise

  @doc """
  Runs `fun` and returns its result with the fallbacks that this process made meanwhile.

  Nested counts add to the outer ones.
  """
  @spec count((-> result)) :: {result, %{callback => pos_integer}} when result: var
  def count(fun) when is_function(fun, 0) do
    outer = Process.put(@counts, %{})

    try do
      result = fun.()
      {result, Process.get(@counts)}
    after
      restore(@counts, merge(outer, Process.get(@counts)))
    end
  end

  @doc """
  Like `count/1`, with the number of fallbacks in place of the map.
  """
  @spec count_total((-> result)) :: {result, non_neg_integer} when result: var
  def count_total(fun) do
    {result, counts} = count(fun)
    {result, counts |> Map.values() |> Enum.sum()}
  end

  @doc """
  Runs `fun` with fallbacks refused: the first raises `Nx.Vulkan.FallbackError`.

  `strict/2` takes the exceptions to that, `allow: [{callback, arity}]` or `allow: [callback]`.
  """
  @spec strict((-> result), allow: [atom | callback]) :: result when result: var
  def strict(fun, opts \\ []) when is_function(fun, 0) do
    allow = opts |> Keyword.validate!(allow: []) |> Keyword.fetch!(:allow)
    outer = Process.put(@strict, allow)

    try do
      fun.()
    after
      restore(@strict, outer)
    end
  end

  @doc """
  What a fallback in this process does now: `:allow`, `:warn` or `:raise`.
  """
  @spec mode() :: mode
  def mode, do: if(Process.get(@strict), do: :raise, else: configured())

  @doc false
  # Called before the operands move. `args` are the callback's, its result template first.
  def note(name, args, why) do
    callback = {name, length(args)}

    case Process.get(@strict) do
      nil -> note(configured(), callback, args, why)
      allow -> if allowed?(allow, callback), do: :ok, else: refuse(callback, args, why)
    end

    case Process.get(@counts) do
      nil -> :ok
      counts -> Process.put(@counts, Map.update(counts, callback, 1, &(&1 + 1)))
    end

    :telemetry.execute([:nx_vulkan, :fallback], %{count: 1}, %{
      callback: name,
      arity: elem(callback, 1),
      reason: why
    })
  end

  defp note(:allow, _callback, _args, _why), do: :ok
  defp note(:warn, callback, args, why), do: Logger.warning(describe(callback, args, why))
  defp note(:raise, callback, args, why), do: refuse(callback, args, why)

  defp allowed?(allow, {name, _} = callback), do: callback in allow or name in allow

  defp refuse({name, arity} = callback, args, why) do
    raise Nx.Vulkan.FallbackError,
      callback: name,
      arity: arity,
      message: describe(callback, args, why) <> ", and this process refuses host fallbacks"
  end

  defp describe({name, arity}, [out | args], why) do
    "#{subject(name, out)}/#{arity} of #{operands(name, args)} runs on the host: #{why}"
  end

  # The block callback takes the block's struct where the others have their result template.
  defp subject(:block, %name{}), do: "block #{inspect(name)}"
  defp subject(name, _out), do: Atom.to_string(name)

  defp operands(:block, [_out, args, _fun]), do: operands(nil, args)

  defp operands(_name, args) do
    case args |> List.flatten() |> Enum.filter(&is_struct(&1, Nx.Tensor)) do
      [] -> "no tensor"
      tensors -> Enum.map_join(tensors, ", ", &(Nx.Type.to_string(&1.type) <> inspect(&1.shape)))
    end
  end

  defp configured do
    case Application.get_env(:nx_vulkan, :host_fallback, :allow) do
      mode when mode in [:allow, :warn, :raise] ->
        mode

      other ->
        raise ArgumentError,
              "config :nx_vulkan, host_fallback: expected :allow, :warn or :raise, got: #{inspect(other)}"
    end
  end

  defp merge(nil, _inner), do: nil
  defp merge(outer, inner), do: Map.merge(outer, inner, fn _, a, b -> a + b end)

  defp restore(key, nil), do: Process.delete(key)
  defp restore(key, value), do: Process.put(key, value)
end

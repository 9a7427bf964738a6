defmodule Nx.Vulkan.FallbackError do
  @moduledoc """
  Raised, before any data moves, when an operation would not run on the device and the process refuses that.

  Fields: `callback` (of `Nx.Backend`, or the block's module) and `arity`, `message`.
  """
  defexception [:callback, :arity, :message]
end

defmodule Nx.Vulkan.Fallback do
  @moduledoc """
  Counts, or refuses, operations that do not run on the device.

  What runs elsewhere returns the same values, so no assertion on values can find it. This module makes it visible.
  There are two kinds:

    * **Fallbacks**: the BEAM computes, through `Nx.BinaryBackend`. Every operand moves off the device and the result
      back. Counted by `count/1`, refused by `strict/1`.
    * **Host work**: the port computes on its CPU, where that is faster (a large matrix is decomposed there) or the
      device lacks a type. Nothing comes back to the BEAM, and what follows is not held up. Counted by
      `count_host/1`, refused by `strict/2` with `host: false`.

  For instance:

      iex> {result, counts} = Nx.Vulkan.Fallback.count(fn -> MyModel.step(x) end)
      iex> counts
      %{{:reduce, 5} => 1}
      iex> {result, counts} = Nx.Vulkan.Fallback.count_host(fn -> Nx.LinAlg.svd(x) end)
      iex> counts
      %{{Nx.Block.LinAlg.SVD, 4} => 1}

  The keys are callbacks of `Nx.Backend` with their arity, or a block's module with the arity of `block/4`: what
  ran, not what was asked for. A block that runs its default implementation shows as what that calls.

  What is not counted, since nothing leaves the device for it: creating and reading tensors
  (`from_binary`, `to_binary`, `inspect`, copies and transfers), and arithmetic of host scalars alone, such
  as a loop counter.

  Counting and refusing are per process: tasks that a function starts are not seen. To watch all processes, attach
  to the telemetry events `[:nx_vulkan, :fallback]` and `[:nx_vulkan, :host]`: measurements `%{count: 1}`, metadata
  `%{callback: name, arity: arity, reason: why}`. The port counts its own work: `host_ops` of `Nx.Vulkan.stats/1`.

  ## What they do

  `mode/0` says what a fallback does: `:allow` (the default), `:warn` (a log line for each) or `:raise`. It comes from

      config :nx_vulkan, host_fallback: :raise

  and, within `strict/1`, is `:raise` whatever the configuration. Host work goes by a setting of its own, with the same
  three values:

      config :nx_vulkan, host_work: :warn
  """

  require Logger

  @counts {__MODULE__, :counts}
  @host {__MODULE__, :host}
  @strict {__MODULE__, :strict}

  @type callback :: {name :: atom, arity}
  @type mode :: :allow | :warn | :raise

  @doc """
  Runs `fun` and returns its result with the fallbacks that this process made meanwhile.

  Nested counts add to the outer ones.
  """
  @spec count((-> result)) :: {result, %{callback => pos_integer}} when result: var
  def count(fun) when is_function(fun, 0), do: counting(@counts, fun)

  @doc """
  Like `count/1`, with the number of fallbacks in place of the map.
  """
  @spec count_total((-> result)) :: {result, non_neg_integer} when result: var
  def count_total(fun) do
    {result, counts} = count(fun)
    {result, counts |> Map.values() |> Enum.sum()}
  end

  @doc """
  Runs `fun` and returns its result with the host work that this process asked for meanwhile.

  Nested counts add to the outer ones.
  """
  @spec count_host((-> result)) :: {result, %{callback => pos_integer}} when result: var
  def count_host(fun) when is_function(fun, 0), do: counting(@host, fun)

  defp counting(key, fun) do
    outer = Process.put(key, %{})

    try do
      result = fun.()
      {result, Process.get(key)}
    after
      restore(key, merge(outer, Process.get(key)))
    end
  end

  @doc """
  Runs `fun` with fallbacks refused: the first raises `Nx.Vulkan.FallbackError`.

  ## Options

    * `:allow` - the exceptions to that: a list of `{callback, arity}` or `callback`
    * `:host` - `false` refuses host work too, save for what `:allow` names. By default it goes by its own setting
  """
  @spec strict((-> result), allow: [atom | callback], host: boolean) :: result when result: var
  def strict(fun, opts \\ []) when is_function(fun, 0) do
    opts = Keyword.validate!(opts, allow: [], host: true)
    outer = Process.put(@strict, {opts[:allow], opts[:host]})

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
  def mode, do: if(Process.get(@strict), do: :raise, else: configured(:host_fallback))

  @doc false
  # Called before the operands move. `args` are the callback's, its result template first; a block's struct stands
  # in that place.
  def note(name, args, why) do
    case Process.get(@strict) do
      nil -> act(configured(:host_fallback), name, args, {"in the BEAM", why})
      {allow, _host} -> unless allowed?(allow, name, args), do: refuse(name, args, {"in the BEAM", why})
    end

    tally(@counts, :fallback, name, args, why)
  end

  @doc false
  # Called before the operation is sent.
  def note_host(name, args) do
    why = "the port chose it for this device, these types and shapes"

    case Process.get(@strict) do
      {allow, false} -> unless allowed?(allow, name, args), do: refuse(name, args, {"on the port's CPU", why})
      _ -> act(configured(:host_work), name, args, {"on the port's CPU", why})
    end

    tally(@host, :host, name, args, why)
  end

  defp tally(key, event, name, args, why) do
    {name, arity} = callback = callback(name, args)

    case Process.get(key) do
      nil -> :ok
      counts -> Process.put(key, Map.update(counts, callback, 1, &(&1 + 1)))
    end

    :telemetry.execute([:nx_vulkan, event], %{count: 1}, %{callback: name, arity: arity, reason: why})
  end

  defp callback(:block, [%name{} | _] = args), do: {name, length(args)}
  defp callback(name, args), do: {name, length(args)}

  defp act(:allow, _name, _args, _where), do: :ok
  defp act(:warn, name, args, where), do: Logger.warning(describe(name, args, where))
  defp act(:raise, name, args, where), do: refuse(name, args, where)

  defp allowed?([], _name, _args), do: false

  defp allowed?(allow, name, args) do
    {module, _} = callback = callback(name, args)
    callback in allow or module in allow or name in allow or {name, length(args)} in allow
  end

  defp refuse(name, args, where) do
    {callback, arity} = callback(name, args)

    raise Nx.Vulkan.FallbackError,
      callback: callback,
      arity: arity,
      message: describe(name, args, where) <> ", and this process refuses that"
  end

  defp describe(name, [subject | args], {where, why}) do
    "#{subject(name, subject)}/#{length(args) + 1} of #{operands(name, args)} runs #{where}: #{why}"
  end

  defp subject(:block, %name{}), do: "block #{inspect(name)}"
  defp subject(name, _out), do: Atom.to_string(name)

  defp operands(:block, [_out, args, _fun]), do: operands(nil, args)

  defp operands(_name, args) do
    case args |> List.flatten() |> Enum.filter(&is_struct(&1, Nx.Tensor)) do
      [] -> "no tensor"
      tensors -> Enum.map_join(tensors, ", ", &(Nx.Type.to_string(&1.type) <> inspect(&1.shape)))
    end
  end

  defp configured(setting) do
    case Application.get_env(:nx_vulkan, setting, :allow) do
      mode when mode in [:allow, :warn, :raise] ->
        mode

      other ->
        raise ArgumentError,
              "config :nx_vulkan, #{setting}: expected :allow, :warn or :raise, got: #{inspect(other)}"
    end
  end

  defp merge(nil, _inner), do: nil
  defp merge(outer, inner), do: Map.merge(outer, inner, fn _, a, b -> a + b end)

  defp restore(key, nil), do: Process.delete(key)
  defp restore(key, value), do: Process.put(key, value)
end

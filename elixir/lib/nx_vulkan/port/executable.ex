defmodule Nx.Vulkan.Port.Executable do
  @moduledoc """
  Finds the port program: `NXVK_PORT`, else what the Mix compiler `:nxvk_port` built into the application's `priv`.
  """

  @name "nxvk_port"

  @doc """
  The path of the port program, or a sentence saying what to do.
  """
  @spec find() :: {:ok, Path.t()} | {:error, String.t()}
  def find do
    case System.get_env("NXVK_PORT") do
      path when path in [nil, ""] -> find_built()
      path -> with :ok <- absolute(path), do: from_env(path)
    end
  end

  defp from_env(path) do
    if executable?(path),
      do: {:ok, path},
      else: {:error, "NXVK_PORT is #{path}, which is not an executable file"}
  end

  @doc """
  Whether a path that `NXVK_PORT` names is absolute: a relative one is another one when compiling, where dependencies
  have folders of their own.
  """
  @spec absolute(Path.t()) :: :ok | {:error, String.t()}
  def absolute(path) do
    if Path.type(path) == :absolute,
      do: :ok,
      else: {:error, "NXVK_PORT is #{path}: it wants an absolute path, such as #{Path.expand(path)}"}
  end

  defp find_built do
    case Enum.find(candidates(), &executable?/1) do
      nil ->
        {:error,
         "there is no port program: looked for #{looked()}. " <>
           "Build it with \"mix deps.compile nx_vulkan --force\" (needs Go), or set NXVK_PORT to an nxvk_port"}

      path ->
        {:ok, path}
    end
  end

  defp candidates do
    case :code.priv_dir(:nx_vulkan) do
      {:error, _} -> []
      dir -> [Path.join(List.to_string(dir), @name)]
    end
  end

  defp looked do
    case candidates() do
      [] -> "priv/#{@name} of the application :nx_vulkan, which is not in the code path"
      paths -> Enum.join(paths, ", ")
    end
  end

  defp executable?(path) do
    match?({:ok, %{type: :regular, mode: mode}} when Bitwise.band(mode, 0o111) != 0, File.stat(path))
  end
end

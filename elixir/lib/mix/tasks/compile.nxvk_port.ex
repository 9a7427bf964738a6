defmodule Mix.Tasks.Compile.NxvkPort do
  @shortdoc "Builds the port program with Go"

  @moduledoc """
  Builds `nxvk_port`, the program that drives the device, into the application's `priv` directory.

  It needs the Go toolchain and nothing else: no C compiler, no Vulkan headers, no shader compiler. The sources are in
  `port/` (the Hex package) or in the directory above (a checkout, `path:` and `git:` dependencies). Nothing is run while
  the program is newer than its sources.

  ## Environment

    * `NXVK_PORT` - an existing port program: nothing is built;
    * `GOOS`, `GOARCH` - build for another system;
    * `GOCACHE`, `GOPATH` and all else that Go reads; where there is no home directory they default to the build directory.
  """

  use Mix.Task.Compiler

  @name "nxvk_port"
  @package "./cmd/nxvk_port"
  @advice "install it from https://go.dev/dl or your system's packages, or set NXVK_PORT to a built nxvk_port"

  @impl true
  def run(args) do
    case System.get_env("NXVK_PORT") do
      path when path in [nil, ""] -> build("--force" in args)
      path -> existing(path)
    end
  end

  @impl true
  def manifests, do: [manifest()]

  @impl true
  def clean do
    File.rm(target())
    File.rm(manifest())
    :ok
  end

  defp existing(path) do
    cond do
      # Told as the library tells it, which may not be compiled yet.
      Path.type(path) != :absolute ->
        failed("NXVK_PORT is #{path}: it wants an absolute path, such as #{Path.expand(path)}")

      File.regular?(path) ->
        {:noop, []}

      true ->
        failed("NXVK_PORT is #{path}, which does not exist")
    end
  end

  defp build(force?) do
    with {:ok, source} <- source(),
         settings = settings(),
         :stale <- state(source, settings, force?),
         {:ok, go} <- go(),
         :ok <- version(go, source),
         :ok <- compile(go, source) do
      File.mkdir_p!(Path.dirname(manifest()))
      File.write!(manifest(), settings)
      {:ok, []}
    else
      :fresh -> {:noop, []}
      {:error, message} -> failed(message)
    end
  end

  defp failed(message) do
    Mix.shell().error("nx_vulkan: " <> message)

    {:error,
     [
       %Mix.Task.Compiler.Diagnostic{
         compiler_name: @name,
         file: Mix.Project.project_file(),
         message: message,
         position: 0,
         severity: :error
       }
     ]}
  end

  @doc """
  The directory of the Go sources: `port/` of the package, or the one above.
  """
  @spec source() :: {:ok, Path.t()} | {:error, String.t()}
  def source do
    root = Path.dirname(Mix.Project.project_file())
    candidates = [Path.join(root, "port"), Path.expand("..", root)]

    case Enum.find(candidates, &File.dir?(Path.join(&1, @package))) do
      nil ->
        {:error,
         "the Go sources of the port are neither in #{Enum.join(candidates, " nor in ")}; " <>
           "a git dependency needs subdir: \"elixir\" (sparse: leaves them out)"}

      source ->
        {:ok, source}
    end
  end

  defp target, do: Path.join([Mix.Project.app_path(), "priv", @name])
  defp manifest, do: Path.join(Mix.Project.manifest_path(), "compile.#{@name}")

  # What a change of means another program from the same sources.
  defp settings do
    Enum.map_join(~w(GOOS GOARCH GOAMD64 GOARM GOFLAGS), "\n", &"#{&1}=#{System.get_env(&1)}")
  end

  defp state(source, settings, force?) do
    with false <- force?,
         {:ok, ^settings} <- File.read(manifest()),
         {:ok, %{mtime: built}} <- File.stat(target(), time: :posix),
         true <- Enum.all?(files(source), &older?(&1, built)) do
      :fresh
    else
      _ -> :stale
    end
  end

  defp older?(file, built) do
    case File.stat(file, time: :posix) do
      {:ok, %{mtime: mtime}} -> mtime <= built
      _ -> false
    end
  end

  @doc """
  The files that the program is built from: the modules' files, and all files beside Go sources, tests apart.
  """
  @spec files(Path.t()) :: [Path.t()]
  def files(source) do
    modules = Enum.filter([Path.join(source, "go.mod"), Path.join(source, "go.sum")], &File.exists?/1)

    packages =
      for entry <- File.ls!(source),
          entry not in ~w(elixir port bin test bench examples docs deps),
          not String.starts_with?(entry, "."),
          dir = Path.join(source, entry),
          File.dir?(dir),
          file <- Path.wildcard(Path.join(dir, "**/*.go")),
          uniq: true,
          do: Path.dirname(file)

    beside =
      for package <- packages,
          file <- Path.wildcard(Path.join(package, "*")),
          not String.ends_with?(file, "_test.go"),
          File.regular?(file),
          do: file

    modules ++ beside
  end

  defp go do
    case System.find_executable("go") do
      nil -> {:error, "Go is missing, which builds the port: #{@advice}"}
      go -> {:ok, go}
    end
  end

  defp version(go, source) do
    [_, wanted] = Regex.run(~r/^go (\S+)/m, File.read!(Path.join(source, "go.mod")))

    # In the directory of the sources Go fetches a newer toolchain where it is allowed to.
    case System.cmd(go, ["env", "GOVERSION"], options(source)) do
      {"go" <> version, 0} ->
        version = version |> String.split([" ", "-", "\n"]) |> hd()

        if number(version) >= number(wanted),
          do: :ok,
          else: {:error, too_old(version, wanted)}

      {output, _} ->
        version = Regex.run(~r/running go ([\d.]+)/, output)
        {:error, too_old((version && List.last(version)) || "that is installed", wanted)}
    end
  end

  defp too_old(version, wanted) do
    "Go #{version} is too old, the port needs Go #{wanted} or newer: #{@advice}"
  end

  defp number(version) do
    for [part] <- Regex.scan(~r/\d+/, version), do: String.to_integer(part)
  end

  defp compile(go, source) do
    target = target()
    # Renamed at the end: a program that runs cannot be written to.
    new = target <> ".new"
    File.mkdir_p!(Path.dirname(target))
    Mix.shell().info("Building #{@name} with Go")

    args = ["build", "-trimpath", "-buildvcs=false"] ++ gcflags(go, source) ++ ["-o", new, @package]

    case System.cmd(go, args, options(source)) do
      {_, 0} ->
        File.rename!(new, target)
        # Go keeps the time of a cached program.
        File.touch!(target)
        :ok

      {output, status} ->
        File.rm(new)
        {:error, "go build ended with status #{status}:\n#{output}"}
    end
  end

  # Without C, purego's stand-in for cgo needs this on FreeBSD.
  defp gcflags(go, source) do
    case System.cmd(go, ["env", "GOOS"], options(source)) do
      {"freebsd" <> _, 0} -> ["-gcflags=github.com/ebitengine/purego/internal/fakecgo=-std"]
      _ -> []
    end
  end

  defp options(source) do
    [cd: source, stderr_to_stdout: true, env: [{"CGO_ENABLED", "0"}, {"GOWORK", "off"} | homeless()]]
  end

  defp homeless do
    if System.get_env("HOME") in [nil, ""] do
      base = Path.join(Mix.Project.build_path(), "go")

      for {variable, dir} <- [{"GOCACHE", "cache"}, {"GOPATH", "path"}],
          System.get_env(variable) in [nil, ""],
          do: {variable, Path.join(base, dir)}
    else
      []
    end
  end
end

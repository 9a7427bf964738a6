defmodule Mix.Tasks.Compile.NxvkPortTest do
  use ExUnit.Case

  alias Mix.Tasks.Compile.NxvkPort

  # A Go that says its version, and builds by writing down how it was called.
  @go """
  #!/bin/sh
  case "$1 $2" in
    "env GOVERSION") echo "${FAKE_GO:-go1.25.3}"; exit ${FAKE_STATUS:-0};;
    "env GOOS") echo "${GOOS:-linux}"; exit 0;;
  esac
  echo "$@" >>"$FAKE_LOG"
  echo "CGO_ENABLED=$CGO_ENABLED GOCACHE=$GOCACHE GOPATH=$GOPATH PWD=$(pwd)" >>"$FAKE_LOG"
  [ -n "$FAKE_BROKEN" ] && { echo "main.go:1: syntax error"; exit 2; }
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\\n' >"$2"
  chmod 755 "$2"
  """

  setup do
    {:ok, _} = Application.ensure_all_started(:mix)
    root = Path.join(System.tmp_dir!(), "nxvk-compile-#{System.unique_integer([:positive])}")

    for {path, text} <- %{
          "go.mod" => "module nxvk\n\ngo 1.25.0\n",
          "go.sum" => "",
          "LICENSE" => "",
          "cmd/nxvk_port/main.go" => "package main\n",
          "vkrt/vk/vk.go" => "package vk\n",
          "vkrt/vk/vk_test.go" => "package vk\n",
          "vkrt/vk/table.bin" => "",
          "test/conformance.go" => "package test\n",
          "elixir/mix.exs" => """
          defmodule Scratch#{System.unique_integer([:positive])}.MixProject do
            use Mix.Project
            def project, do: [app: :scratch, version: "0.1.0", compilers: [:nxvk_port]]
          end
          """,
          "bin/go" => @go
        } do
      file = Path.join(root, path)
      File.mkdir_p!(Path.dirname(file))
      File.write!(file, text)
    end

    File.chmod!(Path.join(root, "bin/go"), 0o755)

    variables =
      ~w(PATH HOME GOOS GOARCH GOCACHE GOPATH NXVK_PORT MIX_BUILD_PATH FAKE_GO FAKE_STATUS FAKE_LOG FAKE_BROKEN)

    old = for name <- variables, do: {name, System.get_env(name)}
    shell = Mix.shell()
    Mix.shell(Mix.Shell.Process)

    on_exit(fn ->
      System.put_env(old)
      Mix.shell(shell)
      File.rm_rf!(root)
    end)

    log = Path.join(root, "log")
    System.put_env("PATH", Path.join(root, "bin") <> ":/usr/bin:/bin")
    System.put_env("FAKE_LOG", log)
    System.put_env("MIX_BUILD_PATH", Path.join(root, "build"))
    for name <- ~w(GOOS GOARCH NXVK_PORT FAKE_GO FAKE_BROKEN), do: System.delete_env(name)
    {:ok, root: root, log: log}
  end

  defp in_project(root, fun) do
    # Mix knows a project by its name, whatever its directory.
    Mix.Project.in_project(:"#{Path.basename(root)}", Path.join(root, "elixir"), fn _ -> fun.() end)
  end

  defp compile(root, args \\ []), do: in_project(root, fn -> NxvkPort.run(args) end)
  defp program(root), do: Path.join(root, "build/lib/scratch/priv/nxvk_port")

  defp builds(log),
    do: if(File.exists?(log), do: log |> File.read!() |> String.split("\n", trim: true), else: [])

  test "builds into the application's priv, without C, and only when something has changed", %{
    root: root,
    log: log
  } do
    assert {:ok, []} = compile(root)
    assert File.stat!(program(root)).mode |> Bitwise.band(0o111) != 0
    assert [args, env] = builds(log)
    assert args =~ ~r{^build -trimpath -buildvcs=false -o .*nxvk_port.new ./cmd/nxvk_port$}
    assert env =~ "CGO_ENABLED=0"
    assert env =~ "PWD=#{root}"

    assert {:noop, []} = compile(root)
    assert length(builds(log)) == 2

    # What no program is made of does not count; what is beside Go sources does.
    later = System.os_time(:second) + 10
    File.touch!(Path.join(root, "vkrt/vk/vk_test.go"), later)
    File.touch!(Path.join(root, "test/conformance.go"), later)
    assert {:noop, []} = compile(root)
    File.touch!(Path.join(root, "vkrt/vk/table.bin"), later)
    assert {:ok, []} = compile(root)
    assert length(builds(log)) == 4
    File.touch!(Path.join(root, "vkrt/vk/table.bin"), later - 100)
    assert {:noop, []} = compile(root)
    assert {:ok, []} = compile(root, ["--force"])

    in_project(root, &NxvkPort.clean/0)
    refute File.exists?(program(root))
  end

  test "builds for GOOS and GOARCH, and again when they change", %{root: root, log: log} do
    assert {:ok, []} = compile(root)
    System.put_env("GOOS", "freebsd")
    assert {:ok, []} = compile(root)
    assert Enum.at(builds(log), 2) =~ "-gcflags=github.com/ebitengine/purego/internal/fakecgo=-std"
    assert {:noop, []} = compile(root)
  end

  test "gives Go a cache where there is no home", %{root: root, log: log} do
    for name <- ~w(HOME GOCACHE GOPATH), do: System.delete_env(name)
    assert {:ok, []} = compile(root)
    assert List.last(builds(log)) =~ "GOCACHE=#{root}/build/go/cache GOPATH=#{root}/build/go/path"
  end

  test "says in a sentence that Go is missing, too old, or cannot build", %{root: root} do
    System.put_env("FAKE_GO", "go1.22.1")
    assert {:error, [%{message: message, severity: :error}]} = compile(root)

    assert message =~
             "Go 1.22.1 is too old, the port needs Go 1.25.0 or newer: install it from https://go.dev/dl"

    assert_received {:mix_shell, :error, ["nx_vulkan: Go 1.22.1 is too old" <> _]}

    System.put_env("FAKE_GO", "go: go.mod requires go >= 1.25.0 (running go 1.21.3; GOTOOLCHAIN=local)")
    System.put_env("FAKE_STATUS", "1")
    assert {:error, [%{message: "Go 1.21.3 is too old" <> _}]} = compile(root)

    for {name, value} <- [{"FAKE_GO", "go1.26"}, {"FAKE_STATUS", "0"}, {"FAKE_BROKEN", "1"}] do
      System.put_env(name, value)
    end

    assert {:error, [%{message: message}]} = compile(root)
    assert message =~ "go build ended with status 2:\nmain.go:1: syntax error"
    refute File.exists?(program(root))

    File.rm!(Path.join(root, "bin/go"))
    System.put_env("PATH", Path.join(root, "bin"))
    assert {:error, [%{message: message}]} = compile(root)
    assert message =~ "Go is missing, which builds the port: install it"
    assert message =~ "or set NXVK_PORT"
  end

  test "takes a program that is there", %{root: root, log: log} do
    System.put_env("NXVK_PORT", Path.join(root, "bin/go"))
    assert {:noop, []} = compile(root)
    assert builds(log) == []
    System.put_env("NXVK_PORT", Path.join(root, "nothing"))
    assert {:error, [%{message: message}]} = compile(root)
    assert message =~ "nothing, which does not exist"
    System.put_env("NXVK_PORT", "bin/go")
    assert {:error, [%{message: message}]} = compile(root)
    assert message =~ "NXVK_PORT is bin/go: it wants an absolute path, such as /"
  end

  test "staged sources come first, and hold all that the program is built from", %{root: root, log: log} do
    in_project(root, fn -> Mix.Tasks.NxVulkan.Stage.run([]) end)
    port = Path.join(root, "elixir/port")

    assert port
           |> Path.join("**")
           |> Path.wildcard()
           |> Enum.filter(&File.regular?/1)
           |> Enum.map(&Path.relative_to(&1, port))
           |> Enum.sort() ==
             ~w(LICENSE cmd/nxvk_port/main.go go.mod go.sum vkrt/vk/table.bin vkrt/vk/vk.go)

    assert {:ok, []} = compile(root)
    assert List.last(builds(log)) =~ "PWD=#{port}"

    in_project(root, fn -> Mix.Tasks.NxVulkan.Stage.run(["--clean"]) end)
    refute File.exists?(port)
    File.rm_rf!(Path.join(root, "cmd"))
    assert {:error, [%{message: message}]} = compile(root)
    assert message =~ "a git dependency needs subdir: \"elixir\""
  end
end

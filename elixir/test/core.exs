# Compiles the modules that do not need Nx, and runs their tests: with Elixir alone, without Mix, Hex or Nx.
#
#     elixir test/core.exs              all of test/core
#     elixir test/core.exs FILE...      some of it
#     NXVK_STRESS=1000000 elixir test/core.exs test/core/reaper_test.exs     with that many handles
#
# With NXVK_PORT, what stands on a real port is tested too.
root = Path.expand("..", __DIR__)

core = ~w(
  lib/mix/tasks/*.ex
  lib/nx_vulkan/{application,error,wire,port,plan,handle,nursery,reaper}.ex
  lib/nx_vulkan/{port,reaper}/*.ex
  test/support/{fake_port,reaper_stress}.ex
)

out = Path.join(System.tmp_dir!(), "nxvk-core-#{System.pid()}")
File.mkdir_p!(out)
Code.prepend_path(out)
sources = Enum.flat_map(core, &Path.wildcard(Path.join(root, &1)))

case Kernel.ParallelCompiler.compile_to_path(sources, out, return_diagnostics: true) do
  {:ok, _, %{runtime_warnings: [], compile_warnings: []}} -> :ok
  _ -> System.halt(1)
end

# Other programs may be at work on the machine.
ExUnit.start(autorun: false, assert_receive_timeout: 5_000)
{:ok, _} = Nx.Vulkan.Application.start(:normal, [])

files =
  case System.argv() do
    [] -> Path.wildcard(Path.join(__DIR__, "core/*_test.exs"))
    files -> files
  end

Enum.each(files, &Code.require_file/1)
%{failures: failures} = ExUnit.run()
File.rm_rf!(out)
System.halt(if failures == 0, do: 0, else: 1)

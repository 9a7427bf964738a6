# Runs the tests of test/core, or those named, without Mix: see core.sh.
ExUnit.start(autorun: false)
{:ok, _} = Nx.Vulkan.Application.start(:normal, [])

files =
  case System.argv() do
    [] -> Path.wildcard(Path.join(__DIR__, "core/*_test.exs"))
    files -> files
  end

Enum.each(files, &Code.require_file/1)
%{failures: failures} = ExUnit.run()
System.halt(if failures == 0, do: 0, else: 1)

defmodule Nx.Vulkan.TenMinutesTest do
  # The notebook of the earlier package, as it was written.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  @example Path.expand("../../../examples/ten_minutes.exs", __DIR__)

  test "every stated result is as stated" do
    Nx.default_backend(Nx.BinaryBackend)
    output = capture_io(fn -> capture_io(:stderr, fn -> Code.eval_file(@example) end) end)
    assert output =~ "Every stated result is as stated."
    for line <- String.split(output, "\n"), String.starts_with?(line, "SKIPPED"), do: IO.puts(line)
  end
end

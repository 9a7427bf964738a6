defmodule Nx.Vulkan.Test.FakePort do
  @moduledoc """
  Makes the wire's test double (`fake_port.erl`) a program that `NXVK_PORT` can name.

  Only tests use it. What it can be told to do stands in the Erlang file.
  """

  @source Path.join(__DIR__, "fake_port.erl")
  @external_resource @source

  @doc """
  Compiles the double and returns the path of its program.
  """
  @spec build() :: Path.t()
  def build do
    dir = Path.join(System.tmp_dir!(), "nxvk-fake-#{System.pid()}")
    program = Path.join(dir, "fake_port")

    unless File.exists?(program) do
      File.mkdir_p!(dir)
      {:ok, :fake_port} = :compile.file(String.to_charlist(@source), outdir: String.to_charlist(dir))

      File.write!(program, """
      #!/bin/sh
      exec erl -noinput +S 1:1 +A 1 -kernel logger_level none -pa #{dir} -s fake_port start
      """)

      File.chmod!(program, 0o755)
      System.at_exit(fn _ -> File.rm_rf(dir) end)
    end

    program
  end

  @doc """
  Makes the double the port program for devices that start during this test; `mode` is how it misbehaves.
  """
  @spec start_using(atom()) :: :ok
  def start_using(mode \\ :none) do
    for {name, value} <- [{"NXVK_PORT", build()}, {"NXVK_FAKE", Atom.to_string(mode)}] do
      # Once a test, which may call this again: what was there before the first time comes back.
      unless Process.put({__MODULE__, name}, true) do
        old = System.get_env(name)
        ExUnit.Callbacks.on_exit(fn -> restore(name, old) end)
      end

      System.put_env(name, value)
    end

    :ok
  end

  defp restore(name, nil), do: System.delete_env(name)
  defp restore(name, old), do: System.put_env(name, old)
end

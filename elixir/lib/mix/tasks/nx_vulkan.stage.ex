defmodule Mix.Tasks.NxVulkan.Stage do
  @shortdoc "Copies the Go sources of the port into port/, for the Hex package"

  @moduledoc """
  Copies the Go sources of the port into `port/`, from where a Hex package builds them.

      mix nx_vulkan.stage
      mix hex.build
      mix nx_vulkan.stage --clean

  What is staged is built in place of the checkout's sources, so clean up afterwards.
  """

  use Mix.Task

  @impl true
  def run(args) do
    root = Path.dirname(Mix.Project.project_file())
    port = Path.join(root, "port")
    File.rm_rf!(port)

    if "--clean" not in args do
      source = Path.expand("..", root)
      files = Mix.Tasks.Compile.NxvkPort.files(source) ++ [Path.join(source, "LICENSE")]

      for file <- files do
        to = Path.join(port, Path.relative_to(file, source))
        File.mkdir_p!(Path.dirname(to))
        File.cp!(file, to)
      end

      Mix.shell().info("Staged #{length(files)} files of the port")
    end

    :ok
  end
end

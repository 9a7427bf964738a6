defmodule NxVulkan.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :nx_vulkan,
      version: @version,
      elixir: "~> 1.17",
      elixirc_paths: elixirc_paths(Mix.env()),
      # After :elixir, since it is one of the modules: Go builds the port into priv.
      compilers: Mix.compilers() ++ [:nxvk_port],
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      name: "Nx.Vulkan",
      description: "Nx tensors and numerical definitions on any GPU with a Vulkan driver, without a NIF",
      package: package(),
      docs: docs()
    ]
  end

  def application do
    [extra_applications: [:logger], mod: {Nx.Vulkan.Application, []}]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]

  # Checkouts stand in for Hex where it cannot be had: NX_PATH and its like name them.
  defp deps do
    [
      dep(:nx, "~> 0.13", "NX_PATH"),
      dep(:telemetry, "~> 1.0", "TELEMETRY_PATH"),
      {:ex_doc, "~> 0.34", only: :dev, runtime: false}
    ] ++ checkouts()
  end

  defp dep(name, requirement, variable) do
    case System.get_env(variable) do
      path when path in [nil, ""] -> {name, requirement}
      path -> {name, path: path, override: true}
    end
  end

  # Dependencies of dependencies, and what only tests use.
  defp checkouts do
    for {name, variable, opts} <- [
          {:complex, "COMPLEX_PATH", []},
          {:axon, "AXON_PATH", only: :test},
          {:polaris, "POLARIS_PATH", only: :test}
        ],
        path = System.get_env(variable),
        path != "" do
      {name, [path: path, override: true] ++ opts}
    end
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      # "mix nx_vulkan.stage" puts the sources of the port and the licence into port/.
      files: ~w(lib port mix.exs .formatter.exs)
    ]
  end

  defp docs do
    [
      main: "Nx.Vulkan",
      groups_for_modules: [
        "The port": [~r/^Nx\.Vulkan\.(Port|Wire)/],
        "Lifetime of tensors": [~r/^Nx\.Vulkan\.(Handle|Nursery|Reaper)/]
      ]
    ]
  end
end

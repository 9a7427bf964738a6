defmodule Nx.Vulkan.Port.Bulk do
  @moduledoc """
  Bulk data travels through files that both sides can open, since a pipe is ten times slower than memory.

  The files live in a directory of their own, one for each port, readable by this user alone, under
  `$XDG_RUNTIME_DIR` (a tmpfs on most systems), `/dev/shm` or the temporary directory. Whoever reads a file deletes
  it. What is left behind is deleted when the port ends, and what a killed node left behind when the next one
  starts: the directory's name holds the host and the process id of its node.

  `NXVK_BULK=stdio` turns bulk files off.
  """

  @enforce_keys [:dir, :threshold]
  defstruct [:dir, :threshold]

  @type t :: %__MODULE__{dir: String.t(), threshold: pos_integer()}

  @threshold 64 * 1024
  @max_read 1024 * 1024 * 1024

  # A file_info record in which only the mode is given.
  @private :undefined |> Tuple.duplicate(14) |> put_elem(0, :file_info) |> put_elem(7, 0o600)

  @doc """
  How many bytes are read at once.
  """
  @spec max_read() :: pos_integer()
  def max_read, do: @max_read

  @doc """
  Whether `NXVK_BULK` says something known: `:ok`, or a sentence about what it says.
  """
  @spec setting() :: :ok | {:error, String.t()}
  def setting do
    case System.get_env("NXVK_BULK") do
      value when value in [nil, "", "stdio"] -> :ok
      other -> {:error, "NXVK_BULK is \"stdio\" or not set, got: #{inspect(other)}"}
    end
  end

  @doc """
  Makes the directory for a port, or says `nil` where bulk files are off or cannot be had.
  """
  @spec open(non_neg_integer(), pos_integer()) :: t() | nil
  def open(device, epoch) do
    if System.get_env("NXVK_BULK") == "stdio" do
      nil
    else
      clean_stale()

      Enum.find_value(roots(), fn root ->
        home = Path.join(root, node_dir(System.pid()))
        dir = Path.join(home, "#{device}.#{epoch}")
        # Left by a node that had the same process id.
        File.rm_rf(dir)

        with :ok <- private_dir(home),
             :ok <- private_dir(dir) do
          %__MODULE__{dir: dir, threshold: @threshold}
        else
          _ -> nil
        end
      end)
    end
  end

  @doc """
  Deletes the directory of a port.
  """
  @spec close(t() | nil) :: :ok
  def close(nil), do: :ok

  def close(%__MODULE__{dir: dir}) do
    File.rm_rf(dir)
    # Goes only when no other port of this node has a directory there.
    File.rmdir(Path.dirname(dir))
    :ok
  end

  @doc """
  Writes the bytes of tensor `id` to a file and returns its name.
  """
  @spec write(t(), pos_integer(), binary()) :: {:ok, binary()} | {:error, File.posix()}
  def write(%__MODULE__{dir: dir}, id, data) do
    name = "up-#{id}"
    path = Path.join(dir, name)

    with {:ok, file} <- :file.open(path, [:raw, :write, :exclusive, :binary]) do
      # The mode first, so that nobody else can open what is written.
      result =
        with :ok <- :file.write_file_info(path, @private, [:raw]),
             :ok <- :file.write(file, data),
             do: {:ok, name}

      :ok = :file.close(file)
      with {:error, _} <- result, do: :file.delete(path, [:raw])
      result
    end
  end

  @doc """
  Reads and deletes a file that the port wrote.
  """
  @spec take(t(), binary(), non_neg_integer()) :: {:ok, binary()} | {:error, term()}
  def take(%__MODULE__{dir: dir}, name, size) do
    path = Path.join(dir, Path.basename(name))

    with {:ok, file} <- :file.open(path, [:raw, :read, :binary]) do
      :file.delete(path, [:raw])
      result = read_all(file, size)
      :ok = :file.close(file)
      result
    end
  end

  defp read_all(_file, 0), do: {:ok, <<>>}

  defp read_all(file, size) do
    case :file.read(file, size) do
      {:ok, bytes} when byte_size(bytes) == size -> {:ok, bytes}
      {:ok, bytes} -> {:error, "#{byte_size(bytes)} bytes of #{size}"}
      :eof -> {:error, "0 bytes of #{size}"}
      {:error, reason} -> {:error, reason}
    end
  end

  @doc """
  Deletes a file that nobody will read.
  """
  @spec delete(t(), binary()) :: :ok
  def delete(%__MODULE__{dir: dir}, name) do
    _ = :file.delete(Path.join(dir, Path.basename(name)), [:raw])
    :ok
  end

  @doc """
  Deletes the directories of nodes that live no more.
  """
  @spec clean_stale() :: :ok
  def clean_stale do
    for root <- roots(),
        dir <- Path.wildcard(Path.join(root, node_dir("*"))),
        [_, pid] <- [Regex.run(~r/-(\d+)$/, dir)],
        pid != System.pid(),
        not alive?(pid) do
      File.rm_rf(dir)
    end

    :ok
  end

  defp alive?(pid) do
    case System.find_executable("kill") do
      nil -> true
      kill -> match?({_, 0}, System.cmd(kill, ["-0", pid], stderr_to_stdout: true))
    end
  end

  defp roots do
    ["XDG_RUNTIME_DIR", :shm, "TMPDIR", :tmp]
    |> Enum.map(fn
      :shm -> "/dev/shm"
      :tmp -> "/tmp"
      variable -> System.get_env(variable)
    end)
    |> Enum.filter(&(&1 && &1 != "" && File.dir?(&1)))
    |> Enum.uniq()
  end

  defp node_dir(pid), do: "nxvk-#{host()}-#{pid}"

  # Process ids mean nothing to another host or container that shares the directory.
  defp host do
    {:ok, name} = :inet.gethostname()
    [name, File.read_link("/proc/self/ns/pid")] |> :erlang.phash2() |> Integer.to_string(16)
  end

  defp private_dir(dir) do
    case File.mkdir(dir) do
      :ok ->
        File.chmod(dir, 0o700)

      {:error, :eexist} ->
        # Someone else's directory of that name takes no file of ours.
        with {:ok, %{type: :directory}} <- File.lstat(dir), do: File.chmod(dir, 0o700)

      error ->
        error
    end
  end
end

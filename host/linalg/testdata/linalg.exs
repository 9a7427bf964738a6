# Writes linalg.txt.gz: matrices and what Nx.BinaryBackend makes of them, by Nx's own definitions.
# From elixir/: mix run --no-start ../host/linalg/testdata/linalg.exs ../host/linalg/testdata/linalg.txt.gz
# A line is: op, type, rows, columns, options, operands and results as hex of their bytes, separated by spaces.
Nx.default_backend(Nx.BinaryBackend)
:rand.seed(:exsss, {1, 2, 3})

defmodule Vectors do
  def value({:c, _} = type), do: Complex.new(value(real(type)), value(real(type)))

  def value(_),
    do: if(:rand.uniform(8) == 1, do: :rand.uniform(7) - 4.0, else: :rand.normal() * 3)

  def real({:c, n}), do: {:f, div(n, 2)}
  def real(type), do: type

  def matrix(type, m, n),
    do: Nx.tensor(for(_ <- 1..m, do: for(_ <- 1..n, do: value(type))), type: type)

  # A matrix of lower rank: a column repeats another.
  def poor(type, m, n) do
    t = matrix(type, m, n)
    Nx.put_slice(t, [0, n - 1], Nx.slice(t, [0, 0], [m, 1]))
  end

  def hermitian(type, n) do
    t = matrix(type, n, n)
    Nx.divide(Nx.add(t, Nx.LinAlg.adjoint(t)), 2)
  end

  def definite(type, n) do
    t = matrix(type, n, n)
    Nx.add(Nx.dot(t, Nx.LinAlg.adjoint(t)), Nx.eye(n, type: type))
  end

  def line(op, type, m, n, opts, tensors) do
    hex = Enum.map(tensors, &Base.encode16(Nx.to_binary(&1), case: :lower))
    IO.puts(Process.get(:out), Enum.join([op, Nx.Type.to_string(type), m, n, opts | hex], " "))
  end

  # A division by zero raises there.
  def svd(type, m, n, full, a) do
    {u, s, vt} = Nx.LinAlg.svd(a, full_matrices?: full)
    line("svd", type, m, n, full, [a, u, s, vt])
  rescue
    ArithmeticError -> :skip
  end

  def run do
    for type <- [{:f, 32}, {:f, 64}, {:c, 64}, {:c, 128}] do
      complex? = match?({:c, _}, type)
      sizes = if complex?, do: [1, 2, 3, 5], else: [1, 2, 3, 4, 5, 8, 13]

      for n <- sizes do
        a = definite(type, n)
        line("cholesky", type, n, n, "-", [a, Nx.LinAlg.cholesky(a)])

        h = hermitian(type, n)
        {w, v} = Nx.LinAlg.eigh(h)
        line("eigh", type, n, n, "-", [h, w, v])

        {w, v} = Nx.LinAlg.eigh(h, eps: 1.0e-8, max_iter: 3)
        line("eigh", type, n, n, "3,1e-8", [h, w, v])

        for a <- [matrix(type, n, n), poor(type, n, n)] do
          {p, l, u} = Nx.LinAlg.lu(a)
          line("lu", type, n, n, "-", [a, p, l, u])
          line("determinant", type, n, n, "-", [a, Nx.LinAlg.determinant(a)])
        end

        a = matrix(type, n, n)

        for cols <- [1, 3] do
          b = matrix(type, n, cols)
          line("solve", type, n, cols, "-", [a, b, Nx.LinAlg.solve(a, b)])

          for lower <- [true, false],
              n in [1, 3, 5],
              left <- [true, false],
              transform <- [:none, :transpose, :conjugate] do
            b = if left, do: b, else: Nx.transpose(b)
            opts = [lower: lower, left_side: left, transform_a: transform]
            x = Nx.LinAlg.triangular_solve(a, b, opts)
            line("triangular_solve", type, n, cols, "#{lower},#{left},#{transform}", [a, b, x])
          end
        end
      end

      for {m, n} <- [
            {1, 1},
            {1, 4},
            {4, 1},
            {2, 2},
            {3, 3},
            {5, 3},
            {3, 5},
            {6, 6},
            {9, 4},
            {4, 9}
          ] do
        for a <- [
              matrix(type, m, n),
              poor(type, m, n),
              Nx.broadcast(Nx.tensor(0, type: type), {m, n})
            ] do
          for mode <- [:reduced, :complete] do
            {q, r} = Nx.LinAlg.qr(a, mode: mode)
            line("qr", type, m, n, mode, [a, q, r])
          end

          unless complex? do
            for full <- [true, false] do
              svd(type, m, n, full, a)
            end
          end
        end
      end
    end
  end
end

Process.put(:out, File.open!(hd(System.argv()), [:write, :compressed]))
Vectors.run()
File.close(Process.get(:out))

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.VectorFamilies do
    @moduledoc """
    Calls for the conformance vectors: indices, windows, convolutions, sorts, scans, transforms, linear algebra, functions
    of reductions, and the types beyond the plain twelve.

    A group is `{name, [{label, function, operands, tolerance}]}`: the function takes tensors of any backend and yields
    one, or a tuple of them; `tolerance` is how far a float may lie off, relative to the largest number of the
    result, 0 where it must be met bit for bit.
    """

    @plain [:u8, :s32, :s64, :f16, :bf16, :f32, :f64]
    @floats [:f32, :f64]

    @doc "All groups."
    def all do
      indices() ++
        windows() ++ sorts() ++ scans() ++ transforms() ++ linear_algebra() ++ functions() ++ types()
    end

    defp indices do
      rows = Nx.tensor([[2], [0], [2]], backend: Nx.BinaryBackend)
      elements = Nx.tensor([[0, 1], [3, 2], [0, 1]], backend: Nx.BinaryBackend)
      flat = Nx.tensor([[2, 0], [1, 1]], backend: Nx.BinaryBackend)

      [
        gather: each(@plain, &{fn x, i -> Nx.gather(x, i) end, [numbers({4, 3}, &1), elements]}),
        gather_slices:
          each(@plain, &{fn x, i -> Nx.gather(x, i, axes: [1]) end, [numbers({2, 3, 4}, &1), rows]}),
        take: each(@plain, &{fn x, i -> Nx.take(x, i, axis: 1) end, [numbers({2, 3, 4}, &1), flat]}),
        take_along_axis:
          each(@plain, &{fn x, i -> Nx.take_along_axis(x, i, axis: 0) end, [numbers({3, 2}, &1), flat]}),
        indexed_add:
          each(
            @plain,
            &{fn x, i, u -> Nx.indexed_add(x, i, u) end, [numbers({4, 3}, &1), elements, numbers({3}, &1)]}
          ),
        indexed_put:
          each(
            @plain,
            &{fn x, i, u -> Nx.indexed_put(x, i, u, axes: [0]) end,
             [numbers({4, 3}, &1), rows, numbers({3, 3}, &1)]}
          )
      ]
    end

    defp windows do
      opts = [strides: [1, 2], padding: [{1, 0}, {1, 1}], window_dilations: [1, 2]]

      for(op <- [:window_sum, :window_product, :window_max, :window_min]) do
        {op, each(@plain, &{fn x -> apply(Nx, op, [x, {2, 2}, opts]) end, [small({4, 6}, &1)]}, 1.0e-6)}
      end ++
        for op <- [:window_scatter_max, :window_scatter_min] do
          {op,
           each(
             [:s32, :f32],
             &{fn x, s -> apply(Nx, op, [x, s, 0, {2, 2}, [strides: [2, 2], padding: :valid]]) end,
              [numbers({4, 6}, &1), numbers({2, 3}, &1)]}
           )}
        end ++
        [
          conv:
            each(
              @floats,
              &{fn x, k -> Nx.conv(x, k, convolution()) end,
               [small({2, 4, 6, 5}, &1), small({6, 2, 3, 2}, &1)]},
              1.0e-6
            ),
          conv_batch_groups:
            each(
              @floats,
              &{fn x, k -> Nx.conv(x, k, batch_group_size: 2) end,
               [small({4, 2, 5}, &1), small({4, 2, 3}, &1)]},
              1.0e-6
            ),
          conv_channels_last:
            each(
              @floats,
              &{fn x, k ->
                 Nx.conv(x, k,
                   input_permutation: [0, 3, 1, 2],
                   kernel_permutation: [3, 2, 0, 1],
                   output_permutation: [0, 3, 1, 2],
                   input_dilation: [2, 1]
                 )
               end, [small({2, 4, 5, 3}, &1), small({2, 2, 3, 4}, &1)]},
              1.0e-6
            )
        ]
    end

    defp convolution do
      [strides: [2, 1], padding: [{1, 0}, {2, 1}], kernel_dilation: [1, 2], feature_group_size: 2]
    end

    defp sorts do
      for {label, opts} <- [up: [axis: 1], down: [axis: 0, direction: :desc]], op <- [:sort, :argsort] do
        {:"#{op}_#{label}", each(@plain, &{fn x -> apply(Nx, op, [x, opts]) end, [numbers({3, 7}, &1)]})}
      end ++
        [
          sort_nan: each(@floats, &{fn x -> Nx.sort(x) end, [special(&1)]}),
          argsort_nan: each(@floats, &{fn x -> Nx.argsort(x, direction: :desc) end, [special(&1)]}),
          sort_ties: each(@plain, &{fn x -> Nx.sort(x, axis: 0) end, [small({9, 2}, &1)]}),
          argsort_ties:
            each(
              @plain,
              &{fn x ->
                 {Nx.argsort(x, axis: 0, stable: true),
                  Nx.argsort(x, axis: 0, direction: :desc, stable: true)}
               end, [small({9, 2}, &1)]}
            ),
          top_k: each(@plain, &{fn x -> Nx.top_k(x, k: 3) end, [numbers({2, 7}, &1)]})
        ]
    end

    defp scans do
      for op <- [:cumulative_sum, :cumulative_product, :cumulative_max, :cumulative_min],
          back <- [false, true] do
        {if(back, do: :"#{op}_reverse", else: op),
         each(
           @plain,
           &{fn x -> apply(Nx, op, [x, [axis: 1, reverse: back]]) end, [small({3, 5}, &1)]},
           1.0e-6
         )}
      end
    end

    defp transforms do
      [
        fft: each([:s32, :f32, :f64, :c64], &{fn x -> Nx.fft(x) end, [numbers({2, 12}, &1)]}, 1.0e-6),
        ifft: each([:f32, :c128], &{fn x -> Nx.ifft(x, length: 7) end, [numbers({2, 12}, &1)]}, 1.0e-6),
        fft2: each(@floats, &{fn x -> Nx.fft2(x) end, [numbers({4, 5}, &1)]}, 1.0e-6),
        rfft: each(@floats, &{fn x -> Nx.rfft(x) end, [numbers({2, 9}, &1)]}, 1.0e-6),
        irfft: each([:c64], &{fn x -> Nx.irfft(x) end, [numbers({2, 6}, &1)]}, 1.0e-6)
      ]
    end

    defp linear_algebra do
      square = fn type ->
        Nx.add(small({3, 3}, type), Nx.multiply(Nx.eye(3, type: type, backend: Nx.BinaryBackend), 9))
      end

      definite = fn type -> square.(type) |> then(&Nx.dot(&1, Nx.transpose(&1))) end

      [
        triangular_solve:
          each(
            @floats,
            &{fn a, b -> Nx.LinAlg.triangular_solve(a, b, lower: false) end,
             [square.(&1), small({3, 2}, &1)]},
            1.0e-5
          ),
        cholesky: each(@floats, &{fn a -> Nx.LinAlg.cholesky(a) end, [definite.(&1)]}, 1.0e-5),
        solve: each(@floats, &{fn a, b -> Nx.LinAlg.solve(a, b) end, [square.(&1), small({3}, &1)]}, 1.0e-5),
        lu: each(@floats, &{fn a -> Nx.LinAlg.lu(a) end, [square.(&1)]}, 1.0e-5),
        qr: each(@floats, &{fn a -> Nx.LinAlg.qr(a) end, [square.(&1)]}, 1.0e-5),
        svd: each(@floats, &{fn a -> Nx.LinAlg.svd(a) end, [square.(&1)]}, 1.0e-4),
        eigh: each(@floats, &{fn a -> Nx.LinAlg.eigh(a) end, [definite.(&1)]}, 1.0e-3),
        determinant: each(@floats, &{fn a -> Nx.LinAlg.determinant(a) end, [square.(&1)]}, 1.0e-5),
        triangular_solve_options:
          each(
            @floats,
            &{fn a, b ->
               {Nx.LinAlg.triangular_solve(a, b), Nx.LinAlg.triangular_solve(a, b, transform_a: :transpose),
                Nx.LinAlg.triangular_solve(a, b, left_side: false)}
             end, [square.(&1), small({3, 3}, &1)]},
            1.0e-5
          ),
        all_close:
          each(@floats, &{fn a, b -> Nx.all_close(a, b) |> Nx.reshape({1}) end, [square.(&1), square.(&1)]}),
        all_close_not:
          each(
            @floats,
            &{fn a, b ->
               {Nx.reshape(Nx.all_close(a, b), {1}), Nx.reshape(Nx.all_close(a, b, atol: 10), {1}),
                Nx.reshape(Nx.all_close(b, b), {1}), Nx.reshape(Nx.all_close(b, b, equal_nan: true), {1})}
             end, [numbers({7}, &1), special(&1)]}
          ),
        phase: each(@floats, &{fn x -> Nx.phase(x) end, [numbers({6}, &1)]}, 1.0e-6),
        logical_not: each(@plain, &{fn x -> Nx.logical_not(x) end, [numbers({5}, &1)]})
      ]
    end

    defp functions do
      [
        reduce:
          each(
            [:s32, :f32, :f64],
            &{fn x -> Nx.reduce(x, 1, [axes: [1]], fn e, acc -> Nx.subtract(Nx.multiply(acc, 2), e) end) end,
             [small({3, 4}, &1)]},
            1.0e-6
          ),
        window_reduce:
          each(
            [:s32, :f32],
            &{fn x -> Nx.window_reduce(x, 0, {2, 2}, fn e, acc -> Nx.max(e, acc) end) end,
             [numbers({4, 4}, &1)]}
          ),
        window_reduce_options:
          each(
            [:s32, :f32],
            &{fn x ->
               Nx.window_reduce(
                 x,
                 1,
                 {2, 2},
                 [strides: [1, 2], padding: [{1, 0}, {0, 1}], window_dilations: [2, 1]],
                 fn e, acc -> Nx.subtract(Nx.multiply(acc, 2), e) end
               )
             end, [small({4, 5}, &1)]}
          )
      ]
    end

    @narrow [:f8, :f8_e4m3fn, :s2, :s4, :u2, :u4]

    defp types do
      # OTP 25 reads the zeros of 8-bit floats with the wrong sign.
      narrow = fn type ->
        values = if type in [:f8, :f8_e4m3fn], do: [1, 2, 3, 1, 2], else: [0, 1, 1, 0, 1]
        Nx.tensor(values, type: type, backend: Nx.BinaryBackend)
      end

      [
        narrow_cast: each(@narrow, &{fn x -> Nx.as_type(x, :f32) end, [narrow.(&1)]}),
        narrow_move:
          each(
            @narrow -- [:f8, :f8_e4m3fn],
            &{fn x -> x |> Nx.reverse() |> Nx.pad(0, [{1, 2, 1}]) |> Nx.as_type(:s32) end, [narrow.(&1)]}
          ),
        # BinaryBackend raises on operations of two operands of less than 8 bits.
        narrow_arithmetic:
          each(
            @narrow -- [:s2, :s4, :u2, :u4],
            &{fn x ->
               {Nx.add(x, x), Nx.multiply(x, x), Nx.max(x, Nx.reverse(x)), Nx.less(x, Nx.reverse(x))}
             end, [narrow.(&1)]}
          ),
        narrow_sum: each(@narrow, &{fn x -> Nx.sum(Nx.reshape(x, {1, 5}), axes: [1]) end, [narrow.(&1)]}),
        complex_add: complex(&Nx.add/2),
        complex_multiply: complex(&Nx.multiply/2),
        complex_divide: complex(&Nx.divide/2),
        complex_equal: complex(&Nx.equal/2),
        complex_exp: complex(fn x, _ -> Nx.exp(x) end),
        complex_sqrt: complex(fn x, _ -> Nx.sqrt(x) end),
        complex_log: complex(fn x, _ -> Nx.log(x) end),
        complex_sin: complex(fn x, _ -> Nx.sin(x) end),
        complex_tanh: complex(fn x, _ -> Nx.tanh(x) end),
        complex_abs: complex(fn x, _ -> Nx.abs(x) end),
        complex_phase: complex(fn x, _ -> Nx.phase(x) end),
        complex_conjugate: complex(fn x, _ -> Nx.conjugate(x) end),
        complex_imag: complex(fn x, _ -> Nx.add(Nx.imag(x), 0) end),
        complex_sum: complex(fn x, _ -> Nx.sum(x, axes: [0]) end),
        complex_product: complex(fn x, _ -> Nx.product(x, axes: [1]) end),
        complex_dot: complex(fn x, y -> Nx.dot(x, Nx.transpose(y)) end),
        complex_moves:
          complex(
            fn x, y ->
              Nx.concatenate([Nx.reverse(x), Nx.pad(y, 0, [{0, 0, 0}, {1, 1, 1}])], axis: 1) |> Nx.transpose()
            end,
            {3, 4},
            {3, 2}
          )
      ]
    end

    defp complex(fun, left \\ {2, 3}, right \\ {2, 3}),
      do: each([:c64, :c128], &{fun, [numbers(left, &1), numbers(right, &1)]}, 1.0e-6)

    ## Operands

    defp each(types, make, tolerance \\ 0) do
      for type <- types do
        {fun, operands} = make.(type)
        {"#{type}", fun, operands, tolerance(tolerance, type)}
      end
    end

    # Half the digits of a narrow type are worth more than the rounding of a sum. In f64 a sum shows what f32 hides;
    # what iterates (svd, eigh) stops at a threshold of its own.
    defp tolerance(tolerance, type) when tolerance > 0 and type in [:f16, :bf16], do: 1.0e-2

    defp tolerance(tolerance, type) when tolerance > 0 and tolerance <= 1.0e-5 and type in [:f64, :c128],
      do: tolerance * 1.0e-6

    defp tolerance(tolerance, _type), do: tolerance

    defp special(type),
      do:
        Nx.tensor([1.5, :nan, -2.0, :infinity, 0.5, :neg_infinity, :nan],
          type: type,
          backend: Nx.BinaryBackend
        )

    # No two alike.
    defp numbers(shape, type) when type in [:c64, :c128] do
      for(i <- 1..Nx.size(shape), do: Complex.new(rem(i * 37, 101) / 8 - 5, rem(i * 53, 97) / 8 - 6))
      |> Nx.tensor(type: type, backend: Nx.BinaryBackend)
      |> Nx.reshape(shape)
    end

    defp numbers(shape, type) do
      signed = if type in [:u8], do: 0, else: 50

      for(i <- 1..Nx.size(shape), do: rem(i * 37, 101) - signed)
      |> Nx.tensor(type: type, backend: Nx.BinaryBackend)
      |> Nx.reshape(shape)
    end

    # Products of these stay small.
    defp small(shape, type) do
      for(i <- 1..Nx.size(shape), do: rem(i * 7, 5) - if(type == :u8, do: 0, else: 2))
      |> Nx.tensor(type: type, backend: Nx.BinaryBackend)
      |> Nx.reshape(shape)
    end
  end
end

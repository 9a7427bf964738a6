if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Test.Operations do
    @moduledoc """
    The elementwise operations of Nx, for all that goes through them: tests, random calls, conformance vectors.
    """

    @int_only [:quotient, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
                [:bitwise_not, :count_leading_zeros, :population_count]

    @binary [:add, :subtract, :multiply, :pow, :remainder, :divide, :atan2, :min, :max, :quotient] ++
              [:bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
              [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
              [:logical_and, :logical_or, :logical_xor]

    @unary Enum.map(Nx.Shared.unary_math_funs(), &elem(&1, 0)) ++
             [:abs, :bitwise_not, :ceil, :floor, :negate, :round, :sign] ++
             [:count_leading_zeros, :population_count, :is_nan, :is_infinity]

    @doc "Of two operands."
    def binary, do: @binary

    @doc "Of one operand, real results of real operands."
    def unary, do: @unary

    @doc "Whether `op` is one of these."
    def elementwise?(op), do: op in @binary or op in @unary

    @doc "Whether `op` takes operands of `type`: some take integers alone."
    def takes?(op, type), do: op not in @int_only or Nx.Type.integer?(Nx.Type.normalize!(type))
  end
end

defmodule Nx.Vulkan.WireTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Error, Wire}

  doctest Wire

  defp decode(frame), do: frame |> IO.iodata_to_binary() |> :erlang.binary_to_term()

  test "casts and calls are their terms, whatever their size" do
    for size <- [0, 1, 100, 4095, 4096, 100_000] do
      data = :binary.copy(<<7>>, size)
      assert {:upload, 3, :u8, {^size}, ^data} = decode(Wire.cast({:upload, 3, :u8, {size}, data}))

      assert {:upload_part, 3, :u8, {9}, 4, ^data} =
               decode(Wire.cast({:upload_part, 3, :u8, {9}, 4, data}))
    end

    op = {:op, {:add, :f32, {2}, []}, [1, {:f32, <<0, 0, 128, 63>>}], [2]}
    assert decode(Wire.cast(op)) == op
    assert decode(Wire.call(17, {:read, 1, 0, 8})) == {17, {:read, 1, 0, 8}}
    assert decode(Wire.call(18, :info)) == {18, :info}
  end

  test "large tensor bytes are not copied" do
    data = :binary.copy(<<1>>, 1_000_000)
    segments = Wire.cast({:upload, 1, :u8, {1_000_000}, data})
    assert is_list(segments)
    assert Enum.any?(segments, &(byte_size(&1) == 1_000_000))
  end

  test "a frame over the limit is refused, and the operation named" do
    data = :binary.copy(<<1>>, Wire.max_frame())

    for term <- [{:upload, 1, :u8, {1}, data}, {:op, {:add, :u8, {}, []}, [{:u8, data}], [2]}] do
      name = inspect(elem(term, 0))
      assert_raise ArgumentError, ~r/#{name}: a frame of \d+ bytes is over/, fn -> Wire.cast(term) end
    end

    assert_raise ArgumentError, ~r/:compile/, fn -> Wire.call(1, {:compile, data}) end
  end

  test "replies become values or errors" do
    assert Wire.reply(:erlang.term_to_binary({:ok, :device})) == {:ok, :device}

    error = %{op: :dot, reason: :shape, message: "dot: no"}

    assert Wire.reply(:erlang.term_to_binary({:error, error})) ==
             {:error, %Error{op: :dot, reason: :shape, message: "dot: no"}}

    assert {:error, %Error{reason: :protocol}} = Wire.reply("no term")
    assert {:error, %Error{reason: :protocol}} = Wire.reply(:erlang.term_to_binary(:surprise))
    assert {:error, %Error{reason: :protocol}} = Wire.reply(:erlang.term_to_binary({:error, :what}))
  end

  test "events are told apart" do
    log = {:log, :info, "hello"}
    assert Wire.event(:erlang.term_to_binary(log)) == log
    fault = {:fault, :device_lost, "gone"}
    assert Wire.event(:erlang.term_to_binary(fault)) == fault
    assert Wire.event(:erlang.term_to_binary({:pressure, 1})) == {:unknown, {:pressure, 1}}
    assert Wire.event(<<131>>) == :error
  end
end

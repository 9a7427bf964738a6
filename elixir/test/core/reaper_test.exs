defmodule Nx.Vulkan.ReaperTest do
  use ExUnit.Case

  alias Nx.Vulkan.{Handle, Nursery, Reaper}
  alias Nx.Vulkan.Test.ReaperStress

  # With NXVK_STRESS=1000000 the stress test makes that many.
  @stress String.to_integer(System.get_env("NXVK_STRESS") || "50000")

  setup do
    start_supervised!(ReaperStress)
    {:ok, port: ReaperStress.port()}
  end

  defp freed?(id) do
    _ = :sys.get_state(:"#{Nx.Vulkan.Reaper.Sender}.930")
    ReaperStress.freed?(id)
  end

  # Runs in a process of its own, so that nothing of it stays on the heap of the test.
  defp elsewhere(fun), do: fun |> Task.async() |> Task.await(60_000)

  defp eventually(check, tries \\ 200)
  defp eventually(_, 0), do: false
  defp eventually(check, tries), do: check.() || (Process.sleep(20) && eventually(check, tries - 1))

  test "a handle whose holder has ended is freed, without being asked", %{port: port} do
    id = elsewhere(fn -> elem(Handle.new(port, 4), 0) end)
    assert eventually(fn -> freed?(id) end)
  end

  test "a handle in use is not freed, and is when it is dropped", %{port: port} do
    parent = self()

    holder =
      spawn_link(fn ->
        {id, handle} = Handle.new(port, 4)
        send(parent, {:id, id})
        receive do: (:drop -> Handle.keep(handle))
        :erlang.garbage_collect()
        send(parent, :dropped)
        receive do: (:stop -> :ok)
      end)

    assert_receive {:id, id}
    for _ <- 1..20, do: Reaper.sweep()
    refute freed?(id)
    send(holder, :drop)
    assert_receive :dropped
    Reaper.sweep()
    assert freed?(id)
    send(holder, :stop)
  end

  for {name, hold, drop} <- [
        {"a closure", quote(do: fn handle, _ -> Process.put(:held, fn -> handle end) end),
         quote(do: fn _ -> Process.delete(:held) end)},
        {"an ETS table", quote(do: fn handle, table -> :ets.insert(table, {:held, [handle]}) end),
         quote(do: fn table -> :ets.delete(table, :held) end)},
        {"a persistent term", quote(do: fn handle, _ -> :persistent_term.put(:held, {handle}) end),
         quote(do: fn _ -> :persistent_term.erase(:held) end)},
        {"a timer's message",
         quote(do: fn handle, _ -> Process.put(:held, Process.send_after(self(), {:m, handle}, 600_000)) end),
         quote(do: fn _ -> Process.cancel_timer(Process.delete(:held)) end)},
        {"a sub-binary of more than 64 bytes",
         quote(do: fn handle, _ -> Process.put(:held, binary_part(handle, 0, 65)) end),
         quote(do: fn _ -> Process.delete(:held) end)},
        {"the mailbox of a process that does not read",
         quote do
           fn handle, _ ->
             pid = spawn(fn -> receive do: (:stop -> :ok) end)
             send(pid, {:m, handle})
             Process.put(:held, pid)
           end
         end, quote(do: fn _ -> Process.exit(Process.delete(:held), :kill) end)}
      ] do
    test "#{name} holds a handle", %{port: port} do
      table = :ets.new(:table, [:public])
      parent = self()

      holder =
        spawn_link(fn ->
          {id, handle} = Handle.new(port, 4)
          unquote(hold).(handle, table)
          send(parent, {:id, id})
          receive do: (:drop -> :ok)
          unquote(drop).(table)
          :erlang.garbage_collect()
          send(parent, :dropped)
          receive do: (:stop -> :ok)
        end)

      assert_receive {:id, id}
      :erlang.garbage_collect(holder)
      for _ <- 1..10, do: Reaper.sweep()
      refute freed?(id)
      send(holder, :drop)
      assert_receive :dropped
      assert eventually(fn -> Reaper.sweep() && freed?(id) end)
      send(holder, :stop)
    end
  end

  test "a copy by bytes does not hold a tensor, and does not name another one", %{port: port} do
    {id, copy} =
      elsewhere(fn ->
        {id, handle} = Handle.new(port, 4)
        {id, :erlang.term_to_binary(handle)}
      end)

    assert eventually(fn -> Reaper.sweep() && freed?(id) end)
    assert Handle.id(:erlang.binary_to_term(copy)) == id
  end

  # What a callback does: it takes the ids out of its handles, and then waits, in the middle of a command.
  defmodule Callback do
    def with_keep(handle, port) do
      id = Handle.id!(handle, port)
      wait(id)
      Handle.keep(handle)
    end

    def without_keep(handle, port) do
      id = Handle.id!(handle, port)
      wait(id)
    end

    defp wait(id) do
      receive do: ({:go, ^id} -> :ok)
    end
  end

  test "a caller that was collected while it waits keeps its operands alive by keep/1, and only so", %{
    port: port
  } do
    parent = self()

    [kept, lost] =
      for callback <- [:with_keep, :without_keep] do
        pid =
          spawn_link(fn ->
            send(parent, {:started, self()})
            start(callback, port, parent)
          end)

        assert_receive {:id, ^pid, id}
        # The handle is in no register and no frame of the second caller any more.
        assert eventually(fn -> Process.info(pid, :status) == {:status, :waiting} end)
        :erlang.suspend_process(pid)
        :erlang.garbage_collect(pid)
        :erlang.resume_process(pid)
        {pid, id}
      end

    for _ <- 1..10, do: Reaper.sweep()
    {kept_pid, kept_id} = kept
    {lost_pid, lost_id} = lost
    refute freed?(kept_id)
    assert freed?(lost_id)

    send(kept_pid, {:go, kept_id})
    send(lost_pid, {:go, lost_id})
    assert eventually(fn -> Reaper.sweep() && freed?(kept_id) end)
  end

  defp start(callback, port, parent) do
    {id, handle} = Handle.new(port, 4)
    send(parent, {:id, self(), id})
    apply(Callback, callback, [handle, port])
  end

  test "memory stays bounded in a loop that drops each result, without a forced collection", %{port: port} do
    for {bytes, n, us, most} <- [{64, 100_000, 8, 50_000}, {1_048_576, 5_000, 100, 2_500}] do
      before = ReaperStress.freed()

      peak =
        elsewhere(fn ->
          for i <- 1..n, reduce: 0 do
            peak ->
              {_, handle} = Handle.new(port, bytes)
              Handle.keep(handle)
              # What an operation on such tensors takes at least.
              spin(us)
              max(peak, i - (ReaperStress.freed() - before))
          end
        end)

      # Far below n, however busy the machine is; what it was stands in the output.
      assert peak < most
      IO.puts("\n#{n} handles of #{bytes} bytes: #{peak} alive at most")
      assert eventually(fn -> ReaperStress.freed() - before >= n end)
    end
  end

  defp spin(us) do
    until = System.monotonic_time(:microsecond) + us
    spin_until(until)
  end

  defp spin_until(until), do: if(System.monotonic_time(:microsecond) < until, do: spin_until(until))

  test "nothing happens while nothing is made", %{port: port} do
    elsewhere(fn -> Handle.new(port, 4) end)
    assert eventually(fn -> Reaper.stats().nursery == 0 and Reaper.asleep?() end)
    passes = Reaper.stats().passes
    Process.sleep(300)
    assert Reaper.stats().passes == passes
  end

  test "when the reaper ends its handles come back, and none is freed early or lost", %{port: port} do
    parent = self()

    holder =
      spawn_link(fn ->
        held = for _ <- 1..600, do: Handle.new(port, 4)
        dropped = for _ <- 1..600, do: elem(Handle.new(port, 4), 0)
        send(parent, {:ids, Enum.map(held, &elem(&1, 0)), dropped})
        receive do: (:drop -> Handle.keep(held))
      end)

    assert_receive {:ids, held, dropped}
    Reaper.sweep()
    reaper = Process.whereis(Reaper)
    Process.exit(reaper, :kill)
    assert eventually(fn -> Process.whereis(Reaper) not in [nil, reaper] end)
    for _ <- 1..5, do: Reaper.sweep()
    refute Enum.any?(held, &freed?/1)
    send(holder, :drop)
    assert eventually(fn -> Reaper.sweep() && Enum.all?(held ++ dropped, &freed?/1) end)
  end

  test "an elder with many live tensors sweeps them at a bounded price", %{port: port} do
    parent = self()

    holder =
      spawn_link(fn ->
        held = for _ <- 1..20_000, do: elem(Handle.new(port, 4), 1)
        send(parent, :made)
        receive do: (:stop -> Handle.keep(held))
      end)

    assert_receive :made, 10_000
    # The wards hand over after their last age.
    assert eventually(fn -> Reaper.wake() && Nursery.size() == 0 && Reaper.stats().old >= 20_000 end, 1_000)
    before = Reaper.stats()
    Reaper.sweep()
    stats = Reaper.stats()

    IO.puts(
      "\nelder: #{div(stats.elder_us - before.elder_us, stats.elder_sweeps - before.elder_sweeps)} us a sweep of 20000"
    )

    assert stats.old >= 20_000
    send(holder, :stop)
    assert eventually(fn -> Reaper.sweep() && Reaper.stats().old < 1_000 end)
  end

  @tag timeout: 600_000
  test "stress: none freed early, none left over" do
    figures = ReaperStress.run(@stress, 8)
    IO.puts("\nstress on OTP #{System.otp_release()}: #{inspect(figures)}")
    assert figures.early == 0
    assert figures.freed == figures.made
    assert figures.freed_while_running > div(figures.made, 2)
    assert figures.checks > figures.made
  end
end

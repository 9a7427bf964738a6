#!/usr/bin/env escript
%% Speaks the wire to nxvk_port from a real BEAM: docs/WIRE.md. Prints the port's process id, then keeps
%% the device busy until it is killed.
-mode(compile).

main([Path]) ->
    Port = open_port({spawn_executable, Path}, [{packet, 4}, binary, exit_status, use_stdio]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    {ok, #{version := 1, epoch := 42, device := #{name := Name}}} = call(Port, {hello, 1, #{epoch => 42}}),
    true = is_binary(Name),
    F32 = fun(L) -> << <<X:32/float-little>> || X <- L >> end,
    cast(Port, {upload, 1, f32, {2, 2}, F32([1, 2, 3, 4])}),
    cast(Port, {op, {add, f32, {2, 2}, []}, [1, {f32, F32([10])}], [2]}),
    cast(Port, {op, {transpose, f32, {2, 2}, #{axes => [1, 0]}}, [2], [3]}),
    cast(Port, {op, {sum, f32, {2}, #{axes => [0], keep_axes => false}}, [3], [4]}),
    Read = fun(Id, N) -> {ok, B} = call(Port, {read, Id, 0, N}), [X || <<X:32/float-little>> <= B] end,
    [11.0, 12.0, 13.0, 14.0] = Read(2, 16),
    [11.0, 13.0, 12.0, 14.0] = Read(3, 16),
    [23.0, 27.0] = Read(4, 8),
    cast(Port, {op, {add, f32, {3}, []}, [1, 1], [5]}),
    {error, #{op := add, reason := bad_op, message := M}} = call(Port, {read, 5, 0, 4}),
    true = is_binary(M),
    {error, #{op := read, reason := unknown_id}} = call(Port, {read, 1000000, 0, 4}),
    port_command(Port, <<1, 2, 3>>),
    receive {Port, {data, <<1, E/binary>>}} -> {log, error, _} = binary_to_term(E) after 10000 -> exit(no_event) end,
    %% A program, on tensors and a scalar.
    Graph = {[{f32, {2, 2}}, {f32, value}],
             [{multiply, f32, {2, 2}, [], [0, 1]}, {dot, f32, {2, 2}, #{contract_a => [1], batch_a => [], contract_b => [0], batch_b => []}, [2, 0]}],
             [3]},
    {ok, {Program, #{steps := _}}} = call(Port, {compile, Graph}),
    cast(Port, {run, Program, [1, {f32, F32([2])}], [6]}),
    [14.0, 20.0, 30.0, 44.0] = Read(6, 16),
    %% 20,000 ops and frees, as fast as they go.
    lists:foreach(fun(I) ->
        cast(Port, {op, {add, f32, {2, 2}, []}, [1, {f32, F32([I])}], [I]}),
        cast(Port, {free, [I]})
    end, lists:seq(1000, 1000 + 20000)),
    {ok, ok} = call(Port, {sync, []}),
    {ok, #{tensors := 5}} = call(Port, stats),
    %% Large tensors by frames, both ways.
    Big = pattern(4 * 1024 * 1024),
    cast(Port, {upload, 7, u8, {byte_size(Big)}, Big}),
    {ok, Big} = call(Port, {read, 7, 0, byte_size(Big)}),
    Iota = {iota, f32, {2048, 2048}, #{axis => 0}},
    cast(Port, {op, Iota, [], [30000]}),
    lists:foreach(fun(I) ->
        cast(Port, {op, {dot, f32, {2048, 2048}, #{contract_a => [1], batch_a => [], contract_b => [0], batch_b => []}}, [I - 1, 30000], [I]})
    end, lists:seq(30001, 30040)),
    {ok, #{}} = call(Port, stats),
    io:format("~b~n", [Pid]),
    receive never -> ok end.

pattern(N) -> binary:copy(list_to_binary(lists:seq(0, 255)), N div 256).

cast(Port, T) -> true = port_command(Port, term_to_binary(T)).

call(Port, R) ->
    Req = erlang:unique_integer([positive]),
    true = port_command(Port, term_to_binary({Req, R})),
    receive
        {Port, {data, <<0, Req:64, Reply/binary>>}} -> binary_to_term(Reply);
        {Port, {exit_status, S}} -> exit({port, S})
    after 60000 -> exit({no_answer, R})
    end.

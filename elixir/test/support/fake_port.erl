%% The wire's test double: a port program without a device, for tests of what stands on the BEAM's side, and for
%% faults that the real program does not commit. It keeps the bytes of its tensors and knows a few operations:
%%
%%   copy    the result is the first operand          fail   the results are marked as failed
%%   log     writes a log event                       fault  reports a lost device
%%   exit    ends with status 3                       kill   kills itself with signal 9
%%   garbage writes a frame of no known form          hang   stops, and reads no more
%%   slow    sleeps 300 ms
%%
%% NXVK_FAKE sets how it greets: version, refuse, silent, exit, garbage, log; or how it goes on: short and full
%% (files).
-module(fake_port).
-export([start/0]).

start() ->
    Port = open_port({fd, 0, 1}, [binary, {packet, 4}, eof]),
    Mode = case os:getenv("NXVK_FAKE") of false -> none; M -> list_to_atom(M) end,
    loop(#{port => Port, mode => Mode, tensors => #{}, parts => #{}, dir => none, threshold => 0,
           casts => 0, freed => 0, files => 0}).

loop(#{port := Port} = S) ->
    receive
        {Port, {data, Frame}} -> loop(handle(binary_to_term(Frame), S));
        {Port, eof} -> erlang:halt(0, [{flush, false}])
    end.

handle({Req, Request}, S) when is_integer(Req) -> call(Request, Req, S);
handle(Cast, #{casts := N} = S) -> cast(Cast, S#{casts := N + 1}).

call({hello, _, _}, _, #{mode := silent} = S) -> S;
call({hello, _, _}, _, #{mode := exit}) -> erlang:halt(7);
call({hello, _, _}, _, #{mode := garbage} = S) -> write(<<"Hello from the driver">>, S);
call({hello, _, _}, Req, #{mode := refuse} = S) -> error(hello, start, <<"no Vulkan device">>, Req, S);
call({hello, _, Options}, Req, #{mode := Mode} = S) ->
    Mode =:= log andalso event({log, warning, <<"a word before the greeting">>}, S),
    Version = case Mode of version -> 2; _ -> 1 end,
    Dir = maps:get(runtime_dir, Options, none),
    ok(#{version => Version, device => #{name => <<"fake">>, class => cpu}, epoch => maps:get(epoch, Options),
         selected => list_to_binary(os:getenv("NXVK_DEVICE", ""))}, Req,
       S#{dir := Dir, threshold := maps:get(bulk_threshold, Options, 0)});
call({read, Id, Offset, Length}, Req, #{tensors := T} = S) ->
    case T of
        #{Id := {failed, Error}} -> reply({error, Error}, Req, S);
        #{Id := {_, _, Bytes}} when Offset + Length =< byte_size(Bytes) ->
            bytes(binary:part(Bytes, Offset, Length), Id, Req, S);
        #{Id := {_, _, Bytes}} ->
            error(read, bounds, iolist_to_binary(io_lib:format("~p bytes", [byte_size(Bytes)])), Req, S);
        #{} -> error(read, freed, iolist_to_binary(io_lib:format("no tensor ~p", [Id])), Req, S)
    end;
call({sync, Ids}, Req, #{tensors := T} = S) ->
    case [E || Id <- Ids, {failed, E} <- [maps:get(Id, T, none)]] of
        [E | _] -> reply({error, E}, Req, S);
        [] -> ok(ok, Req, S)
    end;
call({plan, {Op, _, _, _}, _}, Req, S) -> ok(case Op of copy -> device; _ -> host end, Req, S);
call(stats, Req, #{tensors := T, casts := C, freed := F, files := N} = S) ->
    ok(#{tensors => map_size(T), casts => C, freed => F, files => N}, Req, S);
call({profile, _}, Req, S) -> reply(surprise, Req, S);
call(info, Req, S) ->
    timer:sleep(300),
    ok(#{}, Req, S);
call(_, Req, S) -> error(port, unknown, <<"unknown request">>, Req, S).

bytes(Bytes, _, Req, #{mode := full, threshold := Th} = S) when byte_size(Bytes) >= Th ->
    error('', bad_file, <<"no space left on device">>, Req, S);
bytes(Bytes, Id, Req, #{dir := Dir, threshold := Th, mode := Mode} = S) when Dir =/= none, byte_size(Bytes) >= Th ->
    Name = iolist_to_binary(io_lib:format("rd-~p-~p", [Id, Req])),
    Written = case Mode of short -> binary:part(Bytes, 0, byte_size(Bytes) div 2); _ -> Bytes end,
    ok = file:write_file(filename:join(Dir, Name), Written),
    ok({file, Name, byte_size(Bytes)}, Req, S);
bytes(Bytes, _, Req, S) -> ok(Bytes, Req, S).

cast({upload, Id, Type, Shape, {file, Name, Size}}, #{dir := Dir, tensors := T, files := N} = S) ->
    Path = filename:join(Dir, Name),
    {ok, Bytes} = file:read_file(Path),
    Size = byte_size(Bytes),
    ok = file:delete(Path),
    S#{tensors := T#{Id => {Type, Shape, Bytes}}, files := N + 1};
cast({upload, Id, Type, Shape, Bytes}, #{tensors := T} = S) ->
    S#{tensors := T#{Id => {Type, Shape, binary:copy(Bytes)}}};
cast({upload_part, Id, Type, Shape, Offset, Bytes}, #{parts := P, tensors := T} = S) ->
    {Offset, Parts} = maps:get(Id, P, {0, []}),
    All = {Offset + byte_size(Bytes), [binary:copy(Bytes) | Parts]},
    Whole = 4 * lists:foldl(fun erlang:'*'/2, 1, tuple_to_list(Shape)),
    case All of
        {Whole, List} ->
            S#{parts := maps:remove(Id, P), tensors := T#{Id => {Type, Shape, iolist_to_binary(lists:reverse(List))}}};
        _ -> S#{parts := P#{Id => All}}
    end;
cast({free, Ids}, #{tensors := T, freed := F} = S) ->
    S#{tensors := maps:without(Ids, T), freed := F + length(Ids)};
cast({op, {Op, Type, Shape, _}, Ins, Outs}, S) -> op(Op, Type, Shape, Ins, Outs, S);
cast(Other, S) -> event({log, error, iolist_to_binary(io_lib:format("no request: ~p", [Other]))}, S).

op(copy, Type, Shape, [In | _], Outs, #{tensors := T} = S) ->
    Result = case maps:get(In, T, none) of
        {failed, E} -> {failed, E};
        {_, _, Bytes} -> {Type, Shape, Bytes};
        none -> {failed, #{op => copy, reason => freed, message => <<"no such operand">>}}
    end,
    S#{tensors := maps:merge(T, maps:from_list([{Out, Result} || Out <- Outs]))};
op(fail, _, _, _, Outs, #{tensors := T} = S) ->
    E = #{op => fail, reason => shape, message => <<"fail: it was asked to">>},
    S#{tensors := maps:merge(T, maps:from_list([{Out, {failed, E}} || Out <- Outs]))};
op(log, _, _, _, _, S) -> event({log, warning, <<"a word from the port">>}, S);
op(fault, _, _, _, _, S) -> event({fault, device_lost, <<"vkQueueSubmit: device lost">>}, S);
op(exit, _, _, _, _, _) -> erlang:halt(3);
op(kill, _, _, _, _, _) -> os:cmd("kill -9 " ++ os:getpid()), timer:sleep(infinity);
op(garbage, _, _, _, _, S) -> write(<<"lavapipe says hello">>, S);
op(hang, _, _, _, _, _) -> os:cmd("kill -STOP " ++ os:getpid()), receive never -> ok end;
op(slow, _, _, _, _, S) -> timer:sleep(300), S;
op(Op, _, _, _, Outs, #{tensors := T} = S) ->
    E = #{op => Op, reason => bad_op, message => <<"the double does not know it">>},
    S#{tensors := maps:merge(T, maps:from_list([{Out, {failed, E}} || Out <- Outs]))}.

ok(Value, Req, S) -> reply({ok, Value}, Req, S).
error(Op, Reason, Message, Req, S) -> reply({error, #{op => Op, reason => Reason, message => Message}}, Req, S).
reply(Term, Req, S) -> write([<<0, Req:64>>, term_to_binary(Term)], S).
event(Term, S) -> write([1, term_to_binary(Term)], S).
write(Data, #{port := Port} = S) -> port_command(Port, Data), S.

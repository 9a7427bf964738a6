#!/usr/bin/env escript
-mode(compile).
%% The Erlang side of TestErlang.
%%   make N FILE       writes N random terms, each in a random encoding
%%   same FILE FILE    holds two files of encoded terms against each other, term by term
%%   echo FILE FILE    decodes each term and encodes it again
main(["make", N, File]) ->
    rand:seed(exsss, {1, 2, 3}),
    {ok, F} = file:open(File, [write, raw, binary, delayed_write]),
    lists:foreach(fun(_) -> put_frame(F, encode(term(rand:uniform(5)))) end, lists:seq(1, list_to_integer(N))),
    ok = file:close(F);
main(["same", A, B]) ->
    {ok, X} = file:read_file(A),
    {ok, Y} = file:read_file(B),
    io:format("~p~n", [same(X, Y, 0)]);
main(["echo", A, B]) ->
    rand:seed(exsss, {4, 5, 6}),
    {ok, X} = file:read_file(A),
    {ok, F} = file:open(B, [write, raw, binary, delayed_write]),
    echo(X, F),
    ok = file:close(F).

put_frame(F, Bin) -> ok = file:write(F, [<<(byte_size(Bin)):32>>, Bin]).

same(<<>>, <<>>, N) -> {ok, N};
same(<<L:32, A:L/binary, X/binary>>, <<M:32, B:M/binary, Y/binary>>, N) ->
    S = binary_to_term(A),
    case binary_to_term(B) of
        T when S =:= T -> same(X, Y, N + 1);
        T -> {differ, N, S, T, A, B}
    end.

echo(<<>>, _) -> ok;
echo(<<L:32, A:L/binary, X/binary>>, F) ->
    put_frame(F, encode(binary_to_term(A))),
    echo(X, F).

encode(T) ->
    case rand:uniform(6) of
        1 -> term_to_binary(T, [compressed]);
        2 -> term_to_binary(T, [{minor_version, 0}]);
        3 -> term_to_binary(T, [{minor_version, 2}]);
        4 -> term_to_binary(T, [{compressed, 9}, {minor_version, 1}]);
        _ -> term_to_binary(T)
    end.

term(Depth) when Depth > 0 ->
    case rand:uniform(14) of
        1 -> list_to_tuple(many(6, Depth));
        2 -> many(6, Depth);
        3 -> maps:from_list([{term(Depth - 1), term(Depth - 1)} || _ <- lists:seq(1, rand:uniform(5))]);
        4 -> many(4, Depth) ++ leaf();
        5 -> {op, {add, f32, {2, 3}, []}, [rand:uniform(1000), {f32, <<1, 2, 3, 4>>}], [rand:uniform(1 bsl 40)]};
        6 -> [term(Depth - 1) | term(Depth - 1)];
        7 -> X = term(Depth - 1), fun(Y) -> {X, Y} end;
        _ -> leaf()
    end;
term(_) -> leaf().

many(N, Depth) -> [term(Depth - 1) || _ <- lists:seq(1, rand:uniform(N))].

leaf() ->
    case rand:uniform(24) of
        1 -> rand:uniform(256) - 1;
        2 -> rand:uniform(1 bsl 32) - (1 bsl 31);
        3 -> edge() + rand:uniform(5) - 3;
        4 -> sign() * big(rand:uniform(16));
        5 -> sign() * big(rand:uniform(300));
        6 -> sign() * rand:normal() * math:pow(10, rand:uniform(600) - 300);
        7 -> float(rand:uniform(10)) * sign();
        8 -> lists:nth(rand:uniform(6), [ok, true, false, nil, '', 'with space']);
        9 -> list_to_atom("a" ++ integer_to_list(rand:uniform(2000)));
        10 -> list_to_atom(lists:duplicate(rand:uniform(120), $x) ++ [16#e9]);
        11 -> list_to_atom([16#4e2d, 16#1f600 + rand:uniform(60)]);
        12 -> list_to_atom(lists:duplicate(200 + rand:uniform(55), 16#e9));
        13 -> rand:bytes(rand:uniform(40) - 1);
        14 -> rand:bytes(rand:uniform(2000));
        15 -> B = rand:uniform(200), <<(rand:uniform(1 bsl B)):B>>;
        16 -> [];
        17 -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(40))];
        18 -> make_ref();
        19 -> self();
        20 -> hd(erlang:ports());
        21 -> fun lists:map/2;
        22 -> list_to_tuple(lists:seq(1, 250 + rand:uniform(20)));
        23 -> lists:duplicate(rand:uniform(300), $z);
        24 -> #{}
    end.

sign() -> case rand:uniform(2) of 1 -> 1; 2 -> -1 end.
edge() -> sign() * (1 bsl lists:nth(rand:uniform(7), [7, 8, 31, 32, 59, 63, 64])).
big(Bytes) -> binary:decode_unsigned(rand:bytes(Bytes)).

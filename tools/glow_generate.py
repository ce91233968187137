"""`glow-generate`: continue a text, chat, embed or rank texts, or transcribe sound, with a model's files."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from glow_mlir.tools.arguments.generate_arguments import PROGRAM, parse_arguments, sampling_of
from glow_mlir.tools.arguments.generator_arguments import opened_embedder, opened_generator, opened_transcriber
from glow_mlir.tools.command_line import EXIT_OK, is_terminal, run_tool
from glow_mlir.tools.inputs.text_files import text_of

if TYPE_CHECKING:
    from glow_mlir.generation.generator import Generator, Message, Prompt

SIGN = "> "
"""What asks for a message in a terminal."""


def run(arguments: list[str]) -> int:
    """Load the model, then answer one prompt, or messages until the input ends."""
    args = parse_arguments(arguments)
    if args.embed is not None or args.rank is not None:
        print_vectors(args)
        return EXIT_OK
    if args.audio is not None:
        print_transcription(args)
        return EXIT_OK
    sampling = sampling_of(args)
    text: str | None = args.prompt if args.prompt_file is None else text_of(args.prompt_file)
    if args.json_schema_file is not None:
        args.json_schema = text_of(args.json_schema_file)
    generator = opened_generator(args.model, args, None if args.adapter is None else {args.adapter: args.adapter})
    system: list[Message] = [] if args.system is None else [{"role": "system", "content": args.system}]
    if args.chat is not None:
        answer(generator, [*system, {"role": "user", "content": args.chat}], args, sampling)
    elif text is not None:
        print(text, end="")
        answer(generator, text, args, sampling)
    else:
        chat(generator, system, args, sampling)
    return EXIT_OK


def print_vectors(args: Namespace) -> None:
    """Print a line of JSON for each text: its vector, or its score for a query."""
    embedder = opened_embedder(args.model, args, pooling=args.pooling)
    query, *documents = args.rank or ("", *args.embed)
    texts = [line for text in documents for line in (sys.stdin.read().splitlines() if text == "-" else [text])]
    if args.rank is not None:
        for text, score in zip(texts, embedder.rank(query, texts, truncate=args.truncate).tolist(), strict=True):
            print(json.dumps({"text": text, "score": score}, ensure_ascii=False))
        return
    vectors = embedder.embed(texts, dimensions=args.dimensions, truncate=args.truncate)
    for text, vector in zip(texts, vectors, strict=True):
        numbers = [float(f"{item:.9g}") for item in vector]  # As many digits as f32 needs.
        print(json.dumps({"text": text, "embedding": numbers}, ensure_ascii=False))


def print_transcription(args: Namespace) -> None:
    """Print what is said in a sound: its text, or a line for each segment."""
    beams = args.num_beams or 1
    transcriber = opened_transcriber(args.model, args, beams)
    form = {name: getattr(args, name) for name in ("language", "task", "max_tokens")}
    form["timestamps"] = args.timestamps or None
    penalty = 1.0 if args.length_penalty is None else args.length_penalty
    begin = perf_counter()
    found = transcriber.transcribe(args.audio, num_beams=beams, length_penalty=penalty, **form)
    for segment in found.segments if args.timestamps else ():
        print(f"[{segment.start:.2f} - {segment.end:.2f}]{segment.text}")
    if not args.timestamps:
        print(found.text.strip())
    if args.timings:
        took = perf_counter() - begin
        print(f"{len(found.tokens)} tokens of {found.segments[-1].end:.1f} s in {took:.2f} s", file=sys.stderr)


def answer(generator: Generator, prompt: Prompt, args: Namespace, sampling: dict[str, Any]) -> str:
    """Print the continuation of a prompt as it is computed; returns its text."""
    begin, first = perf_counter(), 0.0
    names = ("max_tokens", "stop", "ignore_end", "context_shift", "keep", "adapter")
    form = {name: getattr(args, name) for name in names}
    with generator.stream(prompt, **form, schema=args.json_schema, **sampling) as generation:
        for piece in generation:
            first = first or perf_counter()
            print(piece.text, end="", flush=True)
        completion = generation.completion
    print(flush=True)
    if args.timings:
        computed = completion.prompt_tokens - completion.reused_tokens
        steps, end = len(completion.choices) - 1, perf_counter()
        rate = f", then {steps / (end - first):.1f} a second" if steps > 0 else ""
        took = (first or end) - begin
        print(f"{computed} tokens of the prompt in {took:.2f} s{rate}", file=sys.stderr)
    return completion.text


def chat(generator: Generator, system: list[Message], args: Namespace, sampling: dict[str, Any]) -> None:
    """Answer the lines of stdin; each message follows the ones before."""
    messages = list(system)
    while True:
        if is_terminal(sys.stdin) and is_terminal(sys.stdout):
            print(SIGN, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if not line.strip():
            continue
        messages.append({"role": "user", "content": line.rstrip("\n")})
        messages.append({"role": "assistant", "content": answer(generator, messages, args, sampling)})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-generate`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())

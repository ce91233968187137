"""`glow-generate`: continue a text, or chat, with a decoder in a GGUF file or a folder of a checkpoint."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from glow_mlir.tools.arguments.generate_arguments import PROGRAM, parse_arguments, sampling_of
from glow_mlir.tools.arguments.generator_arguments import opened_generator
from glow_mlir.tools.command_line import EXIT_OK, is_terminal, run_tool
from glow_mlir.tools.inputs.text_files import text_of

if TYPE_CHECKING:
    from glow_mlir.generation.generator import Generator, Message, Prompt

SIGN = "> "
"""What asks for a message in a terminal."""


def run(arguments: list[str]) -> int:
    """Load the model, then answer one prompt, or messages until the input ends."""
    args = parse_arguments(arguments)
    sampling = sampling_of(args)
    text: str | None = args.prompt if args.prompt_file is None else text_of(args.prompt_file)
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


def answer(generator: Generator, prompt: Prompt, args: Namespace, sampling: dict[str, Any]) -> str:
    """Print the continuation of a prompt as it is computed; returns its text."""
    begin, first = perf_counter(), 0.0
    form = {name: getattr(args, name) for name in ("max_tokens", "stop", "ignore_end", "context_shift", "keep", "adapter")}
    with generator.stream(prompt, **form, **sampling) as generation:
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

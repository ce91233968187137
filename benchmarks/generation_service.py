"""
What users of a language model wait for, on one core or several: many clients, first tokens, gaps, drafts and schemas.

    python benchmarks/generation_service.py model.gguf
    python benchmarks/generation_service.py model.gguf --only clients gaps --threads 2

Times are wall-clock, so nothing else may run. Each measurement is taken several times, and the least one counts; ratios
are printed beside the times that they are of. The model has to have a template for chats.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import glow_mlir
from contest.machine import add_core, cores_from, machine, stay_on
from glow_mlir.tools.arguments.bounded_numbers import count

TOKENS = 48
"""The number of new tokens of a request."""

ROUNDS = 3

CLIENTS = (4, 8, 16)

PREFIX, PROMPT = 2000, 2048
"""The tokens of a prefix that repeats, and of a prompt that comes while others run."""

WORDS = "the light of an old house by the sea was seen from far away when no ship came home that year".split()


def text(words: int, seed: int) -> str:
    """Random words."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


def prompt_of(generator: glow_mlir.Generator, tokens: int, seed: int) -> list[int]:
    """A prompt of that many tokens."""
    return generator.tokens_of(text(tokens * 2, seed))[:tokens]


def stamps(generator: glow_mlir.Generator, prompt: Any, tokens: int = TOKENS, **options: Any) -> list[float]:
    """The times at which the tokens of a continuation are there, from its beginning on, in seconds."""
    begin, found = time.perf_counter(), list[float]()
    options = {"temperature": 0, "ignore_end": True, **options}
    for piece in generator.stream(prompt, max_tokens=tokens, **options):
        found += [time.perf_counter() - begin] * len(piece.choices)
    return found


def gaps(times: Sequence[float]) -> list[float]:
    """The times between tokens."""
    return [later - earlier for earlier, later in pairwise(times)]


def least(measure: Callable[[int], float]) -> float:
    """The least of some rounds; each gets its number."""
    return min(measure(number) for number in range(ROUNDS))


def together(generator: glow_mlir.Generator, clients: int, seed: int) -> tuple[float, list[list[float]]]:
    """The seconds in which that many clients get their tokens, and the times of each."""
    prompts = [prompt_of(generator, 16, seed * 1000 + number) for number in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        begin = time.perf_counter()
        found = list(threads.map(lambda prompt: stamps(generator, prompt), prompts))
        return time.perf_counter() - begin, found


def clients(generator: glow_mlir.Generator) -> None:
    """Tokens a second of several clients over those of one, and the time between tokens."""
    alone = [together(generator, 1, 1 + number) for number in range(ROUNDS)]
    one = TOKENS / min(seconds for seconds, _ in alone)
    step = min(_decoding(times[0]) for _, times in alone) / (TOKENS - 1)
    print(f"one client: {one:.1f} tokens a second, {step * 1e3:.1f} ms between tokens")
    for number in CLIENTS:
        runs = [together(generator, number, 10 + number + each) for each in range(ROUNDS)]
        rate = number * TOKENS / min(seconds for seconds, _ in runs)
        between = min(statistics.mean(map(_decoding, times)) for _, times in runs) / (TOKENS - 1)
        print(
            f"{number} clients: {rate:.1f} tokens a second, {rate / one:.2f} times; between tokens {between / step:.2f}"
        )


def first(generator: glow_mlir.Generator) -> None:
    """The time to the first token of short prompts, and of a prompt whose prefix was computed before."""
    short = least(lambda number: stamps(generator, prompt_of(generator, 16, 100 + number), 1)[0])
    print(f"first token of a prompt of 16: {short * 1e3:.1f} ms")
    cold, warm = list[float](), list[float]()
    for number in range(ROUNDS):
        prefix = prompt_of(generator, PREFIX, 200 + number)
        cold.append(stamps(generator, [*prefix, 5], 1)[0])
        warm.append(stamps(generator, [*prefix, 7], 1)[0])
    known = f"{min(warm) * 1e3:.1f} where they are known, 1/{min(cold) / min(warm):.0f}"
    print(f"first token behind {PREFIX}: {min(cold) * 1e3:.0f} ms, {known}")


def arriving(generator: glow_mlir.Generator) -> None:
    """The longest gap of a stream while a long prompt is computed."""
    worst = list[float]()
    for number in range(ROUNDS):
        with ThreadPoolExecutor(2) as threads:
            running = threads.submit(stamps, generator, prompt_of(generator, 16, 300 + number), 6 * TOKENS)
            time.sleep(0.3)
            late = threads.submit(stamps, generator, prompt_of(generator, PROMPT, 400 + number), 1)
            worst.append(max(gaps(running.result())))
            late.result()
    print(f"longest gap while a prompt of {PROMPT} arrives: {', '.join(f'{gap * 1e3:.0f}' for gap in worst)} ms")


def drafts(generator: glow_mlir.Generator, drafting: glow_mlir.Generator) -> None:
    """The speed with drafts by look-up over that without: on an edit, and where nothing repeats."""
    lines = "\n".join(f"    value_{number} = compute_{number}(first, second, {number})" for number in range(60))
    edit = f"{lines}\n\nThe same lines, with `first` called `left`:\n\n{lines[:200]}"
    for name, prompt, tokens in (("edit", edit, 400), ("story", "Once upon a time", 200)):
        plain, quick = list[float](), list[float]()
        for number in range(ROUNDS):
            salt = str(number)
            ours = drafting.stream(prompt, max_tokens=tokens, temperature=0, ignore_end=True, salt=salt).completion
            theirs = generator.stream(prompt, max_tokens=tokens, temperature=0, ignore_end=True, salt=salt).completion
            assert ours.tokens == theirs.tokens
            plain.append(_decoding(stamps(generator, prompt, tokens, salt=salt)))
            quick.append(_decoding(stamps(drafting, prompt, tokens, salt=salt)))
        print(f"drafts, {name}: {min(plain) / min(quick):.2f} times the speed, equal tokens")


def _decoding(times: Sequence[float]) -> float:
    """The time of all tokens behind the first one."""
    return times[-1] - times[0]


def schemas(generator: glow_mlir.Generator) -> None:
    """The time of a token within a schema over that without."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": 40} for name in ("name", "city", "story", "reason")},
        "required": ["name", "city", "story", "reason"],
        "additionalProperties": False,
    }
    question = [{"role": "user", "content": "Tell of a person."}]
    ratios = list[float]()
    for number in range(ROUNDS):
        options: dict[str, Any] = {"ignore_end": False, "temperature": 1.0, "seed": number}
        bound = stamps(generator, question, 60, schema=schema, **options)
        free = stamps(generator, question, len(bound), **{**options, "ignore_end": True})
        ratios.append(statistics.median(gaps(bound)) / statistics.median(gaps(free)))
    print(f"a token within a schema takes {min(ratios):.3f} times the time of one without")


MEASURES: Mapping[str, Callable[[glow_mlir.Generator], None]] = {
    "clients": clients,
    "first": first,
    "gaps": arriving,
    "schemas": schemas,
}
"""Name → what measures and prints it; drafts have a second generator."""


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .gguf file, or a folder of safetensors")
    known = [*MEASURES, "drafts"]
    parser.add_argument("--only", nargs="+", choices=known, default=known, help="what to measure (all)")
    parser.add_argument("--threads", type=count, default=1, help="threads of a call (1)")
    parser.add_argument("--context", type=count, default=4096, help="tokens of a sequence (4096)")
    add_core(parser, "the first core to run on")
    options = parser.parse_args()
    stay_on(cores_from(options.core, options.threads))
    shared: dict[str, Any] = {"context": options.context, "threads": options.threads}
    generator = glow_mlir.Generator(options.model, parallel=max(CLIENTS), **shared)
    stamps(generator, prompt_of(generator, 16, 0))
    print(f"{Path(options.model).name}, threads: {options.threads}, on {machine()}")
    for name in options.only:
        if name == "drafts":
            drafts(generator, glow_mlir.Generator(options.model, parallel=1, speculation=8, **shared))
        else:
            MEASURES[name](generator)


if __name__ == "__main__":
    main()

"""
Token after token of a decoder whose keys and values grow: one compilation beside ONNX Runtime.

    python benchmarks/decoding.py
    python benchmarks/decoding.py --form operator --tokens 128

A decoder like GPT-2 of 4 layers makes 1 to 512 tokens, each from the keys and values that the call before gave. Both
take turns, in one process and on one core, and results are compared at each token.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from growing_decoder import FORMS, growing_decoder

from contest.machine import add_core, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count, ranged

LAYERS, WIDTH, HEADS, VOCABULARY, MOST = 4, 512, 8, 8000, 512

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]


class Turn:
    """One of the two engines: what it keeps from call to call, and how long each call took."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._names = [f"{word}{layer}" for layer in range(LAYERS) for word in ("keys", "values")]
        self.begin()

    def begin(self) -> None:
        """Forget all tokens."""
        self._kept = {name: np.zeros((1, HEADS, 0, WIDTH // HEADS), np.float32) for name in self._names}
        self.seconds: list[float] = []

    def token(self, number: int) -> np.ndarray:
        """The logits for the next token after this one."""
        begin = time.perf_counter()
        logits, *kept = self._run({"ids": np.array([[number]]), **self._kept})
        self.seconds.append(time.perf_counter() - begin)
        self._kept = dict(zip(self._names, kept, strict=True))
        return logits


def engines(form: str) -> tuple[Turn, Turn]:
    """Ours, with one compilation for any number of tokens before, and ONNX Runtime."""
    model = growing_decoder(
        form, layers=LAYERS, width=WIDTH, heads=HEADS, vocabulary=VOCABULARY, most=MOST
    ).SerializeToString()
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    theirs = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    ours = InferenceSession(model, threads=1, dimensions={"past": (0, MOST - 1), "tokens": 1})
    return Turn(lambda inputs: ours.run(None, inputs)), Turn(lambda inputs: theirs.run(None, inputs))


def row(name: str, ours: list[float], theirs: list[float]) -> str:
    """A line of the table: medians of the tokens, over the rounds the least of each."""
    one, other = median(ours), median(theirs)
    least = f"{1e3 * min(ours):.3f} | {1e3 * min(theirs):.3f}"
    return f"| {name} | {1e3 * one:.3f} | {1e3 * other:.3f} | {least} | {other / one:.2f} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", default="comparison", choices=FORMS, help="how the model says attention")
    some = ranged(int, 1, MOST, f"a whole number from 1 to {MOST}")
    parser.add_argument("--tokens", type=some, default=MOST, help=f"tokens of a round ({MOST})")
    parser.add_argument("--rounds", type=count, default=3, help="sequences of tokens (3)")
    add_core(parser)
    options = parser.parse_args()
    stay_on([options.core])
    generator = np.random.default_rng(0)
    tokens = options.tokens
    turns = engines(options.form)
    rounds: list[list[list[float]]] = []
    for _ in range(options.rounds):
        for turn in turns:
            turn.begin()
        for number in cast("list[int]", generator.integers(0, VOCABULARY, tokens).tolist()):
            ours, theirs = (turn.token(number) for turn in turns)
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
        rounds.append([turn.seconds for turn in turns])
    least = [[min(times) for times in zip(*(part[engine] for part in rounds), strict=True)] for engine in (0, 1)]
    print(f"{machine()}, {options.rounds} rounds, ms per token\n")
    print("| tokens | ours | ONNX Runtime | ours, least | ONNX Runtime, least | ONNX Runtime / ours |")
    print("|---|---|---|---|---|---|")
    for begin in range(0, tokens, 128):
        end = min(begin + 128, tokens)
        print(row(f"{begin + 1} to {end}", *(part[begin:end] for part in least)))
    print(row("all", *least))


if __name__ == "__main__":
    main()

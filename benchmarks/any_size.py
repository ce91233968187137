"""
Models with free dimensions that nobody bounds: what the first call, a second size and code for a range of sizes take.

    python benchmarks/any_size.py
    python benchmarks/any_size.py --rounds 5 --only decoder

The first answer is that of a session, beside one whose calls wait for code for their sizes (`warm="specialised"`), in
seconds, in turns, the median: another process compiles. Then the model is compiled for a range of sizes, and as many
seconds behind the first answer there is code for it. The second size is one that nothing is compiled for, in
milliseconds of CPU of the caller: the first call, and the median of those that follow. Speed is the time of code for
the size over that of code for the range; and *after*, that of code for the size over that of what has taken over.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from beside_calls import settle
from growing_decoder import growing_decoder
from models import bert_encoder, mobilenet_v2, resnet18

from contest.machine import machine
from glow_mlir import InferenceSession, SpecializationLimits
from glow_mlir.tools.arguments.bounded_numbers import count

Arrays = Mapping[str, np.ndarray]

CALLS = 15
"""Calls of each kind that speed is the median of."""


@dataclass(frozen=True)
class Case:
    """A model of free dimensions, and inputs of two sizes."""

    model: Callable[[], onnx.ModelProto]
    first: Arrays
    second: Arrays


def images(model: onnx.ModelProto) -> onnx.ModelProto:
    """A network of images with free batch, height and width."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.value_info[:]
    for value in (*found.graph.input, *found.graph.output):
        sizes = value.type.tensor_type.shape.dim
        for size, name in zip((sizes[0], *sizes[2:]), ("batch", "height", "width"), strict=False):
            size.dim_param = name
    return found


def image(batch: int, size: int) -> Arrays:
    """Images of noise."""
    return {"input": np.random.default_rng(0).normal(size=(batch, 3, size, size)).astype(np.float32)}


def text(batch: int, length: int) -> Arrays:
    """Sequences of tokens."""
    shape = (batch, length)
    return {"ids": np.random.default_rng(0).integers(0, 1000, shape), "mask": np.ones(shape, np.int64)}


def step(past: int, tokens: int) -> Arrays:
    """New tokens, and the keys and values of those before."""
    generator = np.random.default_rng(0)
    names = (f"{kind}{layer}" for layer in range(2) for kind in ("keys", "values"))
    kept = {name: generator.normal(size=(1, 2, past, 16)).astype(np.float32) for name in names}
    return {"ids": generator.integers(0, 50, (1, tokens)), **kept}


CASES: Mapping[str, Case] = {
    "encoder": Case(lambda: bert_encoder(is_free=True, length=512), text(1, 17), text(2, 33)),
    "decoder": Case(lambda: growing_decoder("comparison"), step(4, 3), step(7, 1)),
    "resnet18": Case(lambda: images(resnet18()), image(1, 224), image(1, 192)),
    "mobilenet_v2": Case(lambda: images(mobilenet_v2()), image(1, 224), image(1, 256)),
}


def thread_seconds(work: Callable[[], object]) -> float:
    """The CPU that this thread takes for something."""
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def first_answer(content: bytes, inputs: Arrays, warm: str | None) -> tuple[InferenceSession, float]:
    """A session, and what it takes until its first answer."""
    found: list[InferenceSession] = []

    def begin() -> None:
        limits = SpecializationLimits(threshold=CALLS + 2)
        found.append(InferenceSession(content, cache=False, threads=1, warm=warm, limits=limits))
        found[0].run(None, inputs)

    start = time.perf_counter()
    begin()
    return found[0], time.perf_counter() - start


def in_turns(sessions: Mapping[str, InferenceSession], inputs: Arrays) -> dict[str, float]:
    """The median time of a call of each session."""
    found: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(CALLS):
        for name, session in sessions.items():
            found[name].append(thread_seconds(lambda session=session: session.run(None, inputs)))
    return {name: median(seconds) for name, seconds in found.items()}


def row(name: str, case: Case, rounds: int) -> str:
    """The line of a model."""
    content = case.model().SerializeToString()
    kept, _ = first_answer(content, case.first, "specialised")  # What imports take is no matter here.
    firsts: dict[str | None, list[float]] = {None: [], "specialised": []}
    behind: list[float] = []
    seconds: list[float] = []
    for _ in range(rounds):
        for warm, taken in firsts.items():
            session, spent = first_answer(content, case.first, warm)
            taken.append(spent)
            begin = time.perf_counter()
            settle(600)
            if warm is None:
                behind.append(time.perf_counter() - begin)
                kept = session
                seconds.append(thread_seconds(lambda session=session: session.run(None, case.second)))
    special, _ = first_answer(content, case.second, "specialised")
    sessions = {"range": kept, "special": special}
    before = in_turns(sessions, case.second)
    for _ in range(CALLS):
        kept.run(None, case.second)
    settle(600)
    after = in_turns(sessions, case.second)
    ours, today = (median(taken) for taken in firsts.values())
    cells = (
        f"{ours:.2f} / {today:.2f}",
        f"{median(behind):.2f}",
        f"{1e3 * median(seconds):.2f}, {1e3 * before['range']:.2f}",
        f"{before['special'] / before['range']:.2f}",
        f"{after['special'] / after['range']:.2f}",
    )
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure the models and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=count, default=3, help="sessions of each kind (3)")
    parser.add_argument("--only", default="", choices=["", *CASES], help="the model to measure")
    options = parser.parse_args()
    print(f"{machine()}; the median of {options.rounds} sessions, and of {CALLS} calls\n")
    print("| model | first answer / specialised, s | range behind it, s | second size, ms | speed before | after |")
    print("|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if options.only in ("", name):
            print(row(name, case, options.rounds), flush=True)


if __name__ == "__main__":
    main()

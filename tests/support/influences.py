"""Samples of a batch for themselves: one of them is replaced, and the bits of all others have to stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]

REPLACEMENTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "large": lambda array: array * np.float32(1e4),
    "huge": lambda array: array * np.float32(1e30),
    "tiny": lambda array: array * np.float32(1e-42),
    "infinite": lambda array: np.full_like(array, np.inf),
    "no number": lambda array: np.full_like(array, np.nan),
}
"""What a sample of floats is replaced by; whole numbers are replaced by zeros."""

REPLACED = 1
"""Which sample is replaced."""


def replaced(array: np.ndarray, kind: str, axis: int) -> np.ndarray:
    """An input with another sample, along its axis of samples."""
    after = array.copy()
    place = (slice(None),) * axis + (REPLACED,)
    with np.errstate(over="ignore"):
        after[place] = REPLACEMENTS[kind](np.asarray(after[place])) if array.dtype.kind == "f" else 0
    return after


def influences(run: Callable[[Arrays], Arrays], inputs: Arrays, axis: int = 0) -> list[str]:
    """
    How samples see another one: the outputs in which other samples change, with what the one was replaced by.

    All inputs and outputs have the batch along `axis`.
    """
    before = {name: array.copy() for name, array in run(inputs).items()}
    found: list[str] = []
    for kind in REPLACEMENTS:
        after = run({name: replaced(array, kind, axis) for name, array in inputs.items()})
        for name, array in before.items():
            others = [sample for sample in range(array.shape[axis]) if sample != REPLACED]
            kept, now = (np.take(result, others, axis) for result in (array, after[name]))
            if kept.tobytes() != now.tobytes():
                found.append(f"{name}: the samples beside one that is {kind}")
    return found

"""Kernels of recurrences, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import check, runnable_targets, sample
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from glow_mlir.dialects.glow_high.recurrence import GruRecurrenceOp, LstmRecurrenceOp, RnnRecurrenceOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp

SIZES = [(3, 1, 8), (4, 7, 19), (2, 4, 33)]
"""Steps, batch, hidden units."""


def half(*shape: int, dtype: str = "f4") -> np.ndarray:
    """Random elements about 0, small enough that no gate is always open or shut."""
    return (sample(shape, dtype) * 0.5).astype(dtype)


def run(gates: int, sizes: tuple[int, int, int], dtype: str = "f4") -> list[np.ndarray]:
    """Input of the gates, weights and the initial state."""
    steps, batch, hidden = sizes
    shapes = ((steps, batch, gates * hidden), (hidden, gates * hidden), (batch, hidden))
    return [half(*shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_recurrences(sizes: tuple[int, int, int], has_lengths: bool, reverse: bool):
    steps, batch, hidden = sizes
    lengths = np.arange(batch, dtype=np.int32) % (steps + 1) if has_lengths else None
    check(LstmRecurrenceOp, *run(4, sizes), half(batch, hidden), None, lengths, reverse=reverse)
    for bias in (None, half(hidden)):
        check(GruRecurrenceOp, *run(3, sizes), bias, lengths, reverse=reverse)
    check(RnnRecurrenceOp, *run(1, sizes), lengths, reverse=reverse)


def test_options():
    sizes = (3, 2, 5)
    cell, peepholes = half(2, 5), half(15)
    check(LstmRecurrenceOp, *run(4, sizes), cell, peepholes, None, clip=0.3, input_forget=True)
    relu = ArrayAttr([StringAttr("relu")])
    check(RnnRecurrenceOp, *run(1, sizes), activations=relu)


def test_element_types():
    check(LstmRecurrenceOp, *run(4, (3, 5, 7), "f8"), half(5, 7, dtype="f8"))
    check(GruRecurrenceOp, *run(3, (3, 2, 7), "f2"), tolerance=5e-3)


@pytest.mark.parametrize("options", [{}, {"direction": "bidirectional"}, {"batch_first": True}])
def test_layers(options: dict[str, Any]):
    directions = 2 if options.get("direction") == "bidirectional" else 1
    x = half(3, 2, 6)
    check(LstmOp, x, half(directions, 20, 6), half(directions, 20, 5), half(directions, 40), **options)
    check(GruOp, x, half(directions, 15, 6), half(directions, 15, 5), half(directions, 30), **options)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(LstmRecurrenceOp, *run(4, (2, 6, 37)), half(6, 37), target=target)

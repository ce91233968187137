"""Kernels of recurrences, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import check, runnable_targets, sample
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers
from packed import laid_out
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from glow_mlir.constants.layouts import gate_blocks
from glow_mlir.dialects.glow_high.recurrence import (
    GruRecurrenceOp,
    GruRecurrenceWithSumsOp,
    LstmRecurrenceOp,
    LstmRecurrenceWithSumsOp,
    RnnRecurrenceOp,
    RnnRecurrenceWithSumsOp,
)
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp

SIZES = [(3, 1, 8), (4, 7, 19), (2, 4, 33), (3, 1, 70), (4, 1, 129)]
"""Steps, batch, hidden units: whole blocks of the weights and what remains, one row and several."""


def half(*shape: int, dtype: str = "f4") -> np.ndarray:
    """Random elements about 0, small enough that no gate is always open or shut."""
    return (sample(shape, dtype) * 0.5).astype(dtype)


def run(gates: int, sizes: tuple[int, int, int], dtype: str = "f4") -> list[np.ndarray]:
    """Input of the gates, weights, with which differences do not grow from step to step, and the initial state."""
    steps, batch, hidden = sizes
    weights = half(hidden, gates * hidden, dtype=dtype) * (1 + hidden) ** -0.5
    return [half(steps, batch, gates * hidden, dtype=dtype), weights.astype(dtype), half(batch, hidden, dtype=dtype)]


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


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("sizes", [(3, 1, 19), (4, 7, 33)])
def test_sums_are_kept(sizes: tuple[int, int, int], dtype: str, has_lengths: bool, reverse: bool):
    steps, batch, hidden = sizes
    lengths = np.arange(batch, dtype=np.int32) % (steps + 1) if has_lengths else None
    options: dict[str, Any] = {"reverse": reverse, "tolerance": 5e-3 if dtype == "f2" else None}
    cell, peepholes = half(batch, hidden, dtype=dtype), half(3 * hidden, dtype=dtype)
    check(LstmRecurrenceWithSumsOp, *run(4, sizes, dtype), cell, peepholes, lengths, **options)
    for bias in (None, half(hidden, dtype=dtype)):
        check(GruRecurrenceWithSumsOp, *run(3, sizes, dtype), bias, lengths, **options)
    check(RnnRecurrenceWithSumsOp, *run(1, sizes, dtype), lengths, **options)


def test_steps_behind_the_end_are_not_looked_at():
    """Lengths may be those of longer sequences, or below 0, in any order; NaN behind the end stays there."""
    steps, batch, hidden = 5, 6, 20
    lengths = np.array([2, 9, 0, 5, -3, 4], np.int32)
    inputs, weights, state = run(4, (steps, batch, hidden))
    for n, length in enumerate(lengths):
        inputs[max(length, 0) :, n] = np.nan
    check(LstmRecurrenceWithSumsOp, inputs, weights, state, state, half(3 * hidden), lengths)


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


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("hidden", [37, 64])
@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str, hidden: int, batch: int):
    sizes = (2, batch, hidden)
    check(LstmRecurrenceOp, *run(4, sizes), half(batch, hidden), target=target)
    check(GruRecurrenceOp, *run(3, sizes), target=target)
    check(GruRecurrenceOp, *run(3, sizes), half(hidden), target=target)
    check(RnnRecurrenceOp, *run(1, sizes), target=target)


def test_rows_of_a_panel_together():
    """Units fill panels, and rows of them steps, or leave some over; weights are read forwards in all steps."""
    target, sizes = "scalar,costs.unrolled_cells=4,costs.row_sums=16", (3, 1, 7)
    check(LstmRecurrenceOp, *run(4, sizes), half(1, 7), target=target)
    for bias in (None, half(7)):
        check(GruRecurrenceOp, *run(3, sizes), bias, reverse=True, target=target)
    check(RnnRecurrenceOp, *run(1, (2, 1, 16)), target=target)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("sizes", [(3, 1, 33), (2, 3, 20)])
def test_constant_weights(sizes: tuple[int, int, int], dtype: str):
    """They are packed at compile time."""
    _, batch, hidden = sizes
    options: dict[str, Any] = {"constants": [1], "tolerance": 5e-3 if dtype == "f2" else None}
    check(LstmRecurrenceOp, *run(4, sizes, dtype), half(batch, hidden, dtype=dtype), **options)
    for bias in (None, half(hidden, dtype=dtype)):
        check(GruRecurrenceOp, *run(3, sizes, dtype), bias, **options)
    check(RnnRecurrenceOp, *run(1, sizes, dtype), **options)


@pytest.mark.parametrize(("gates", "together"), [(4, 4), (3, 3), (3, 1), (1, 1)])
@pytest.mark.parametrize("hidden", [5, 8, 16])
def test_packing_round_trip(gates: int, together: int, hidden: int):
    weights = half(hidden, gates * hidden)
    layout = gate_blocks(weights.shape, together, 8)
    found = laid_out(layout, weights)
    assert found.shape == layout.shape == (-(-hidden // 8), gates // together, hidden, together * 8)
    np.testing.assert_array_equal(layout.unpack(found), weights)


@settings(max_examples=examples(12), deadline=None)
@given(steps=integers(1, 4), batch=integers(1, 9), hidden=integers(1, 70), reverse=booleans(), constant=booleans())
def test_sizes(steps: int, batch: int, hidden: int, reverse: bool, constant: bool):
    sizes = (steps, batch, hidden)
    options: dict[str, Any] = {"reverse": reverse, "constants": [1] if constant else []}
    lengths = np.arange(batch, dtype=np.int32) % (steps + 1)
    check(LstmRecurrenceOp, *run(4, sizes), half(batch, hidden), half(3 * hidden), lengths, **options)
    check(GruRecurrenceOp, *run(3, sizes), None, lengths, **options)

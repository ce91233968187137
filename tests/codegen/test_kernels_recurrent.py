"""Kernels of recurrences, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import check
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers
from packed import laid_out
from product_variants import gates, half

from glow_mlir.constants.layouts import gate_blocks
from glow_mlir.dialects.glow_high.recurrence import GruRecurrenceOp, LstmRecurrenceOp, RnnRecurrenceOp


def test_rows_of_a_panel_together():
    """Units fill panels, and rows of them steps, or leave some over; weights are read forwards in all steps."""
    target, sizes = "scalar,costs.unrolled_groups=4,costs.row_sums=16", (3, 1, 7)
    check(LstmRecurrenceOp, *gates(4, sizes), half(1, 7), target=target)
    for bias in (None, half(7)):
        check(GruRecurrenceOp, *gates(3, sizes), bias, reverse=True, target=target)
    check(RnnRecurrenceOp, *gates(1, (2, 1, 16)), target=target)


@pytest.mark.parametrize(("count", "together"), [(4, 4), (3, 3), (3, 1), (1, 1)])
@pytest.mark.parametrize("hidden", [5, 8, 16])
def test_packing_round_trip(count: int, together: int, hidden: int):
    weights = half(hidden, count * hidden)
    layout = gate_blocks(weights.shape, together, 8)
    found = laid_out(layout, weights)
    assert found.shape == layout.shape == (-(-hidden // 8), count // together, hidden, together * 8)
    np.testing.assert_array_equal(layout.unpack(found), weights)


@settings(max_examples=examples(12), deadline=None)
@given(steps=integers(1, 4), batch=integers(1, 9), hidden=integers(1, 70), reverse=booleans(), constant=booleans())
def test_sizes(steps: int, batch: int, hidden: int, reverse: bool, constant: bool):
    sizes = (steps, batch, hidden)
    options: dict[str, Any] = {"reverse": reverse, "constants": [1] if constant else []}
    lengths = np.arange(batch, dtype=np.int32) % (steps + 1)
    check(LstmRecurrenceOp, *gates(4, sizes), half(batch, hidden), half(3 * hidden), lengths, **options)
    check(GruRecurrenceOp, *gates(3, sizes), None, lengths, **options)

"""Packed forms that only move elements are the same, packed at run time or by the compiler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from glow_mlir.codegen.selection.packed_form import Layout, Move
from glow_mlir.codegen.selection.panel_moves import depthwise_moves, gate_moves, panel_moves
from glow_mlir.constants.packing import (
    pack_depthwise,
    pack_filters,
    pack_filters_by_channel,
    pack_gates,
    pack_panels,
)

SIZES = [(5, 7, 4), (3, 8, 4), (2, 3, 4), (1, 1, 1), (6, 9, 8)]
"""Depth, columns and panel: whole panels, a rest, a rest alone."""


def view(array: np.ndarray, shape: Sequence[int], layout: Layout) -> np.ndarray:
    flat = array.reshape(-1)[layout.offset :]
    return as_strided(flat, shape, [stride * array.itemsize for stride in layout.strides])


def moved(moves: Sequence[Move], operand: np.ndarray, like: np.ndarray) -> np.ndarray:
    """What moves make of an operand; elements that no move writes are NaN."""
    packed = np.full(like.shape, np.nan, like.dtype)
    for move in moves:
        target = view(packed, move.shape, move.target)
        assert np.isnan(target).all()
        target[...] = 0 if move.source is None else view(operand, move.shape, move.source)
    return packed


def numbers(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float64).reshape(shape)


@pytest.mark.parametrize(("depth", "columns", "panel"), SIZES)
def test_panels(depth: int, columns: int, panel: int) -> None:
    matrix = numbers(depth, columns)
    wanted = pack_panels(matrix, panel)
    np.testing.assert_array_equal(moved(panel_moves(columns, 1, [(depth, columns)], panel), matrix, wanted), wanted)
    transposed = np.ascontiguousarray(matrix.T)
    np.testing.assert_array_equal(moved(panel_moves(columns, depth, [(depth, 1)], panel), transposed, wanted), wanted)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(("channels", "count", "panel"), SIZES)
def test_filters(channels: int, count: int, panel: int, groups: int) -> None:
    taps = (2, 3)
    filters = numbers(count * groups, *taps, channels)
    depth = 6 * channels
    wanted = pack_filters(filters, panel, groups)
    np.testing.assert_array_equal(
        moved(panel_moves(count, depth, [(depth, 1)], panel, groups), filters, wanted), wanted
    )
    wanted = pack_filters_by_channel(filters, panel, groups)
    moves = panel_moves(count, depth, [(channels, 1), (6, channels)], panel, groups)
    np.testing.assert_array_equal(moved(moves, filters, wanted), wanted)


@pytest.mark.parametrize("taps", [(3,), (2, 3), (1, 1)])
@pytest.mark.parametrize("channels", [1, 5])
def test_depthwise_filters(channels: int, taps: tuple[int, ...]) -> None:
    filters = numbers(channels, *taps, 1)
    wanted = pack_depthwise(filters)
    np.testing.assert_array_equal(moved(depthwise_moves(channels, taps), filters, wanted), wanted)


@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize(("hidden", "units"), [(8, 4), (7, 4), (3, 8), (1, 1)])
def test_gates(hidden: int, units: int, together: int) -> None:
    weights = numbers(hidden, 4 * hidden)
    wanted = pack_gates(weights, 4, together, units)
    moves = gate_moves(hidden, hidden, 4 // together, together, units)
    np.testing.assert_array_equal(moved(moves, weights, wanted), wanted)

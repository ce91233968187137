"""Gradients of operators that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high import data_movement as ops
from glow_mlir.dialects.glow_high.base import HighOp

CASES: dict[str, tuple[type[HighOp], tuple[int, ...], dict[str, Any]]] = {
    "reshape": (ops.ReshapeOp, (2, 6), {"shape": (3, 1, 4)}),
    "reshape to a scalar": (ops.ReshapeOp, (1, 1), {"shape": ()}),
    "transpose": (ops.TransposeOp, (2, 3, 4), {"permutation": (2, 0, 1)}),
    "expand": (ops.ExpandOp, (3, 1), {"shape": (2, 3, 4)}),
    "expand a scalar": (ops.ExpandOp, (), {"shape": (2, 3)}),
    "tile": (ops.TileOp, (2, 3, 1), {"repeats": (2, 1, 3)}),
    "tile to nothing": (ops.TileOp, (2, 3), {"repeats": (1, 0)}),
    "slice": (ops.SliceOp, (4, 5), {"starts": (1, 0), "ends": (3, 5)}),
    "slice with steps": (ops.SliceOp, (8, 7), {"starts": (1, 0), "ends": (8, 7), "steps": (3, 2)}),
    "slice downwards": (ops.SliceOp, (3, 6), {"starts": (2, 5), "ends": (-1, -1), "steps": (-1, -2)}),
    "slice downwards from inside": (ops.SliceOp, (9,), {"starts": (7,), "ends": (0,), "steps": (-3,)}),
    "slice of one": (ops.SliceOp, (9,), {"starts": (4,), "ends": (5,), "steps": (4,)}),
    "slice of none": (ops.SliceOp, (4, 2), {"starts": (2, 0), "ends": (2, 2), "steps": (2, 1)}),
    "pad": (ops.PadOp, (2, 3), {"pads": (1, 0, 0, 2)}),
    "pad with the edge": (ops.PadOp, (2, 3), {"pads": (1, 2, 0, 3), "mode": "edge"}),
    "pad with the edge of one": (ops.PadOp, (1,), {"pads": (2, 1), "mode": "edge"}),
    "pad with the mirror image": (ops.PadOp, (3, 4), {"pads": (2, 1, 1, 3), "mode": "reflect"}),
    "pad with many mirror images": (ops.PadOp, (3,), {"pads": (7, 6), "mode": "reflect"}),
    "pad with the mirror image of one": (ops.PadOp, (1,), {"pads": (2, 1), "mode": "reflect"}),
    "pad with repetitions": (ops.PadOp, (3, 2), {"pads": (3, 1, 2, 2), "mode": "wrap"}),
    "pad with many repetitions": (ops.PadOp, (2,), {"pads": (5, 3), "mode": "wrap"}),
}


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    kind, shape, properties = CASES[name]
    check_operator(kind, {"x": numbers(*shape)}, **properties)


@pytest.mark.parametrize(
    "name", ["slice with steps", "slice downwards", "pad with the mirror image", "pad with the edge", "tile"]
)
def test_second_derivative(name: str) -> None:
    kind, shape, properties = CASES[name]
    check_operator(kind, {"x": numbers(*shape)}, order=2, **properties)


@pytest.mark.parametrize("axis", [0, -1])
def test_concat(axis: int) -> None:
    parts = {"x": numbers(2, 3), "w": numbers(2, 3, seed=1), "z": numbers(2, 3, seed=2)}
    check_operator(ops.ConcatOp, parts, [["x", "w", "z", "x"]], axis=axis)


def test_pad_with_a_value() -> None:
    check_operator(ops.PadOp, {"x": numbers(2, 3, 2), "value": numbers(seed=1)}, pads=(1, 0, 2, 0, 2, 1))


@settings(max_examples=8)
@given(st.data())
def test_slices_of_any_shape(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: prod(sizes) <= 24))
    taken = [range(size)[data.draw(st.slices(size))] for size in shape]
    bounds = [(part.start, part.stop, part.step) for part in taken]
    starts, ends, steps = (tuple(items) for items in zip(*bounds, strict=True))
    check_operator(ops.SliceOp, {"x": numbers(*shape)}, starts=starts, ends=ends, steps=steps)


@settings(max_examples=8)
@given(mode=st.sampled_from(ops.PAD_MODES), size=st.integers(1, 4), widths=st.tuples(*[st.integers(0, 5)] * 2))
def test_pads_of_any_width(mode: str, size: int, widths: tuple[int, int]) -> None:
    check_operator(ops.PadOp, {"x": numbers(2, size)}, pads=(0, widths[0], 0, widths[1]), mode=mode)

"""Strides over a reshaped index space against the address of each element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.dialects.shapes import Shape
from glow_mlir.rewriting.epilogue_operands import reshaped_strides

SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def addresses(extents: Shape, steps: Shape) -> np.ndarray:
    """The address of each element of an index space, in order."""
    return sum((grid * step for grid, step in zip(np.indices(extents), steps, strict=True)), np.zeros(extents)).ravel()


@given(data=st.data(), extents=SIZES)
def test_reshaped_strides_say_the_same_addresses(data: st.DataObject, extents: Shape) -> None:
    steps = tuple(data.draw(st.lists(st.integers(0, 8), min_size=len(extents), max_size=len(extents))))
    rest = math.prod(extents)
    shape: list[int] = []
    while rest > 1:
        shape.append(data.draw(st.sampled_from([size for size in range(1, rest + 1) if rest % size == 0])))
        rest //= shape[-1]
    result = reshaped_strides(extents, steps, (*shape, rest))
    if result is not None:
        assert (addresses((*shape, rest), result) == addresses(extents, steps)).all()


def test_a_dense_operand_can_be_reshaped() -> None:
    assert reshaped_strides((2, 6), (6, 1), (2, 1, 3, 2)) == (6, 0, 2, 1)
    assert reshaped_strides((2, 3), (1, 2), (6,)) is None


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 8), (2, 4, 0)])
def test_nothing_is_found_for_no_elements(shape: Shape) -> None:
    assert reshaped_strides((2, 0, 4), (0, 4, 1), shape) is None

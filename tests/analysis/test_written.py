"""What is known to be written is what a set of elements says, however views and windows cut it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from glow_mlir.analysis import written as written_elements
from glow_mlir.analysis.regions import region_of
from glow_mlir.analysis.written import WrittenElements
from glow_mlir.dialects.glow_low.memory import Buffer, buffer_type, extent_of, offset_of, strides_of

ELEMENTS = 24


def elements_of(buffer: Buffer) -> set[int]:
    """The elements of a buffer, one by one."""
    places = np.full(buffer.get_shape(), offset_of(buffer))
    for axis, stride in enumerate(strides_of(buffer)):
        steps = np.arange(places.shape[axis]) * stride
        places = places + steps.reshape([-1 if other == axis else 1 for other in range(places.ndim)])
    return set(places.ravel().tolist())


def some_buffer(random: np.random.Generator) -> Buffer:
    """A view of an allocation, of any strides and of no element, too."""
    while True:
        rank = int(random.integers(1, 4))
        shape = tuple(random.integers(0 if random.random() < 0.1 else 1, 5, rank).tolist())
        strides = tuple(random.choice([0, 1, 2, 3, 4, 6, 8, 12], rank).tolist())
        buffer = buffer_type(shape, f32, strides, int(random.integers(0, ELEMENTS)))
        if extent_of(buffer) <= ELEMENTS:
            return buffer


def allocation() -> SSAValue:
    """An allocation of all elements."""
    return Block(arg_types=[buffer_type((ELEMENTS,), f32)]).args[0]


@pytest.mark.parametrize("seed", range(40))
def test_is_what_a_set_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    root, written, expected = allocation(), WrittenElements(), set[int]()
    for _ in range(30):
        read = some_buffer(random)
        assert written.has(root, region_of(read)) == (elements_of(read) <= expected)
        stored = some_buffer(random)
        written.add(root, region_of(stored))
        expected |= elements_of(stored)
        assert written.has_any(root) == bool(expected)


@pytest.mark.parametrize("seed", range(10))
def test_is_what_a_set_says_without_comparisons(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_elements, "MAX_COMPARED", 0)
    test_is_what_a_set_says(seed)


def test_parts_make_a_whole() -> None:
    root, written = allocation(), WrittenElements()
    for offset in range(3):
        assert not written.has(root, region_of(root))
        written.add(root, region_of(buffer_type((8,), f32, (3,), offset)))
    assert written.has(root, region_of(root))

"""The layouts of arrays with symbolic sizes: what machine code may write to in place, and that it stays there."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest
from guarded_memory import GuardedMemory
from hypothesis import given
from hypothesis import strategies as st
from model_cases import check_model

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.layouts import is_dense, is_laid_out
from glow_mlir.runtime.machine_code import MachineEntry

AXIS = st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda pair: (pair[0], sum(pair)))
"""A size, and the largest size."""


@given(st.lists(AXIS, max_size=4))
def test_a_shape_is_dense_where_its_contiguous_arrays_are_laid_out(axes: list[tuple[int, int]]) -> None:
    shape, largest = tuple(size for size, _ in axes), tuple(most for _, most in axes)
    binding = Binding("y", "output", "f32", largest)
    part = np.empty(largest)[tuple(map(slice, shape))]
    assert is_dense(shape, binding) == (part.flags.c_contiguous or not part.size)
    if part.size:
        assert is_dense(shape, binding) == is_laid_out(np.empty(shape), binding)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Generator[list[tuple[int, ...]]]:
    """The shapes of outputs with symbolic sizes; each ends at a page that cannot be written."""
    memory = GuardedMemory()
    shapes: list[tuple[int, ...]] = []

    def made(binding: Binding, shape: tuple[int, ...]) -> np.ndarray:
        if binding.sizes and shape != binding.shape:
            shapes.append(shape)
        return memory.array(shape, binding.numpy_dtype)

    monkeypatch.setattr("glow_mlir.runtime.layouts.made", made)
    monkeypatch.setattr("glow_mlir.runtime.machine_code.made", made)
    monkeypatch.setattr(MachineEntry, "direct", EntryPoint.direct)
    yield shapes
    memory.close()


def test_code_for_larger_shapes_stays_in_outputs_of_the_exact_shape(guarded: list[tuple[int, ...]]) -> None:
    for seed in range(12):
        check_model("bounds", seed)
    assert len(guarded) > 10

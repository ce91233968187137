"""How the interpreter sees buffers through affine maps."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from glow_mlir.interpreter.machine import index_array

ZERO = AffineConstantExpr(0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_element_can_be_written(shape: tuple[int, ...]) -> None:
    """Also over an index space without dimensions."""
    array = np.zeros(shape, np.float32)
    view = index_array(array, AffineMap(0, 0, (ZERO,) * len(shape)))
    view[...] = np.float32(3)
    assert array.reshape(()) == 3


def test_axes_are_permuted_and_inserted() -> None:
    array = np.arange(6).reshape(1, 2, 3)
    view = index_array(array, AffineMap(3, 0, (ZERO, AffineDimExpr(2), AffineDimExpr(0))))
    np.testing.assert_array_equal(view, array[0].T[:, np.newaxis])

"""Gradients of Fourier transforms."""

from __future__ import annotations

import pytest
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.fourier import DftOp


@pytest.mark.parametrize("length", [3, 6])
@pytest.mark.parametrize(("inverse", "onesided"), [(False, False), (True, False), (False, True), (True, True)])
def test_real(length: int, inverse: bool, onesided: bool) -> None:
    check_operator(DftOp, {"x": numbers(2, 4, 1)}, axis=1, length=length, inverse=inverse, onesided=onesided)


@pytest.mark.parametrize(("inverse", "onesided"), [(False, False), (True, False), (True, True)])
def test_complex(inverse: bool, onesided: bool) -> None:
    check_operator(DftOp, {"x": numbers(3, 1, 2)}, axis=-3, length=4, inverse=inverse, onesided=onesided)


def test_second_derivative() -> None:
    check_operator(DftOp, {"x": numbers(1, 4, 1)}, order=2, axis=1, length=4, onesided=True)

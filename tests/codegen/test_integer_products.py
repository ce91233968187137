"""Products of integers in machine code: the very sums of the interpreter, on every target that this machine can run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp

RANDOM = np.random.default_rng(7)
BYTES = (np.uint8, np.int8)


def integers(shape: Sequence[int], kind: type[np.generic]) -> np.ndarray:
    """Integers of the whole range of a type, with both ends among them."""
    info = np.iinfo(np.dtype(kind).name)
    found = RANDOM.integers(info.min, info.max, shape, kind, endpoint=True)
    ends = found.reshape(-1)[:2]
    ends[...] = (info.min, info.max)[: ends.size]
    return found


def both(operator: type[HighOp], *operands: np.ndarray | None, **properties: object) -> list[Case]:
    """A product with a right operand that is a constant, and with one that is known at run time only."""
    return [Case(operator, *operands, constants=constants, **properties) for constants in ((1,), ())]


@pytest.mark.parametrize("target", runnable_targets())
def test_matrix_products_are_exact(target: str) -> None:
    """All signs, rows, columns and depths that are no multiples of tiles and cells; batches; a bias."""
    cases: list[Case] = []
    for left in BYTES:
        for rows, depth, columns in [(1, 1, 1), (3, 7, 5), (13, 66, 70), (7, 129, 100)]:
            bias = integers((columns,), np.int32)
            cases += both(MatMulOp, integers((rows, depth), left), integers((depth, columns), np.int8), bias)
            turned = integers((columns, depth), np.int8)
            cases += both(MatMulOp, integers((rows, depth), left), turned, transpose_right=True)
        cases += both(MatMulOp, integers((2, 3, 5, 9), left), integers((3, 9, 33), np.int8))
        cases += both(MatMulOp, integers((2, 5, 9), left), integers((9, 17), np.uint8))
    for kind in (np.int16, np.uint16, np.int32, np.int64, np.uint32):
        cases += both(MatMulOp, integers((2, 5, 19), kind), integers((19, 37), kind))
    check_all(cases, target, 0.0)


@pytest.mark.parametrize("target", runnable_targets())
def test_convolutions_are_exact(target: str) -> None:
    """One to three axes, strides, dilations, groups, one filter a channel; channels that are no multiples of cells."""
    cases: list[Case] = []
    for left in BYTES:
        for right in BYTES:
            cases += both(ConvOp, integers((2, 9, 10, 6), left), integers((5, 3, 2, 6), right))
        image = integers((1, 11, 12, 8), left)
        bias = integers((70,), np.int32)
        cases += both(ConvOp, image, integers((70, 3, 3, 8), np.int8), bias, strides=[2, 2])
        cases += both(ConvOp, image, integers((16, 3, 3, 2), np.int8), group=4, dilations=[2, 1])
        cases += both(ConvOp, image, integers((8, 3, 3, 1), np.int8), group=8)
        cases += both(ConvOp, image, integers((9, 1, 1, 8), np.int8))
        cases += both(ConvOp, integers((1, 23, 23, 3), left), integers((20, 7, 7, 3), np.int8), strides=[2, 2])
        cases += both(ConvOp, integers((2, 19, 5), left), integers((3, 4, 5), np.int8))
        cases += both(ConvOp, integers((1, 4, 5, 6, 3), left), integers((7, 2, 2, 2, 3), np.int8))
        cases += both(ConvOp, integers((1, 9, 9, 70), left), integers((70, 3, 3, 1), np.int8), group=70, strides=[2, 1])
    check_all(cases, target, 0.0)


@pytest.mark.parametrize("target", runnable_targets())
def test_the_largest_products_fit_their_sums(target: str) -> None:
    """Bytes at the ends of their ranges, whose pairs would not fit 16 bits."""
    cases: list[Case] = []
    for left, ends in ((np.uint8, (255, 0)), (np.int8, (127, -128))):
        for end in ends:
            for weight in (-128, 127):
                x, w = np.full((7, 4100), end, left), np.full((4100, 70), weight, np.int8)
                cases.append(Case(MatMulOp, x, w, constants=(1,)))
    check_all(cases, target, 0.0)

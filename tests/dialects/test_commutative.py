"""
Operators have the trait `Commutative` exactly where exchanged operands give the same bits.

Two zeros of different sign are left out: the larger one is either.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from single_operator import run_operator, single_operator
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.dialect import GLOW_HIGH
from glow_mlir.dialects.glow_high.elementwise import Binary

OPERATORS = [op for op in GLOW_HIGH.operations if issubclass(op, Binary)]

SAMPLES = [
    np.array([-np.inf, -2.5, 0.0, 0.5, 3.0], np.float32),
    np.array([-3, -1, 0, 1, 2, 5], np.int32),
    np.array([False, True]),
]


def pairs(operator: type[Binary]) -> list[np.ndarray]:
    """All pairs of the first samples that an operator takes."""
    for values in SAMPLES:
        left, right = (np.array(side) for side in zip(*itertools.product(values, values), strict=True))
        try:
            single_operator(operator, [left, right])
        except VerifyException:
            continue
        return [left, right]
    raise AssertionError(f"{operator.name} takes none of the samples")


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_commutative_operators_are_those_whose_operands_can_be_exchanged(operator: type[Binary]) -> None:
    operands = pairs(operator)
    results = [
        run_operator(single_operator(operator, order)[0], order)[0].tobytes() for order in (operands, operands[::-1])
    ]
    assert operator.has_trait(Commutative) == (results[0] == results[1])

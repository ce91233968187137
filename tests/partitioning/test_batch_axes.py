"""Rules of samples: what an operator computes of some samples of a batch is that part of what it computes of all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from execute import Case, assert_same, sample
from operator_case import OperatorCase
from operator_cases import CASES, CUBE, IMAGE, OPERATORS, row
from operator_parts import FORMS, flat, like, of_share, operator_of, part, results

from glow_mlir.dialects.glow_high.independence import Runs
from glow_mlir.partitioning.batch_axes import samples_through

REFUSE = frozenset("max_pool_with_indices non_max_suppression non_zero shape splat unique".split())
"""Operators that have no operand by samples, that count or sum over all of them, or whose results data sizes."""

MIXED: dict[str, OperatorCase] = {
    "reduction of all axes": row("reduce_sum", CUBE, batch={}, axes=(0, 1, 2)),
    "part of an axis": row("slice", sample((4, 4)), batch={}, starts=(0, 1), ends=(1, 4), steps=(1, 1)),
    "steps": row("slice", sample((12, 4)), batch={}, starts=(0, 3), ends=(12, -1), steps=(3, -1)),
    "concat with another": OperatorCase(OPERATORS["concat"], [[sample((4,)), sample((1,))]], {}, {"axis": 0}),
    "pad of all axes": row("pad", sample((4, 4)), batch={}, pads=(0, 1, 1, 0), mode="wrap"),
    "resize that crops": row(
        "resize", IMAGE, batch={}, shape=(3, 4, 5, 6), coordinates="tf_crop_and_resize", roi=(0.5, 0, 0, 0, 1, 1, 1, 1)
    ),
}
"""Forms that compute no sample by itself, wherever they lie."""


def ways(arrays: Sequence[np.ndarray]) -> Iterator[tuple[int, list[Runs | None]]]:
    """How many samples may lie in operands, and how: in one of them, in all that have that axis, or in those alike."""
    for place, array in enumerate(arrays):
        for axis, size in enumerate(array.shape):
            for samples in (number for number in range(2, size + 1) if size % number == 0):
                for outer in (number for number in range(1, size) if size // samples % number == 0):
                    runs = Runs(axis, outer, size // samples // outer)
                    fits = [runs if other.shape[axis : axis + 1] == (size,) else None for other in arrays]
                    # Counted from the last axis, and wherever there is one of that size.
                    behind = [other.ndim - array.ndim + axis for other in arrays]
                    aligned = [
                        runs._replace(axis=own) if own >= 0 and other.shape[own] == size else None
                        for own, other in zip(behind, arrays, strict=True)
                    ]
                    first = [
                        runs._replace(axis=other.shape.index(size)) if size in other.shape else None for other in arrays
                    ]
                    alone: list[Runs | None] = [None] * len(arrays)
                    alone[place] = runs
                    for operands in (alone, fits, aligned, first):
                        yield samples, operands


def checked(case: OperatorCase) -> int:
    """Compare shares with the whole in each way in which samples can lie; how many of these the operator carries."""
    own, *_ = case.cases()
    op, arrays, count = operator_of(own), flat(own.operands), 0
    if not arrays:
        return 0
    expected = results(case.cases()[0])
    seen: set[tuple[int, tuple[Runs | None, ...]]] = set()
    for samples, operands in ways(arrays):
        if (samples, tuple(operands)) in seen:
            continue
        seen.add((samples, tuple(operands)))
        found = samples_through(op, operands, samples)
        if found is None:
            continue
        read, lies = found
        count += 1
        assert all(given is None or given == runs for given, runs in zip(operands, read, strict=True))
        middle = math.ceil(samples / 2)
        for begin, end in ((0, middle), (middle, samples)):
            given = [
                array if runs is None else part(array, runs, samples, begin, end)
                for array, runs in zip(arrays, read, strict=True)
            ]
            properties = of_share(op, lies[0].axis, end - begin, samples)
            actual = results(Case(case.operator, *like(own.operands, given), **properties))
            wanted = [part(array, runs, samples, begin, end) for array, runs in zip(expected, lies, strict=True)]
            for exact, array in zip(wanted, actual, strict=True):
                assert_same({"": exact}, {"": array}, case.tolerance)
    return count


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    assert (checked(CASES[name]) == 0) == (name in REFUSE)


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    assert checked(FORMS[name])


@pytest.mark.parametrize("name", MIXED)
def test_form_that_mixes_samples(name: str) -> None:
    assert not checked(MIXED[name])

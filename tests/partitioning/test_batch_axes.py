"""Rules of samples: what an operator computes of some samples of a batch is that part of what it computes of all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from execute import Case, Given, assert_same, module_of, sample
from operator_case import OperatorCase
from operator_cases import CASES, CUBE, IMAGE, LINE, OPERATORS, layer, row, whole

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.independence import Runs
from glow_mlir.interpreter.machine import run_function
from glow_mlir.partitioning.batch_axes import samples_through

REFUSE = frozenset(
    "blockwise_dequantize max_pool_with_indices non_max_suppression non_zero scatter_nd shape sparse_lengths_sum splat "
    "unique".split()
)
"""Operators that have no operand by samples, that count or sum over all of them, or whose results data sizes."""

SQUARES = [sample((4, 4, 4), seed=seed) for seed in range(2)]
FORMS: dict[str, OperatorCase] = {
    "broadcast": row("add", sample((4, 1, 6)), sample((2, 6), seed=1), batch={}),
    "concat along samples": OperatorCase(OPERATORS["concat"], [[LINE, LINE]], {}, {"axis": 0}),
    "expand to more axes": row("expand", sample((4, 1)), batch={}, shape=(2, 4, 6)),
    "gather along an axis in between": row("gather", sample((4, 9, 6)), whole(4, 2, bound=9), batch={}, axis=1),
    "gather of images": row("gather_nd", sample((4, 5, 6)), whole(4, 2, bound=5)[..., None], batch={}, batch_dims=1),
    "slice of runs": row("slice", sample((12, 3)), batch={}, starts=(4, 0), ends=(12, 3)),
    "slice backwards": row("slice", sample((12, 4)), batch={}, starts=(0, 3), ends=(12, -1), steps=(1, -1)),
    "tile of samples": row("tile", CUBE, batch={}, repeats=(2, 1, 3)),
    "pad of one axis": row("pad", CUBE, batch={}, pads=(0, 1, 0, 0, 0, 0)),
    "reshape apart": row("reshape", sample((12, 6)), batch={}, shape=(3, 4, 2, 3)),
    "reshape together": row("reshape", sample((2, 4, 6)), batch={}, shape=(8, 6)),
    "reshape across": row("reshape", sample((4, 6)), batch={}, shape=(3, 8)),
    "transpose": row("transpose", CUBE, batch={}, permutation=(2, 0, 1)),
    "softmax in front": row("softmax", CUBE, batch={}, axis=1),
    "reduction in between": row("reduce_sum", IMAGE, batch={}, axes=(1, 2), keepdims=False),
    "reduction with sizes of one": row("reduce_max", IMAGE, batch={}, axes=(2,)),
    "matmul of both": row("matmul", *SQUARES, batch={}, transpose_left=True),
    "matmul of a matrix": row("matmul", sample((4, 6)), sample((4, 4), seed=1), batch={}, transpose_left=True),
    "matmul with a bias": row("matmul", SQUARES[0], sample((6, 4)), sample((6,)), batch={}, transpose_right=True),
    "matmul that broadcasts": row("matmul", sample((2, 1, 4, 6)), sample((4, 6, 2), seed=1), batch={}),
    "einsum": OperatorCase(OPERATORS["einsum"], [SQUARES], {}, {"equation": "...ij,...kj->ki..."}),
    "einsum of a diagonal": OperatorCase(OPERATORS["einsum"], [SQUARES[:1]], {}, {"equation": "bii->bi"}),
    "dequantize by axis": row(
        "dequantize",
        whole(4, 6, bound=99, dtype="i1"),
        sample((4, 1)) ** 2 + 1,
        whole(4, 1, bound=9, dtype="i1"),
        batch={},
    ),
    "pool with channels first": row("max_pool", IMAGE, batch={}, kernel_shape=(2, 2), layout="channels_first"),
    "reverse sequence": row("reverse_sequence", CUBE, whole(4, bound=9), batch={}, batch_axis=1, time_axis=2),
    "attention with a mask": row(
        "attention",
        *(sample((2, 4, 4, 8), seed=seed) for seed in range(3)),
        sample((4, 1, 4)),
        batch={},
        causal=True,
    ),
    "layer with the batch first": OperatorCase(
        OPERATORS["lstm"], [sample((4, 3, 4)), *layer("lstm", 4).operands[1:]], {}, {"batch_first": True}
    ),
    "layer of lengths": OperatorCase(
        OPERATORS["gru"], [*layer("gru", 3).operands, None, np.array([3, 1, 2], np.int32), sample((1, 3, 5))], {}
    ),
    "group normalization": row(
        "group_normalization", IMAGE, sample((4,)), sample((4,), seed=1), batch={}, groups=2, axis=1
    ),
}
"""Forms of operators besides those of their case, with axes of the same size among them."""

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


def flat(operands: Sequence[Given]) -> list[np.ndarray]:
    """The operands that there are, in order."""
    groups = [[given] if given is None or isinstance(given, np.ndarray) else given for given in operands]
    return [given for group in groups for given in group if given is not None]


def like(operands: Sequence[Given], arrays: Sequence[np.ndarray]) -> list[Given]:
    """Those arrays in the place of the operands that there are."""
    left = iter(arrays)
    return [
        given if given is None else next(left) if isinstance(given, np.ndarray) else [next(left) for _ in given]
        for given in operands
    ]


def part(array: np.ndarray, runs: Runs, samples: int, begin: int, end: int) -> np.ndarray:
    """Some of the samples in an array."""
    shape, axis = array.shape, runs.axis
    apart = array.reshape(*shape[:axis], runs.outer, samples, runs.inner, *shape[axis + 1 :])
    return np.take(apart, range(begin, end), axis + 1).reshape(*shape[:axis], -1, *shape[axis + 1 :])


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


def results(case: Case) -> list[np.ndarray]:
    """What the interpreter computes."""
    module, inputs = module_of(case)
    return list(run_function(module, inputs).values())


def operator_of(case: Case) -> HighOp:
    """The operator of a case."""
    module, _ = module_of(case)
    return next(op for op in module.walk() if type(op) is case.operator)


def of_share(op: HighOp, axis: int, share: int, samples: int) -> dict[str, Any]:
    """Properties and regions of an operator for a share of the samples."""
    regions = {name: getattr(op, name).clone() for name, _ in op.get_irdl_definition().regions}
    properties = {**op.of_share(axis, share, samples), **regions}
    return {name: value for name, value in properties.items() if name != "operandSegmentSizes"}


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

"""Operators on some indices of an axis: forms of them besides their case, and what they compute of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from execute import Case, Given, module_of, sample
from operator_case import OperatorCase
from operator_cases import CUBE, IMAGE, LINE, OPERATORS, layer, row, whole

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.independence import Runs
from glow_mlir.interpreter.machine import run_function

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

"""
A case of each kernel of the CPU backend, as small as it is selected for, and why it lacks the abilities that it lacks.

`tests/codegen/test_abilities.py` runs them; docs/abilities.md is made of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from execute import sample
from operator_case import BATCH, OperatorCase
from operator_cases import BESIDE, OPERATORS, row, whole
from operator_cases import CASES as BY_OPERATOR


def conv(image: tuple[int, ...], filters: tuple[int, ...], tolerance: float | None = None, **more: Any) -> OperatorCase:
    """A convolution with constant filters and a bias."""
    weights = (sample(filters, seed=1) * np.prod(filters[1:]) ** -0.5).astype(np.float32)
    operands = sample((BATCH, *image)), weights, sample(filters[:1], seed=2)
    return row("conv", *operands, constants=(1, 2), tolerance=tolerance, **more)


def product(rows: int, depth: int, columns: int, tolerance: float | None = None) -> OperatorCase:
    """A batch of rows times a constant matrix."""
    operands = sample((BATCH, rows, depth)), sample((depth, columns), seed=1)
    return row("matmul", *operands, constants=(1,), tolerance=tolerance)


SAME_NAMES = (
    "max-pool-with-indices top-k pad "
    "scatter-elements reverse-sequence resize grid-sample deform-columns roi-align roi-pool "
    "col2im sparse-lengths-sum non-zero unique non-max-suppression lstm-recurrence gru-recurrence rnn-recurrence "
    "predicated-matmul grouped-matmul blockwise-matmul blockwise-matmul-integer attention linear-attention "
    "extend-cache paged-attention write-pages dynamic-update-slice shape"
).split()
"""Kernels that are called like the operator whose case they are selected for."""

CASES: dict[str, OperatorCase] = {
    **{name: BY_OPERATOR[name.replace("-", "_")] for name in SAME_NAMES},
    "copy": BY_OPERATOR["transpose"],
    "determinant": BY_OPERATOR["det"],
    "generic": BY_OPERATOR["reduce_sum"],
    "windows": BY_OPERATOR["avg_pool"],
    "windows-of-integers": BY_OPERATOR["sum_pool"],
    "trees": BY_OPERATOR["tree_ensemble"],
    "binned-trees": BY_OPERATOR["binned_tree_ensemble"],
    "ngrams": BY_OPERATOR["tf_idf_vectorizer"],
    "stack": row("exp", sample((BATCH, 40))),
    "fill": OperatorCase(OPERATORS["splat"], [], {}, lambda batch: {"shape": (batch, 90), "value": 0.5}, beside=BESIDE),
    "conv-depthwise": conv((6, 7, 8), (8, 3, 3, 1), group=8),
    "conv-winograd": conv((8, 8, 32), (32, 3, 3, 32), 2e-5),
    "conv-strassen": conv((9, 11, 256), (128, 1, 1, 256), 5e-5),
    "conv": conv((5, 6, 4), (6, 2, 2, 4)),
    "matmul-strassen": product(64, 256, 256, 5e-5),
    "matmul-streamed": row("matmul", sample((BATCH, 5, 8)), sample((BATCH, 8, 40), seed=1), batch={0: 0, 1: 0}),
    "matmul": product(5, 8, 40),
    "slice": row(
        "slice", sample((BATCH, 90)), properties=lambda batch: {"starts": (0, 88), "ends": (batch, 1), "steps": (1, -2)}
    ),
    "concat": OperatorCase(
        OPERATORS["concat"], [[sample((BATCH, 5)), sample((BATCH, 5), seed=1)]], {0: 0}, {"axis": 0}, sized=True
    ),
    "expand": replace(BY_OPERATOR["expand"], sized=True),
    "tile": row("tile", sample((BATCH, 20)), repeats=(1, 3)),
    "dynamic-slice": row("dynamic_slice", sample((BATCH, 90)), np.array(3), axis=1, size=80),
    "scatter-nd": row(
        "scatter_nd",
        sample((9, 70)),
        whole(BATCH, 1, bound=9),
        sample((BATCH, 70)),
        batch={1: 0, 2: 0},
        reduction="add",
    ),
    "reshape": OperatorCase(
        OPERATORS["reshape"],
        [sample((2, BATCH, 40))],
        {0: 1},
        lambda batch: {"shape": (2 * batch, 40)},
        sized=True,
    ),
}
"""Kernel → a case that it is selected for."""

BODILESS = "with a body it is a stack"
NOTHING = "it reads no elements"
SUMS = "blocks of rows, which are numbers, decide how sums are taken"
IN_TURN = "what comes before decides where an element goes"
FEW_ROWS = "most calls write a few rows"
FEW = "it computes as many numbers as there are axes"

EPILOGUE, PROLOGUE, SIZES, THREADS = ABILITIES = ("epilogue", "prologue", "run-time sizes", "threads")
"""Names of the abilities: bodies behind and in front of the operator, sizes, parts for threads."""

REFUSED: dict[str, dict[str, str]] = {
    "stack": {EPILOGUE: BODILESS, PROLOGUE: BODILESS},
    "copy": {EPILOGUE: BODILESS, PROLOGUE: BODILESS},
    "fill": {PROLOGUE: NOTHING},
    "conv-strassen": {SIZES: SUMS},
    "matmul-strassen": {PROLOGUE: SUMS, SIZES: SUMS},
    "non-zero": {THREADS: IN_TURN},
    "unique": {THREADS: IN_TURN},
    "non-max-suppression": {THREADS: IN_TURN},
    "extend-cache": {THREADS: FEW_ROWS},
    "write-pages": {THREADS: IN_TURN},
    "shape": {PROLOGUE: NOTHING, THREADS: FEW},
}
"""Kernel → ability → why neither the kernel nor its tiles have it; a test fails where they do."""

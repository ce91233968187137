"""Cases of operators with optional integer operands that the first case of each lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from execute import sample
from operator_case import BATCH, OperatorCase
from operator_cases import BYTES, row, within
from operator_cases import CASES as BY_OPERATOR
from random_trees import RandomTrees, binned_operands, tree_operands

LENGTHS = {
    "lstm": 4,
    "gru": 4,
    "rnn": 4,
    "lstm_recurrence": 5,
    "gru_recurrence": 4,
    "rnn_recurrence": 3,
    "lstm_recurrence_with_sums": 5,
    "gru_recurrence_with_sums": 4,
    "rnn_recurrence_with_sums": 3,
}
"""Recurrence → the place of the operand with the lengths of sequences."""


def _with(case: OperatorCase, place: int, operand: np.ndarray) -> OperatorCase:
    """A case with one more operand at a place, and none between."""
    absent = [None] * (place - len(case.operands))
    return replace(case, operands=[*case.operands, *absent, operand])


CASES: Mapping[str, OperatorCase] = {
    **{
        f"{name} of sequences": _with(BY_OPERATOR[name], place, np.arange(BATCH, dtype=np.int32) % 2 + 1)
        for name, place in LENGTHS.items()
    },
    "paged_attention of sequences": replace(
        _with(BY_OPERATOR["paged_attention"], 7, np.array([9, 24])), batch={0: 0, 4: 0, 5: 0}
    ),
    "integer_rescale with offset": _with(BY_OPERATOR["integer_rescale"], 3, np.arange(11, dtype=np.int32)),
    "blockwise_matmul_integer of two bytes": replace(
        BY_OPERATOR["blockwise_matmul_integer"],
        operands=[BYTES, BYTES, *BY_OPERATOR["blockwise_matmul_integer"].operands[2:]],
        batch={0: 0, 1: 0, 2: 0, 3: 0},
    ),
    **{
        f"{name} with minima": replace(
            _with(BY_OPERATOR[name], place, within(-0.1, 0.1, 40, 1)), constants=(place - 3, place - 2, place)
        )
        for name, place in {"blockwise_matmul": 4, "blockwise_matmul_integer": 7}.items()
    },
    **{
        f"{name} with a table": replace(
            BY_OPERATOR[name], properties={**BY_OPERATOR[name].properties, "table": list(range(-70, 90, 10))}
        )
        for name in ("blockwise_matmul", "blockwise_matmul_integer", "blockwise_dequantize")
    },
    "tree_ensemble with tests": row(
        "tree_ensemble", sample((BATCH, 3)), *tree_operands(RandomTrees(0, targets=2), (3, 5, 12)), size=2
    ),
    "binned_tree_ensemble with links": row(
        "binned_tree_ensemble",
        sample((BATCH, 18)),
        *binned_operands(5, 4, ((0, 17), (2, 3), (1, 40), (0, 5)), linked=13),
        size=1,
        relations=(3, 5, 10),
        counts=(2, 1, 1),
    ),
}
"""What is beside its operator → the case."""

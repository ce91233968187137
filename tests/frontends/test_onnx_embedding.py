"""Glow's operators on tables of embeddings: what they compute, and what they say of operands that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from glow_mlir import InferenceSession
from glow_mlir.errors import ExecutionError

GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(6, 4)).astype(np.float32)
QUANTIZED = GENERATOR.integers(0, 256, (6, 4)).astype(np.uint8)
SCALES, OFFSETS = (GENERATOR.normal(size=6).astype(np.float32) for _ in range(2))
FUSED = np.concatenate([QUANTIZED, np.stack([SCALES, OFFSETS], 1).view(np.uint8)], 1)
WEIGHTS = GENERATOR.normal(size=5).astype(np.float32)
INDICES = np.array([5, 0, 3, 3, 1])
LENGTHS = np.array([2, 0, 3], np.int32)
ONES = np.ones(5, np.float32)


def sums(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a segment after the other adds up to."""
    rows = table[INDICES] * weights.reshape(-1, *(1,) * (table.ndim - 1))
    return np.stack([rows[:2].sum(0), np.zeros_like(table[0]), rows[2:].sum(0)])


def session(kind: str, operands: Sequence[np.ndarray | None], backend: str, **attributes: Any) -> InferenceSession:
    """A model of one operator, all of whose operands are inputs."""
    names = ["" if operand is None else f"x{position}" for position, operand in enumerate(operands)]
    node = helper.make_node(kind, names, ["y"], "sum", domain="glow", **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(operand.dtype), operand.shape)
        for name, operand in zip(names, operands, strict=True)
        if operand is not None
    ]
    graph = helper.make_graph([node], "sums", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("glow", 1)]
    return InferenceSession(helper.make_model(graph, opset_imports=opsets), backend=backend, cache=False)


def feeds(operands: Sequence[np.ndarray | None]) -> Mapping[str, np.ndarray]:
    return {f"x{position}": operand for position, operand in enumerate(operands) if operand is not None}


NUMBERS = (QUANTIZED * SCALES[:, None] + OFFSETS[:, None]).astype(np.float32)
CUBES = GENERATOR.normal(size=(6, 2, 3)).astype(np.float32)
CASES: dict[str, tuple[str, list[np.ndarray | None], np.ndarray, dict[str, Any]]] = {
    "sum": ("SparseLengthsSum", [TABLE, INDICES, LENGTHS], sums(TABLE, ONES), {}),
    "cubes": ("SparseLengthsSum", [CUBES, INDICES, LENGTHS], sums(CUBES, ONES), {}),
    "weighted": ("SparseLengthsWeightedSum", [TABLE, WEIGHTS, INDICES, LENGTHS], sums(TABLE, WEIGHTS), {}),
    "quantized": (
        "RowwiseQuantizedSparseLengthsWeightedSum",
        [QUANTIZED, SCALES, OFFSETS, WEIGHTS, INDICES, LENGTHS],
        sums(NUMBERS, WEIGHTS),
        {},
    ),
    "fused": ("FusedRowwiseQuantizedSparseLengthsSum", [FUSED, INDICES, LENGTHS], sums(NUMBERS, ONES), {}),
    "fused and weighted": (
        "FusedRowwiseQuantizedSparseLengthsWeightedSum",
        [FUSED, WEIGHTS, INDICES, LENGTHS],
        sums(NUMBERS, WEIGHTS),
        {},
    ),
    "bags": ("EmbeddingBag", [TABLE, WEIGHTS, INDICES, np.array([0, 2, 2])], sums(TABLE, WEIGHTS), {}),
    "bags with an end": (
        "EmbeddingBag",
        [TABLE, None, INDICES, np.array([0, 2, 2, 5])],
        sums(TABLE, ONES),
        {"has_end_offset": 1},
    ),
}


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_sums(name: str, backend: str) -> None:
    kind, operands, wanted, attributes = CASES[name]
    (result,) = session(kind, operands, backend, **attributes).run(None, feeds(operands))
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_what_is_out_of_range_fails(backend: str) -> None:
    wrong = ((INDICES + 1, LENGTHS), (INDICES - 1, LENGTHS), (INDICES, LENGTHS + 1), (INDICES, LENGTHS - 1))
    compiled = session("SparseLengthsSum", [TABLE, INDICES, LENGTHS], backend)
    for indices, lengths in wrong:
        with pytest.raises(ExecutionError, match="an index or a segment is out of range"):
            compiled.run(None, feeds([TABLE, indices, lengths]))

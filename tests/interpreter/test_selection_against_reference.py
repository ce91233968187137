"""What is there of results with as many elements as operands say is what ONNX's reference implementation gives."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode
from single_operator import run_operator, single_operator

from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp, NonZeroOp, UniqueOp


def assert_padded(padded: np.ndarray, wanted: np.ndarray) -> None:
    """Compare what is in the corner; behind it are zeros."""
    corner = tuple(slice(size) for size in wanted.shape)
    np.testing.assert_array_equal(padded[corner], wanted)
    rest = padded.copy()
    rest[corner] = 0
    assert not rest.any()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_non_zero(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 4)).astype(dtype)
    module, _ = single_operator(NonZeroOp, [x])
    places, count = run_operator(module, [x])
    (wanted,) = SingleNode("NonZero", [x], 13).by_reference()
    assert count == wanted.shape[1]
    assert_padded(places, wanted)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_unique(is_sorted: bool) -> None:
    x = np.random.default_rng(0).integers(0, 5, 12).astype(np.float32)
    module, _ = single_operator(UniqueOp, [x[:, None]], sorted=is_sorted)
    *results, count = run_operator(module, [x[:, None]])
    attributes = {"sorted": int(is_sorted)}
    wanted = SingleNode("Unique", [x], 11, attributes, outputs=4).by_reference()
    assert count == len(wanted[0])
    for found, array in zip(results, [wanted[0][:, None], *wanted[1:]], strict=True):
        assert_padded(found, array)


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 99),
    by_center=st.booleans(),
    most=st.integers(1, 6),
    share=st.sampled_from([0.0, 0.3, 0.7]),
    least=st.sampled_from([None, 0.0, 0.5]),
)
def test_non_max_suppression(seed: int, by_center: bool, most: int, share: float, least: float | None) -> None:
    generator = np.random.default_rng(seed)
    boxes = generator.uniform(0, 2, (2, 6, 4)).astype(np.float32)
    scores = generator.random((2, 2, 6)).round(1).astype(np.float32)
    operands = [boxes, scores, np.array([most]), np.array([share], np.float32)]
    operands += [] if least is None else [np.array([least], np.float32)]
    module, _ = single_operator(NonMaxSuppressionOp, operands, center_point_box=by_center, limit=6)
    rows, count = run_operator(module, operands)
    attributes = {"center_point_box": int(by_center)}
    (wanted,) = SingleNode("NonMaxSuppression", operands, 11, attributes).by_reference()
    assert count == len(wanted)
    assert_padded(rows, wanted.reshape(-1, 3))

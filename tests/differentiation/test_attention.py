"""Gradients of attention: scale, masks, causality, batches that broadcast, one value as several operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp

Shape = tuple[int, ...]

CASES: dict[str, tuple[Shape, Shape, Shape, Shape | None, Mapping[str, Any]]] = {
    "plain": ((3, 2), (4, 2), (4, 3), None, {}),
    "heads and scale": ((2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 3), None, {"scale": 0.5}),
    "mask": ((2, 3, 2), (2, 4, 2), (2, 4, 2), (3, 4), {}),
    "mask of rows": ((2, 3, 2), (2, 4, 2), (2, 4, 2), (2, 1, 4), {"scale": 0.7}),
    "causal": ((2, 4, 2), (2, 4, 2), (2, 4, 2), None, {"causal": True}),
    "causal behind a past": ((3, 2), (5, 2), (5, 2), (3, 5), {"causal": True, "past": 2}),
    "queries that share keys": ((2, 2, 3, 2), (2, 1, 4, 2), (1, 1, 4, 2), None, {"scale": 2.0}),
}


def drawn(shape: Shape) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


@pytest.mark.parametrize("case", CASES)
def test_attention(case: str) -> None:
    query, key, value, mask, properties = CASES[case]
    shapes = {"q": query, "k": key, "v": value} | ({} if mask is None else {"m": mask})

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(AttentionOp, values["q"], values["k"], values["v"], values.get("m"), **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, {name: drawn(shape) + 0.1 * len(name) for name, shape in shapes.items()})


def test_mask_that_hides_keys_as_data() -> None:
    inputs = {"q": drawn((3, 2)), "k": drawn((4, 2)), "v": drawn((4, 3))}
    inputs["m"] = np.where(np.arange(12).reshape(3, 4) % 5 == 1, -np.inf, 0.0)

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(AttentionOp, values["q"], values["k"], values["v"], values["m"])
        return emit(MulOp, y, y)

    check_gradients(graph, inputs, ["q", "k", "v"])


def test_one_value_as_query_key_and_value() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(AttentionOp, values["x"], values["x"], values["x"], None, causal=True)
        return emit(MulOp, y, y)

    check_gradients(graph, {"x": drawn((4, 3))})


def test_second_derivative() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(AttentionOp, values["q"], values["k"], values["k"], None)
        slope = emit(GradientOp, emit(MulOp, y, y), None, [values["q"]])
        return emit(MulOp, slope, slope)

    check_gradients(graph, {"q": drawn((2, 2)), "k": drawn((3, 2))}, rtol=1e-4)

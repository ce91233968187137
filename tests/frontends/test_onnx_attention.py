"""ONNX's Attention computes what ONNX's reference implementation does, as one operator where that is enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from single_node import SingleNode, assert_equal
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.importer import import_model


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def attentions(module: ModuleOp) -> int:
    return sum(isinstance(op, AttentionOp) for op in module.walk())


HEADS = [numbers(2, 3, 4, 8), numbers(2, 3, 6, 8), numbers(2, 3, 6, 5)]
GROUPED = [numbers(2, 6, 4, 8), *HEADS[1:]]
FLAT = [numbers(2, 4, 24), numbers(2, 6, 24), numbers(2, 6, 15)]
OF_THREE = {"q_num_heads": 3, "kv_num_heads": 3}
CACHE = [numbers(2, 3, 2, 8), numbers(2, 3, 2, 5)]
SEEN = np.random.default_rng(0).random((4, 6)) < 0.5
SEEN[2] = False
"""Which keys each query sees; one sees none."""

Operands = list[np.ndarray | None]

PLAIN: dict[str, tuple[Operands, dict[str, Any], int]] = {
    "heads": ([*HEADS], {}, 1),
    "scale": ([*HEADS], {"scale": 0.25}, 1),
    "scale of zero": ([*HEADS], {"scale": 0.0}, 1),
    "flat": ([*FLAT], OF_THREE, 1),
    "groups": ([*GROUPED], {}, 1),
    "causal": ([*HEADS], {"is_causal": 1}, 1),
    "cache": ([*HEADS, None, *CACHE], {"is_causal": 1}, 3),
    "mask": ([*HEADS, numbers(4, 6)], {}, 1),
    "mask of heads": ([*GROUPED, numbers(6, 4, 6)], {}, 1),
    "mask of batches": ([*GROUPED, numbers(2, 1, 4, 6)], {"is_causal": 1}, 1),
    "truth values": ([*HEADS, SEEN], {}, 1),
    "truth values before": ([*HEADS, SEEN], {"is_causal": 1}, 1),
    "flat groups": ([numbers(2, 4, 48), *FLAT[1:]], {"q_num_heads": 6, "kv_num_heads": 3}, 1),
}


@pytest.mark.parametrize("case", PLAIN)
def test_attention(case: str) -> None:
    operands, attributes, outputs = PLAIN[case]
    node = SingleNode("Attention", operands, 23, attributes, outputs)
    assert attentions(import_model(node.model())) == 1
    assert_equal(node.by_us(), node.by_reference()[:outputs], rtol=1e-5, atol=1e-5)


WRONG: dict[str, tuple[Operands, dict[str, Any], str]] = {
    "no heads": ([*FLAT], {"q_num_heads": 0, "kv_num_heads": 3}, "operand 0 of Attention cannot have 0 heads"),
    "no heads of keys": ([*FLAT], {"q_num_heads": 3, "kv_num_heads": 0}, "operand 1 of Attention cannot have 0 heads"),
    "fewer than none": ([*FLAT], {"q_num_heads": -3, "kv_num_heads": 3}, "operand 0 of Attention cannot have -3 heads"),
    "heads of unequal size": (
        [*FLAT],
        {"q_num_heads": 5, "kv_num_heads": 3},
        "operand 0 of Attention cannot have 5 heads of 24 elements together",
    ),
    "values of unequal size": (
        [*FLAT],
        {"q_num_heads": 8, "kv_num_heads": 8},
        "operand 2 of Attention cannot have 8 heads of 15 elements together",
    ),
    "uneven groups": ([numbers(2, 4, 4, 8), *HEADS[1:]], {}, "4 heads of queries cannot share 3 of keys"),
    "more keys than queries": ([*FLAT[:2], numbers(2, 6, 24)], {"q_num_heads": 2, "kv_num_heads": 4}, "2 heads of"),
    "empty heads": ([*HEADS[:1], numbers(2, 0, 6, 8), numbers(2, 0, 6, 5)], {}, "operand 1 of Attention cannot have 0"),
    "matrices": ([numbers(4, 8), numbers(6, 8), numbers(6, 5)], {}, "operand 0 of Attention has 2 axes"),
    "flat cache": ([*HEADS, None, numbers(2, 2, 24), CACHE[1]], {}, "operand 4 of Attention has 3 axes"),
    "another number of values": ([*HEADS[:2], numbers(2, 1, 6, 5)], {}, "3 heads of keys do not match 1 of values"),
    "more values": ([*HEADS[:2], numbers(2, 6, 6, 5)], {}, "3 heads of keys do not match 6 of values"),
    "only earlier keys": ([*HEADS, None, CACHE[0]], {}, "Attention has only one of the operands 4 and 5"),
    "only earlier values": ([*HEADS, None, None, CACHE[1]], {}, "Attention has only one of the operands 4 and 5"),
    "no count": ([*FLAT], {}, "Attention has no attribute 'q_num_heads'"),
}


@pytest.mark.parametrize("softcap", [0.0, 1.0])
@pytest.mark.parametrize("case", WRONG)
def test_heads_that_cannot_be_are_refused(case: str, softcap: float) -> None:
    """Also where the parts of the standard, not the operator, would compute them."""
    operands, attributes, expected = WRONG[case]
    model = SingleNode("Attention", operands, 23, {**attributes, "softcap": softcap}, 1).model()
    model.graph.node[0].name = "heads"
    with pytest.raises(ModelError, match=f"^node 'heads': {expected}"):
        import_model(model)


@pytest.mark.parametrize(("attributes", "outputs"), [({"softcap": 2.0}, 1), ({"softmax_precision": 1}, 1), ({}, 4)])
def test_parts_of_the_standard(attributes: dict[str, Any], outputs: int) -> None:
    cache = [None, *CACHE] if outputs > 1 else []
    node = SingleNode("Attention", [*HEADS, *cache], 23, attributes, outputs)
    assert attentions(import_model(node.model())) == 0
    assert_equal(node.by_us(), node.by_reference()[:outputs], rtol=1e-5, atol=1e-5)

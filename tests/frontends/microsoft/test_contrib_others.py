"""onnxruntime's other operators give what it computes: gates, states, forms of ONNX's own operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from contrib_cases import Contrib, below, normal

from glow_mlir.errors import ModelError, UnsupportedError, UnsupportedOperatorsError

X = normal(2, 3, 8)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("kind", "operands", "attributes"),
    [
        ("GatedRMSNorm", [X, normal(4), normal(2, 3, 8)], {}),
        ("GatedRMSNorm", [X, normal(8), normal(2, 3, 8)], {"activation": "sigmoid", "epsilon": 1e-2}),
        ("GatedAdd", [X, normal(2, 3, 8), normal(2, 3, 1)], {}),
        ("ScaledSiLU", [X], {"alpha": 1.5}),
        ("ScaledSiLU", [X, np.array(0.7, np.float32)], {}),
    ],
)
def test_gates(kind: str, operands: list[np.ndarray], attributes: Mapping[str, Any], dtype: str) -> None:
    Contrib(kind, [array.astype(dtype) for array in operands], attributes).check()


def test_gates_of_linear_attention() -> None:
    vectors = [normal(8), normal(8)]
    Contrib("LinearAttentionGate", [X, *vectors]).check()
    Contrib("LinearAttentionGate", [X, *vectors, normal(2, 3, 8)], results=(0, 1)).check()


def test_gated_units() -> None:
    """Which onnxruntime has on GPUs only."""
    gate, value = normal(2, 3, 4) * 2, normal(2, 3, 4) * 2

    def wanted(alpha: float, beta: float, limit: float) -> np.ndarray:
        g, v = np.minimum(gate, limit).astype(np.float64), np.clip(value, -limit, limit)
        return (g / (1 + np.exp(-alpha * g)) * (v + beta)).astype(np.float32)

    Contrib("SwiGLU", [gate, value]).check([wanted(1.0, 0.0, np.inf)])
    attributes = {"activation_alpha": 1.7, "activation_beta": 1.0, "limit": 0.8}
    Contrib("SwiGLU", [np.concatenate([gate, value], 2)], attributes).check([wanted(1.7, 1.0, 0.8)])


@pytest.mark.parametrize("attributes", [{}, {"activation": "silu", "dilation": 2}], ids=str)
@pytest.mark.parametrize("layout", ["first", "last", "axes"])
@pytest.mark.parametrize("with_state", [False, True])
def test_convolutions_with_a_state(attributes: Mapping[str, Any], layout: str, with_state: bool) -> None:
    reach = 2 * attributes.get("dilation", 1)
    x, state = normal(2, 6, 5), normal(2, 6, reach)
    if layout != "first":
        x, state = (np.ascontiguousarray(array.transpose(0, 2, 1)) for array in (x, state))
    if layout == "axes":
        x, state = (array.reshape(*array.shape[:2], 2, 3) for array in (x, state))
    operands = [x, normal(6, 1, 3), normal(6), state if with_state else None]
    Contrib("CausalConvWithState", operands, {**attributes, "channels_last": int(layout != "first")}, (0, 1)).check()


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("with_state", [False, True])
def test_linear_attention(rule: str, with_state: bool) -> None:
    heads, length, width = 2, 4, 8
    query, key, value = (normal(2, length, heads * width) for _ in range(3))
    key = key / np.linalg.norm(key.reshape(2, length, heads, width), axis=-1).repeat(width, -1).reshape(key.shape)
    state = normal(2, heads, width, width) if with_state else None
    decay = -np.abs(normal(2, length, heads)) if "gated" in rule else None
    beta = np.abs(normal(2, length, heads)) / 4 if "delta" in rule else None
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    operands = [query, key.astype(np.float32), value, state, decay, beta]
    Contrib("LinearAttention", operands, attributes, (0, 1)).check()


def test_forms_of_operators_of_onnx() -> None:
    for case in (
        Contrib("Trilu", [normal(4, 5), np.array(1)]),
        Contrib("GatherND", [X, below(2, 3, 2)]),
        Contrib("Pad", [normal(2, 3), np.array([0, 1, 2, 0]), np.array(0.5, np.float32)], constant=(1,)),
        Contrib("GridSample", [normal(1, 2, 4, 4), normal(1, 3, 3, 2)], {"mode": "bilinear"}),
        Contrib("ExpandDims", [X, np.array(1, np.int32)], constant=(1,)),
        Contrib("ExpandDims", [X, np.array(-1, np.int32)], constant=(1,)),
        Contrib("CDist", [normal(3, 5), normal(4, 5)], {"metric": "euclidean"}),
        Contrib("CDist", [normal(3, 5), normal(4, 5)], {"metric": "sqeuclidean"}),
        Contrib("MatMulInteger16", [below(90, 2, 3, 4, dtype="int16"), below(90, 4, 5, dtype="int16") - 40]),
        Contrib("UnfoldTensor", [normal(2, 7, 3)], {"dim": 1, "size": 3, "step": 2}),
        Contrib("UnfoldTensor", [normal(2, 7)], {"size": 2}),
        Contrib("Range", [np.array(1, np.float32), np.array(5, np.float32)], constant=(0, 1)),
        Contrib("Range", [np.array(5), np.array(1), np.array(-2)], constant=(0, 1, 2)),
        Contrib("QuantizeLinear", [X, np.array(0.1, np.float32), np.array(7, np.uint16)], constant=(1, 2)),
        Contrib("DequantizeLinear", [below(99, 4, dtype="int16"), np.array(0.1, np.float32), np.array(7, np.int16)]),
    ):
        case.check()


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("columns", "depth", "block"), [(12, 32, 16), (5, 48, 64)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_with_codes_of_tables(kind: int, columns: int, depth: int, block: int, dtype: str) -> None:
    count = columns * depth
    operands = [normal(3, depth), below(256, -(-count // 2), dtype="uint8"), np.abs(normal(-(-count // block)))]
    operands = [operands[0].astype(dtype), operands[1], operands[2].astype(dtype)]
    attributes = {"N": columns, "K": depth, "block_size": block, "quant_type": kind}
    Contrib("MatMulBnb4", operands, attributes, constant=(1, 2)).check()


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    weights = [normal(6, 1, 3), normal(6)]
    for kind, operands, attributes, error, said in (
        ("GatedRMSNorm", [X, normal(3), X], {}, ModelError, "8 elements do not fill groups of 3"),
        ("GatedRMSNorm", [X, normal(8), X], {"activation": "tanh"}, UnsupportedError, "the activation 'tanh'"),
        ("SwiGLU", [normal(3)], {}, ModelError, "cannot be halved"),
        ("CausalConvWithState", [normal(2, 5, 4), *weights], {}, ModelError, "do not fit an input (2, 5, 4)"),
        ("CausalConvWithState", [normal(2, 6, 4), *weights, normal(2, 6, 1)], {}, ModelError, "a state of shape"),
        ("CausalConvWithState", [normal(2, 6, 4), *weights], {"state_window": 2}, UnsupportedError, "several tokens"),
        ("CDist", [normal(3, 5), normal(4, 5)], {"metric": "cosine"}, UnsupportedError, "the metric 'cosine'"),
        ("UnfoldTensor", [X], {"size": 9}, ModelError, "slices of 9 by 1 of 8"),
    ):
        assert said in Contrib(kind, operands, attributes).refusal(error)
    wrong = Contrib(
        "MatMulBnb4",
        [X, below(9, 4, dtype="uint8"), normal(2)],
        {"N": 3, "K": 8, "block_size": 16, "quant_type": 0},
        constant=(1, 2),
    )
    assert "4 bytes and 2 scales do not fit 3 rows of 8" in wrong.refusal(ModelError)


def test_reasons_are_told_where_an_operator_is_not_supported() -> None:
    said = Contrib("GreedySearch", [X]).refusal(UnsupportedOperatorsError)
    assert "com.microsoft.GreedySearch: it calls a decoder graph until sequences end" in said
    assert "com.microsoft.Unheard ('Unheard')" in Contrib("Unheard", [X]).refusal(UnsupportedOperatorsError)

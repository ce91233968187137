"""What onnxruntime fuses into one operator gives what it computes: activations, sums before norms, products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from contrib_cases import Contrib, below, normal

from glow_mlir.errors import ModelError, UnsupportedError

X = normal(2, 3, 8)
FLOATS = ("float32", "float16")


def of(dtype: str, *arrays: np.ndarray | None) -> list[np.ndarray | None]:
    """The arrays as that type."""
    return [None if array is None else array.astype(dtype) for array in arrays]


@pytest.mark.parametrize(
    "case",
    [
        Contrib("Gelu", [X]),
        Contrib("BiasGelu", [X, normal(8)]),
        Contrib("FastGelu", [X]),
        Contrib("FastGelu", [X, normal(8)]),
        Contrib("FastGelu", of("float16", X, normal(8))),
        Contrib("QuickGelu", [X]),
        Contrib("QuickGelu", [X], {"alpha": 0.7}),
        Contrib("QuickGelu", of("float16", X)),
    ],
    ids=str,
)
def test_activations(case: Contrib) -> None:
    case.check()


VECTORS = [normal(8) + 1, normal(8), normal(8)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("results", [(0,), (0, 3)])
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("SkipLayerNormalization", VECTORS),
        ("SkipLayerNormalization", VECTORS[:2]),
        ("SkipLayerNormalization", VECTORS[:1]),
        ("SkipLayerNormalization", [VECTORS[0], None, VECTORS[2]]),
        ("SkipSimplifiedLayerNormalization", VECTORS[:2]),
        ("SkipSimplifiedLayerNormalization", VECTORS[:1]),
    ],
)
@pytest.mark.parametrize("skip", [X[:, ::-1].copy(), X[:1].copy(), X[0].copy()], ids=["same", "one", "rows"])
def test_normalizations_of_sums(
    kind: str, parameters: list[np.ndarray | None], skip: np.ndarray, results: tuple[int, ...], dtype: str
) -> None:
    Contrib(kind, of(dtype, X, skip, *parameters), {"epsilon": 1e-3}, results).check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_statistics_of_sums(kind: str, dtype: str) -> None:
    """onnxruntime has these on GPUs only, whose f32 is what they are in."""
    x, skip, scale = (array.astype(dtype) for array in (X, X[:, ::-1], VECTORS[0]))
    total = x + skip
    wide = total.astype(np.float64)
    mean = wide.mean(-1, keepdims=True) * (kind == "SkipLayerNormalization")
    inverse = 1 / np.sqrt(((wide - mean) ** 2).mean(-1, keepdims=True) + 1e-3)
    normalized = ((wide - mean) * inverse * scale.astype(np.float64)).astype(dtype)
    case = Contrib(kind, [x, skip, scale], {"epsilon": 1e-3}, (0, 2, 3))
    case.check([normalized, inverse.astype(np.float32), total])


@pytest.mark.parametrize("dtype", [*FLOATS, "float64"])
@pytest.mark.parametrize("results", [(0,), (0, 1)])
@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_normalization_in_the_domain_of_onnx(axis: int, results: tuple[int, ...], dtype: str) -> None:
    scale = normal(*X.shape[axis:])
    case = Contrib("SimplifiedLayerNormalization", of(dtype, X, scale), {"axis": axis}, results, domain="")
    case.check()


WORDS, SEGMENTS, PLACES = below(9, 2, 4, dtype="int32"), below(2, 2, 4, dtype="int32"), below(6, 2, 4, dtype="int32")
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
TABLES = [normal(9, 8), normal(6, 8), normal(2, 8), normal(8), normal(8)]


@pytest.mark.parametrize(
    "operands",
    [
        [WORDS, SEGMENTS, *TABLES, MASK],
        [WORDS, SEGMENTS, *TABLES, MASK, PLACES],
        [WORDS, SEGMENTS, *TABLES, None, PLACES[:1]],
        [WORDS, None, *TABLES[:2], None, *TABLES[3:]],
    ],
    ids=["mask", "places", "same places", "no segments"],
)
@pytest.mark.parametrize("results", [(0,), (0, 1), (0, 1, 2)])
def test_embeddings(operands: list[np.ndarray | None], results: tuple[int, ...]) -> None:
    attributes = {} if 1 in results else {"mask_index_type": 0}
    Contrib("EmbedLayerNormalization", operands, attributes, results).check()


TURNS: list[Mapping[str, int]] = [
    {},
    {"transA": 1},
    {"transB": 1},
    {"transBatchA": 1},
    {"transBatchB": 1, "transB": 1},
    {"transBatchA": 1, "transA": 1, "transBatchB": 1},
]


@pytest.mark.parametrize("turns", TURNS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.125])
def test_products_of_transposed_operands(turns: Mapping[str, int], alpha: float) -> None:
    """Of matrices in two batches; each operand is what the attributes make right."""
    operands = [normal(2, 4, 3, 5), normal(2, 4, 5, 6)]
    for place, side in enumerate("AB"):
        if turns.get(f"trans{side}"):
            operands[place] = operands[place].swapaxes(-1, -2)
        if turns.get(f"transBatch{side}"):
            operands[place] = np.moveaxis(operands[place], -2, 0)
    case = Contrib("FusedMatMul", [np.ascontiguousarray(a) for a in operands], {**turns, "alpha": alpha})
    case.check()


def test_products_of_vectors_and_under_the_old_name() -> None:
    Contrib("FusedMatMul", [normal(5), normal(5, 6)], {"transA": 1, "alpha": 2.0}).check()
    Contrib("FusedMatMul", [normal(4, 5), normal(5)], {"transB": 1}).check()
    Contrib("TransposeMatMul", [normal(2, 5, 4), normal(5, 6)], {"transA": 1, "alpha": 0.5}).check()
    Contrib("FusedMatMul", of("float64", normal(2, 5, 4), normal(5, 6)), {"transA": 1}).check()


ACTIVATIONS: list[Mapping[str, Any]] = [
    {"activation": "Relu"},
    {"activation": "Tanh"},
    {"activation": "Sigmoid"},
    {"activation": "LeakyRelu", "activation_alpha": 0.3},
    {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
    {"activation": "Elu", "activation_alpha": 0.7},
    {"activation": "Softplus"},
    {"activation": "Softsign"},
    {"activation": "Selu", "activation_alpha": 1.5, "activation_gamma": 1.1},
    {"activation": "ThresholdedRelu", "activation_alpha": 0.2},
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_gemm_with_activation(activation: Mapping[str, Any]) -> None:
    operands = [normal(4, 5), normal(6, 4), normal(6)]
    Contrib("FusedGemm", operands, {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0, **activation}).check()
    Contrib("FusedGemm", [normal(3, 5), normal(5, 2)], activation).check()


CONV: Mapping[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
CONV_ACTIVATIONS: list[Mapping[str, Any]] = [
    {},
    {"activation": "Relu"},
    {"activation": "Tanh"},
    {"activation": "Sigmoid"},
    {"activation": "LeakyRelu", "activation_params": [0.2]},
    {"activation": "Clip", "activation_params": [-0.5, 1.0]},
    {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
]


@pytest.mark.parametrize("activation", CONV_ACTIVATIONS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_convolution_with_sum_and_activation(activation: Mapping[str, Any], dtype: str) -> None:
    image, filters, bias, addend = normal(1, 4, 6, 6), normal(8, 4, 3, 3), normal(8), normal(1, 8, 6, 6)
    for operands in ([image, filters], [image, filters, bias], [image, filters, bias, addend]):
        if dtype == "float16" and activation:
            continue  # onnxruntime has no such convolution for processors.
        Contrib("FusedConv", of(dtype, *operands), {**CONV, **activation}).check()
    grouped = [normal(2, 4, 6, 6), normal(4, 2, 3, 3), normal(4)]
    Contrib("FusedConv", grouped, {"strides": [2, 2], "group": 2, "auto_pad": "SAME_UPPER", **activation}).check()


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    odd = Contrib("FusedGemm", [normal(3, 5), normal(5, 2)], {"activation": "Sine"})
    assert "the activation 'Sine' is not supported, only" in odd.refusal(UnsupportedError)
    flat = Contrib("SkipLayerNormalization", [normal(8), normal(8), normal(8)])
    assert "operand 0 of SkipLayerNormalization has 1 axes" in flat.refusal(ModelError)
    alone = Contrib("EmbedLayerNormalization", [WORDS[0], SEGMENTS, *TABLES])
    assert "operand 0 of EmbedLayerNormalization has 1 axes" in alone.refusal(ModelError)

"""onnxruntime's mixtures of experts give what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from contrib_cases import Contrib, normal

from glow_mlir.errors import ModelError, UnsupportedError

RANDOM = np.random.default_rng(5)
TOKENS, WIDTH, INNER, EXPERTS = 5, 32, 64, 4
X, SCORES = normal(TOKENS, WIDTH), 3 * normal(TOKENS, EXPERTS)
SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1}


def weights(columns: int = INNER) -> list[Any]:
    """Those of the first product, of so many columns, and of the second, with biases."""
    shapes = ((EXPERTS, columns, WIDTH), (EXPERTS, columns), (EXPERTS, WIDTH, INNER), (EXPERTS, WIDTH))
    return [normal(*shape) / 4 for shape in shapes]


@pytest.mark.parametrize("attributes", [{}, {"k": 2}, {"k": 3, "normalize_routing_weights": 1}], ids=str)
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("x", [X, X[:4].reshape(2, 2, WIDTH), X[:1]], ids=["rows", "batch", "one"])
def test_two_products(attributes: Mapping[str, Any], activation: str, x: np.ndarray) -> None:
    operands = [x, SCORES[: x.size // WIDTH], *weights()]
    Contrib("MoE", operands, {**attributes, "activation_type": activation}, constant=range(2, 6)).check()


@pytest.mark.parametrize("limits", [{}, {"swiglu_limit": 0.5, "activation_alpha": 1.7, "activation_beta": 1.0}])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gated_experts(limits: Mapping[str, Any], dtype: str) -> None:
    operands = [array.astype(dtype) for array in (X, SCORES, *weights(2 * INNER))]
    Contrib("MoE", operands, {"k": 2, **SWIGLU, **limits}).check()
    operands[3] = operands[5] = None
    Contrib("MoE", operands, {"k": 2, **SWIGLU, **limits}, constant=(2, 4)).check()


def test_gates_in_other_columns_or_apart() -> None:
    """Which onnxruntime has on GPUs only: they are the same as those in turn."""
    first, bias, *second = weights(2 * INNER)
    wanted = Contrib("MoE", [X, SCORES, first, bias, *second], {"k": 2, **SWIGLU}).expected()
    halves = [[array[:, place::2] for array in (first, bias)] for place in range(2)]
    joined = [np.concatenate(pair, 1) for pair in zip(*halves, strict=True)]
    Contrib("MoE", [X, SCORES, *joined, *second], {"k": 2, **SWIGLU, "swiglu_fusion": 2}).check(wanted)
    apart = [*map(np.ascontiguousarray, halves[0]), *second, *map(np.ascontiguousarray, halves[1])]
    Contrib("MoE", [X, SCORES, *apart], {"k": 2, "activation_type": "swiglu"}).check(wanted)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes along the last axis side by side in bytes, the first ones lowest."""
    count = 8 // bits
    filled = np.zeros((*codes.shape[:-1], -(-codes.shape[-1] // count) * count), np.uint8)
    filled[..., : codes.shape[-1]] = codes
    return sum((filled[..., place::count] << (bits * place) for place in range(count)), np.zeros((), np.uint8))


def quantized(columns: int, depth: int, bits: int, block: int, points: bool) -> list[Any]:
    """Codes, scales and zero points."""
    blocks = depth // block if block else 1
    codes = RANDOM.integers(0, 1 << bits, (EXPERTS, columns, depth))
    scales = (RANDOM.uniform(0.2, 0.8, (EXPERTS, columns, blocks)) / (1 << bits)).astype(np.float32)
    zeros = RANDOM.integers(0, 1 << bits, (EXPERTS, columns, blocks))
    if not block:
        scales, zeros = scales[..., 0], zeros[..., 0]
    return [packed(codes, bits), scales, packed(zeros, bits) if points else None]


@pytest.mark.parametrize(("bits", "block"), [(2, 0), (4, 0), (8, 0), (4, 32), (8, 32)])
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("attributes", [SWIGLU, {"activation_type": "silu"}], ids=str)
def test_experts_of_codes(bits: int, block: int, points: bool, attributes: Mapping[str, Any]) -> None:
    columns = INNER * (1 + ("swiglu_fusion" in attributes))
    first, second = quantized(columns, WIDTH, bits, block, points), quantized(WIDTH, INNER, bits, block, points)
    biases = [normal(EXPERTS, columns), normal(EXPERTS, WIDTH)]
    operands = [X, SCORES, *first[:2], biases[0], *second[:2], biases[1]]
    if points:
        operands += [None] * 3 + [first[2], second[2]]
    sizes = {"expert_weight_bits": bits, "k": 2, **({"block_size": block} if block else {})}
    constant = [place for place in range(2, len(operands)) if operands[place] is not None]
    # onnxruntime rounds rows to codes of 8 bits before it multiplies them with blocks of such codes.
    tolerance = 3e-2 if (bits, block) == (8, 32) else 2e-5
    Contrib("QMoE", operands, {**attributes, **sizes}, constant=constant, tolerance=tolerance).check()


@pytest.mark.parametrize("normalized", [0, 1])
def test_shares_that_are_given(normalized: int) -> None:
    first, second = quantized(2 * INNER, WIDTH, 4, 32, False), quantized(WIDTH, INNER, 4, 32, False)
    operands = [X, SCORES, *first[:2], None, *second[:2], *[None] * 7, np.abs(normal(TOKENS, EXPERTS))]
    attributes = {**SWIGLU, "k": 2, "block_size": 32, "normalize_routing_weights": normalized}
    Contrib("QMoE", operands, attributes, constant=(2, 3, 5, 6)).check()


def test_what_is_not_supported_is_refused_in_one_line() -> None:
    given = [X, SCORES, *weights()]
    for attributes, kind, said in (
        ({"use_sparse_mixer": 1}, UnsupportedError, "a sparse mixer is not supported"),
        ({"activation_type": "sine"}, UnsupportedError, "the activation 'sine' is not supported"),
        ({"k": 9}, ModelError, "scores of 4 experts do not fit weights of 4, of which 9 are chosen"),
        ({"activation_type": "swiglu"}, ModelError, "64 columns do not fit swiglu_fusion"),
    ):
        assert said in Contrib("MoE", given, attributes).refusal(kind)
    first, second = quantized(INNER, WIDTH, 4, 0, False), quantized(WIDTH, INNER, 4, 0, False)
    operands = [X, SCORES, *first[:2], None, *second[:2]]
    for attributes, kind, said in (
        ({"quant_type": "fp4"}, UnsupportedError, "weights of the kind 'fp4'"),
        ({"weights_prepacked": 1}, UnsupportedError, "packed for an onnxruntime kernel"),
        ({"expert_weight_bits": 3}, UnsupportedError, "quantized values of 3 bits are not supported"),
        ({"block_size": 16}, ModelError, "scales (4, 64, 1) are not (4, 64, 2)"),
    ):
        assert said in Contrib("QMoE", operands, attributes, constant=(2, 3, 5, 6)).refusal(kind)

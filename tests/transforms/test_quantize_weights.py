"""Weights that are rounded to blocks of codes: how near their networks are, on which backend, and how small."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import bert_encoder, random_inputs

from glow_mlir import InferenceSession
from glow_mlir.errors import OptionError
from glow_mlir.options.compilation import WEIGHTS
from glow_mlir.quantization.weights import quantize_blocks

MIN_COSINE = {"int8": 0.9999, "int4": 0.99}
"""The least cosine to the results of f32."""


def results(model: onnx.ModelProto, weights: str, backend: str = "cpu", keep: tuple[str, ...] = ()) -> np.ndarray:
    """All results of a network on seeded inputs, one behind the other."""
    inputs = random_inputs(model, np.random.default_rng(3))
    session = InferenceSession(model, backend=backend, weights=weights, keep_precision=keep, cache=False)
    return np.concatenate([array.reshape(-1).astype(np.float64) for array in session.run(None, inputs)])


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    """The cosine of the angle between two lists of numbers."""
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_networks_with_rounded_weights_are_near_on_both_backends(weights: str) -> None:
    model = bert_encoder(layers=1, length=16)
    exact, found = results(model, "f32"), results(model, weights)
    assert MIN_COSINE[weights] < cosine(found, exact) < 1.0
    np.testing.assert_allclose(results(model, weights, "interpreter"), found, rtol=1e-3, atol=1e-3)


def test_operators_that_are_kept_keep_their_weights() -> None:
    model = bert_encoder(layers=1, length=16)
    kept = results(model, "int4", keep=("matmul", "gath*"))
    np.testing.assert_array_equal(kept, results(model, "f32"))


def test_codes_and_narrow_floats_go_together() -> None:
    """Those of codes compute in f32 then, and the others in bf16."""
    model = bert_encoder(layers=1, length=16)
    inputs = random_inputs(model, np.random.default_rng(3))
    both, bf16 = (
        InferenceSession(model, precision="bf16", weights=weights, cache=False).run(None, inputs)[0].reshape(-1)
        for weights in ("int8", "f32")
    )
    assert 0.999 < cosine(both.astype(np.float64), bf16.astype(np.float64)) < 1.0


def test_weights_that_there_are_not_are_refused() -> None:
    with pytest.raises(OptionError, match="no weights 'int5'"):
        InferenceSession(bert_encoder(layers=1, length=8), weights="int5", cache=False)


@given(
    bits=st.sampled_from(list(WEIGHTS.values())),
    block=st.sampled_from((16, 32, 64)),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 100)),
    seed=st.integers(0, 99),
    magnitude=st.sampled_from((0.0, 1e-30, 1.0, 1e30)),
)
def test_codes_are_within_half_a_step_or_one_at_the_end_of_the_range(
    bits: int, block: int, shape: tuple[int, int], seed: int, magnitude: float
) -> None:
    weights = (np.random.default_rng(seed).normal(size=shape) * magnitude).astype(np.float32)
    codes, scales = quantize_blocks(weights, bits, block)
    steps = np.repeat(np.abs(scales.astype(np.float64)), block, axis=1)[:, : shape[1]]
    signed = np.repeat(scales.astype(np.float64), block, axis=1)[:, : shape[1]]
    found = (codes.astype(np.float64) - (1 << bits - 1)) * signed
    at_end = codes == (1 << bits) - 1
    limit = np.where(at_end, 1.0, 0.5) * steps * (1 + 1e-6) + 1e-6 * np.abs(weights)
    assert codes.shape == weights.shape
    assert (np.abs(found - weights) <= limit).all()

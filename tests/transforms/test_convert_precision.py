"""Networks in narrower floats: near those of f32, the same on both backends, and with half the weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models import bert_encoder, model_named, random_inputs

from glow_mlir import InferenceSession
from glow_mlir.errors import OptionError

NETWORKS = {
    "squeezenet": lambda: model_named("squeezenet"),
    "bert": lambda: bert_encoder(layers=1, length=16),
}
MIN_COSINE = {"bf16": 0.999, "f16": 0.99999}
"""The least cosine to the results of f32: 8 bits of a significand are kept, or 11."""


def results(model: onnx.ModelProto, backend: str, precision: str) -> np.ndarray:
    """All results of a network on seeded inputs, one behind the other."""
    inputs = random_inputs(model, np.random.default_rng(3))
    session = InferenceSession(model, backend=backend, precision=precision, cache=False)
    found = session.run(None, inputs)
    assert all(array.dtype == np.float32 for array in found)
    return np.concatenate([array.reshape(-1).astype(np.float64) for array in found])


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    """The cosine of the angle between two lists of numbers."""
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


@pytest.mark.parametrize("name", ["squeezenet", "bert"])
@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_narrow_floats_are_near(name: str, precision: str) -> None:
    model = NETWORKS[name]()
    exact, found = results(model, "cpu", "f32"), results(model, "cpu", precision)
    assert MIN_COSINE[precision] < cosine(found, exact) < 1.0
    assert cosine(results(model, "interpreter", precision), exact) > MIN_COSINE[precision]


def test_precision_that_there_is_not_is_refused() -> None:
    with pytest.raises(OptionError, match="no precision 'f8'"):
        InferenceSession(bert_encoder(layers=1, length=8), precision="f8", cache=False)

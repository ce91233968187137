"""Whole models on the CPU backend agree with onnxruntime."""

from __future__ import annotations

from typing import cast

import numpy as np
import onnxruntime
import pytest
from breadth import long_ones
from hostile_names import renamed
from models import BUILT, LARGE, LIGHT, model_named, random_inputs

from glow_mlir import onnx_backend

TRIALS = 3


@pytest.mark.parametrize("name", long_ones([*LIGHT, *BUILT], LARGE.__contains__))
def test_model_agrees_with_onnxruntime(name: str) -> None:
    """
    Three seeded inputs each, within 1e-3 relative; the outputs vary, so that agreement means something.

    Values have names that are hard on text.
    """
    model, _ = renamed(model_named(name))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    prepared = onnx_backend.prepare(model, cache=False)
    for trial in range(TRIALS):
        inputs = random_inputs(model, np.random.default_rng(100 + trial))
        expected = [np.asarray(array) for array in cast("list[np.ndarray]", session.run(None, inputs))]
        results = prepared.run(inputs)
        assert len(results) == len(expected)
        for result, reference in zip(results, expected, strict=True):
            assert np.std(reference) > 0.01
            scale = float(np.abs(reference).max())
            np.testing.assert_allclose(result, reference, rtol=1e-3, atol=1e-4 * scale)

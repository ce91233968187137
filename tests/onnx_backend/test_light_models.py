"""The light models that the onnx package ships, by its own backend tests."""

from __future__ import annotations

import os
import tempfile
import unittest
import warnings

import onnx.backend.test
from models import LIGHT

from glow_mlir import onnx_backend

# The runner keeps inputs and outputs of the light models in a folder of the user's, unless told otherwise.
os.environ.setdefault("ONNX_MODELS", tempfile.mkdtemp(prefix="glow-onnx-light-"))


def light_cases() -> dict[str, object]:
    """The suite's own tests of the light models on a CPU, by name."""
    names = [f"test_{name}_cpu" for name in LIGHT]
    with warnings.catch_warnings():
        # onnx computes the expectations of all its node tests here, some of which overflow on purpose.
        warnings.simplefilter("ignore")
        suite = onnx.backend.test.BackendTest(onnx_backend.GlowBackend, __name__)
    suite.include("^(" + "|".join(names) + ")$")
    # The suite's class holds thousands of other cases, which it would skip one by one.
    cases = suite.test_cases["OnnxBackendRealModelTest"]
    return {name: getattr(cases, name) for name in names}


TestLightModels = type("TestLightModels", (unittest.TestCase,), light_cases())

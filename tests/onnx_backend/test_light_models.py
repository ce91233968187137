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

with warnings.catch_warnings():
    # onnx computes the expectations of all its node tests here, some of which overflow on purpose.
    warnings.simplefilter("ignore")
    _SUITE = onnx.backend.test.BackendTest(onnx_backend.GlowBackend, __name__)
NAMES = [f"test_{name}_cpu" for name in LIGHT]
_SUITE.include("^(" + "|".join(NAMES) + ")$")
_CASES = _SUITE.test_cases["OnnxBackendRealModelTest"]

# The suite's class holds thousands of cases that the filter would only skip.
TestLightModels = type("TestLightModels", (unittest.TestCase,), {name: getattr(_CASES, name) for name in NAMES})

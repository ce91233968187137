"""The light models that the onnx package ships, by its own backend tests."""

from __future__ import annotations

import os
import tempfile

import onnx.backend.test

from glow_mlir import onnx_backend

# The runner keeps inputs and outputs of the light models in a folder of the user's, unless told otherwise.
os.environ.setdefault("ONNX_MODELS", tempfile.mkdtemp(prefix="glow-onnx-light-"))

_SUITE = onnx.backend.test.BackendTest(onnx_backend, __name__)
_SUITE.include(
    r"^test_(bvlc_alexnet|densenet121|inception_v1|inception_v2|resnet50|shufflenet|squeezenet|vgg19|zfnet512)_cpu$"
)
globals().update(_SUITE.test_cases)

"""Means of codes on microcontrollers: no weights, and the results of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from emulators import machine_for
from models import GraphBuilder
from onnx import TensorProto

from glow_mlir import InferenceSession
from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions

pytestmark = pytest.mark.extra
"""They run on processors that are emulated."""

POOLS: Mapping[str, Mapping[str, Any]] = {
    "AveragePool": {"kernel_shape": [25, 5], "strides": [25, 5]},
    "GlobalAveragePool": {},
    "small": {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]},
    "long": {"kernel_shape": [25, 20]},
}
SHAPES = {"AveragePool": (1, 4), "GlobalAveragePool": (1, 1), "small": (12, 20), "long": (1, 1)}
"""The spatial sizes of their results."""


def averaged(kind: str, channels: int, dtype: int) -> onnx.ModelProto:
    """A pool of codes between images with channels behind, as networks of keywords end in."""
    g = GraphBuilder(0)
    zero = np.array(-7 if dtype == TensorProto.INT8 else 131, np.int8 if dtype == TensorProto.INT8 else np.uint8)
    scale, other, zeros = g.weight(np.float32(0.03)), g.weight(np.float32(0.02)), g.weight(zero)
    x = g.node("Transpose", g.node("DequantizeLinear", "codes", scale, zeros), perm=[0, 3, 1, 2])
    operator = kind if kind in ("AveragePool", "GlobalAveragePool") else "AveragePool"
    mean = g.node(operator, x, **POOLS[kind])
    y = g.node("Transpose", g.node("QuantizeLinear", mean, other, zeros), perm=[0, 2, 3, 1])
    return g.model({"codes": (dtype, [1, 25, 20, channels])}, {y: [1, *SHAPES[kind], channels]}, opset=13, kind=dtype)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "neon", "riscv64", "wasm32"])
@pytest.mark.parametrize("kind", POOLS)
def test_means_of_codes_take_no_weights(kind: str, target: str) -> None:
    machine = machine_for(target)
    for channels, dtype in ((64, TensorProto.INT8), (7, TensorProto.UINT8)):
        model = averaged(kind, channels, dtype)
        bundle = bundle_of({"": model}, "a", CompileOptions("cpu", target=target))
        # What is left is the seal, and a scale for each place at the border.
        assert bundle.report.constants < 2048
        numpy_type = np.int8 if dtype == TensorProto.INT8 else np.uint8
        inputs = {"codes": np.random.default_rng(1).integers(0, 256, (1, 25, 20, channels)).astype(numpy_type)}
        (found,) = machine.run(bundle.artifact, inputs).outputs.values()
        np.testing.assert_array_equal(found, InferenceSession(model, backend="interpreter").run(None, inputs)[0])

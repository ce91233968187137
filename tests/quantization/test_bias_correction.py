"""Bias correction takes out what the rounding of weights adds to the results of a product on average."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import GraphBuilder, he
from onnx import TensorProto

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled

SAMPLES = 64


def matrix() -> onnx.ModelProto:
    """A product with a matrix."""
    g = GraphBuilder(0)
    weights, bias = g.weight(he(g.rng, (64, 16), 64)), g.weight(np.zeros(16, np.float32))
    return g.model(
        {"x": (TensorProto.FLOAT, [SAMPLES, 64])}, {g.node("Gemm", "x", weights, bias): [SAMPLES, 16]}, opset=17
    )


def convolution(pad: int = 0, group: int = 1) -> onnx.ModelProto:
    """A convolution of images, with a border of zeros or none."""
    g = GraphBuilder(1)
    weights, bias = g.weight(he(g.rng, (16, 8 // group, 3, 3), 72)), g.weight(np.zeros(16, np.float32))
    y = g.node("Conv", "x", weights, bias, pads=[pad] * 4, group=group)
    size = 6 + 2 * pad
    return g.model({"x": (TensorProto.FLOAT, [SAMPLES, 8, 8, 8])}, {y: [SAMPLES, 16, size, size]}, opset=17)


def mean_errors(model: onnx.ModelProto, folder: Path, is_corrected: bool) -> np.ndarray:
    """By how much each channel of the result is larger in codes than in floats, on average."""
    (argument,) = InferenceSession(model, backend="interpreter").get_inputs()
    inputs = {"x": np.random.default_rng(2).random(argument.shape, np.float32) + np.float32(0.5)}
    profiled(model, [inputs], backend="interpreter").write(folder / "p.json")
    quantize = Quantization(folder / "p.json", per_channel=False, bias_correction=is_corrected)
    (exact,) = InferenceSession(model, backend="interpreter").run(None, inputs)
    (found,) = InferenceSession(model, backend="interpreter", quantize=quantize).run(None, inputs)
    rest = tuple(axis for axis in range(exact.ndim) if axis != 1)
    return (found - exact).mean(axis=rest)


@pytest.mark.parametrize(
    ("build", "share"),
    [(matrix, 0.1), (convolution, 0.1), (lambda: convolution(1), 0.5)],
    ids=["matrix", "conv", "border"],
)
def test_mean_error_nearly_vanishes(tmp_path: Path, build: Callable[[], onnx.ModelProto], share: float) -> None:
    plain, corrected = (np.abs(mean_errors(build(), tmp_path, flag)) for flag in (False, True))
    assert plain.max() > 0.005
    assert corrected.mean() < share * plain.mean()


def test_channels_that_are_read_alone_have_no_known_mean(tmp_path: Path) -> None:
    plain, corrected = (mean_errors(convolution(group=8), tmp_path, flag) for flag in (False, True))
    np.testing.assert_array_equal(plain, corrected)

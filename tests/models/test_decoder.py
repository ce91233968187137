"""A decoder with weights that onnxruntime has put in blocks of codes: the numbers that onnxruntime computes."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from decoder import Product, decoder
from models import GraphBuilder, he, random_inputs
from onnx import TensorProto, helper

from glow_mlir import InferenceSession

BLOCK = 32


def by_onnxruntimes_quantizer(bits: int, is_symmetric: bool, level: int = 0, qdq: bool = False) -> Product:
    """
    Emits products with weights that the code of onnxruntime's MatMulNBitsQuantizer has rounded, in either of its forms.
    """
    quantizer = cast(Any, import_module("onnxruntime.capi._pybind_state"))

    def separate(g: GraphBuilder, x: str, weights: np.ndarray) -> str:
        inputs, outputs = weights.shape
        packed = np.zeros(inputs * outputs // 2, np.uint8)
        scales = np.zeros((inputs // BLOCK, outputs), np.float32)
        points = np.zeros(scales.size // 2, np.uint8)
        quantizer.quantize_qdq_matmul_4bits(packed, weights, scales, points, BLOCK, outputs, inputs, is_symmetric)
        kind = TensorProto.INT4 if is_symmetric else TensorProto.UINT4
        names: list[str] = []
        for array, shape in ((packed, weights.shape), (points, scales.shape)):
            names.append(f"codes{len(g.initializers)}")
            g.initializers.append(helper.make_tensor(names[-1], kind, shape, array.tobytes(), raw=True))
        operands = [names[0], g.weight(scales), *names[1 : 2 - is_symmetric]]
        return g.node("MatMul", x, g.node("DequantizeLinear", *operands, axis=0, block_size=BLOCK))

    def product(g: GraphBuilder, x: str, inputs: int, outputs: int) -> str:
        weights, blocks = he(g.rng, (inputs, outputs), 2 * inputs), inputs // BLOCK
        if qdq:
            return separate(g, x, weights)
        packed = np.zeros((outputs, blocks, BLOCK * bits // 8), np.uint8)
        scales, points = np.zeros((outputs, blocks), np.float32), np.zeros((outputs, blocks * bits // 8), np.uint8)
        quantize = getattr(quantizer, f"quantize_matmul_{bits}bits")
        quantize(packed, weights, scales, points, BLOCK, outputs, inputs, is_symmetric)
        operands = [g.weight(packed), g.weight(scales), *([] if is_symmetric else [g.weight(points)])]
        widths = {"bits": bits, "block_size": BLOCK, "N": outputs, "K": inputs, "accuracy_level": level}
        return g.node("MatMulNBits", x, *operands, domain="com.microsoft", **widths)

    return product


FORMS: dict[str, dict[str, Any]] = {
    "4 bits": {"bits": 4, "is_symmetric": True},
    "4 bits, zero points": {"bits": 4, "is_symmetric": False},
    "4 bits, rounded rows": {"bits": 4, "is_symmetric": True, "level": 4},
    "8 bits": {"bits": 8, "is_symmetric": True},
    "QDQ": {"bits": 4, "is_symmetric": True, "qdq": True},
    "QDQ, zero points": {"bits": 4, "is_symmetric": False, "qdq": True},
}


def by_onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime computes by the operators as they are."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(model.SerializeToString(), options).run(None, inputs)


@pytest.mark.parametrize("form", FORMS)
def test_decoder_agrees_with_onnxruntime(form: str) -> None:
    model = decoder(by_onnxruntimes_quantizer(**FORMS[form]))
    inputs = random_inputs(model, np.random.default_rng(5))
    expected = by_onnxruntime(model, inputs)
    # Where rows are rounded, the last digit of a number may change the code of one.
    tolerance = 2e-2 if "rounded" in form else 1e-4
    for backend in ("cpu", "interpreter"):
        found = InferenceSession(model, backend=backend, cache=False).run(None, inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=tolerance)


def test_weights_by_our_own_pass_are_as_near_as_those_of_onnxruntime() -> None:
    """Beside onnxruntime's quantizer, which uses as many codes, and no zero points either."""
    plain = decoder()
    inputs = random_inputs(plain, np.random.default_rng(5))
    exact = InferenceSession(plain, cache=False).run(None, inputs)[0]
    own = InferenceSession(plain, weights="int4", keep_precision=["gather"], cache=False).run(None, inputs)[0]
    theirs = by_onnxruntime(decoder(by_onnxruntimes_quantizer(4, is_symmetric=True)), inputs)[0]
    assert 0 < np.abs(own - exact).mean() < 1.1 * np.abs(theirs - exact).mean()

"""Kernels of sizes that are known at run time only compute with sizes of 0: no row, sums and products of nothing."""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import glow_mlir

RESULTS = {
    "rows": "MatMul (x, w)",
    "square": "MatMul (turned, x)",
    "linear": "Gemm (x, w, b)",
    "across": "Softmax <axis = 1> (x)",
    "down": "Softmax <axis = 0> (x)",
    "normalized": "LayerNormalization <axis = 1> (x, scale)",
    "sum": "ReduceSum <keepdims = 0> (x, first)",
    "sums": "ReduceSum <keepdims = 0> (x, second)",
    "total": "ReduceSum <keepdims = 0> (x)",
    "product": "ReduceProd <keepdims = 0> (x, first)",
    "length": "ReduceL2 <keepdims = 0> (x, first)",
    "means": "ReduceMean <keepdims = 0> (x, second)",
    "largest": "ReduceMax <keepdims = 0> (x, second)",
    "place": "ArgMax <axis = 1> (x)",
    "running": "CumSum (x, zero)",
    "along": "CumSum (x, one)",
    "stacked": "Concat <axis = 0> (x, x, table)",
    "beside": "Concat <axis = 1> (x, x)",
    "taken": "Gather (table, i)",
    "own": "Gather (x, i)",
    "by_element": "GatherElements (x, places)",
    "written": "ScatterND (table, column, x)",
    "added": 'ScatterElements <reduction = "add"> (table, places, x)',
    "padded": "Pad (x, pads)",
    "chosen": "Where (is_large, x, scale)",
    "convolved": "Conv (images, filter)",
    "pooled": "MaxPool <kernel_shape = [2, 2]> (images)",
    "averaged": "AveragePool <kernel_shape = [2, 2]> (images)",
    "attended": "MatMul (weights, x)",
}
"""Result → how it is computed of `x` [n, 4] and `i` [n], some of it by way of what `BEFORE` computes."""

BEFORE = """
    turned = Transpose (x)
    is_large = Greater (x, zero_float)
    column = Unsqueeze (i, second)
    like_x = Cast <to = 7> (x)
    places = Mul (like_x, zero)
    images = Reshape (x, image_shape)
    scores = MatMul (queries, turned)
    weights = Softmax <axis = 1> (scores)
"""

CONSTANTS = {
    "w": np.arange(12, dtype=np.float32).reshape(4, 3),
    "b": np.ones(3, np.float32),
    "scale": np.full(4, 2, np.float32),
    "first": np.array([0]),
    "second": np.array([1]),
    "zero": np.array(0),
    "one": np.array(1),
    "zero_float": np.array(0, np.float32),
    "table": np.arange(20, dtype=np.float32).reshape(5, 4),
    "pads": np.array([1, 0, 2, 0]),
    "image_shape": np.array([-1, 1, 2, 2]),
    "filter": np.ones((3, 1, 1, 1), np.float32),
    "queries": np.ones((2, 4), np.float32),
}


@cache
def model() -> bytes:
    """A model of all results."""
    integers = ("place",)
    outputs = ", ".join(f"{'int64' if name in integers else 'float'} {name}" for name in RESULTS)
    body = "\n".join(f"{name} = {computed}" for name, computed in RESULTS.items())
    header = '<ir_version: 8, opset_import: ["": 18]>'
    made = parser.parse_model(f"{header} graph (float[n, 4] x, int64[n] i) => ({outputs}) {{ {BEFORE} {body} }}")
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in CONSTANTS.items())
    return made.SerializeToString()


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_size_may_be_zero(backend: str) -> None:
    peer = onnxruntime.InferenceSession(model())
    session = glow_mlir.InferenceSession(model(), backend=backend, dimensions={"n": (0, 5)}, cache=False)
    for count in (3, 0, 5):
        given = {"x": np.random.default_rng(count).normal(size=(count, 4)).astype(np.float32), "i": np.arange(count)}
        expected = cast("list[np.ndarray]", peer.run(None, dict(given)))
        for name, found, wanted in zip(RESULTS, session.run(None, given), expected, strict=True):
            assert found.shape == wanted.shape, name
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=name)

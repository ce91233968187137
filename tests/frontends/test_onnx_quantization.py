"""ONNX's quantized operators: whose rows and columns scales are for."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("scale", [np.array([1, 2], np.float32), np.array([[1], [2]], np.float32)])
def test_scales_of_a_product_are_for_rows_of_the_left_and_columns_of_the_right(
    scale: np.ndarray, is_known: bool
) -> None:
    a, b = np.array([[1, 2], [3, 4]], np.uint8), np.array([[1, 2], [3, 4]], np.uint8)
    others = {
        "a_scale": scale,
        "a_zero": np.zeros(scale.shape, np.uint8),
        "b_scale": np.array([1, 0.5], np.float32),
        "b_zero": np.zeros(2, np.uint8),
        "y_scale": np.array([1, 2], np.float32),
        "y_zero": np.array([0, 3], np.uint8),
    }
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8}
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    given = {"a": a, "b": b, **({} if is_known else others)}
    inputs = [helper.make_tensor_value_info(name, kinds[x.dtype], x.shape) for name, x in given.items()]
    constants = [numpy_helper.from_array(x, name) for name, x in others.items()] if is_known else []
    output = helper.make_tensor_value_info("y", TensorProto.UINT8, (2, 2))
    graph = helper.make_graph([helper.make_node("QLinearMatMul", names, ["y"])], "g", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    left, right = a * np.array([[1], [2]]), b * np.array([1, 0.5])
    expected = np.round(left @ right / np.array([[1], [2]])) + np.array([[0], [3]])
    for backend in ("cpu", "interpreter"):
        (found,) = InferenceSession(model, backend=backend, cache=False).run(None, given)
        np.testing.assert_array_equal(found, expected)

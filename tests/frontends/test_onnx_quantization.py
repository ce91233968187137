"""ONNX's quantized operators: whose rows and columns scales are for."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glow_mlir import InferenceSession

SCALES: dict[str, tuple[list[str | int], dict[str, Any]]] = {
    "whole": ([], {}),
    "list": ([4], {"axis": 1}),
    "blocks": (["n", 2], {"axis": 1, "block_size": 3}),
}
"""What has a scale → the shape of scales for a value [n, 4], and attributes."""


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_scales_along_axes_of_numbers_leave_others_open(backend: str) -> None:
    nodes: list[NodeProto] = []
    outputs: list[ValueInfoProto] = []
    for kind, (_, attributes) in SCALES.items():
        for code in (TensorProto.INT8, TensorProto.UINT16, TensorProto.INT4, TensorProto.FLOAT8E4M3FN):
            codes, numbers = f"{kind}_{code}", f"{kind}_{code}_numbers"
            quantize = helper.make_node("QuantizeLinear", ["x", kind], [codes], output_dtype=code, **attributes)
            nodes += [quantize, helper.make_node("DequantizeLinear", [codes, kind], [numbers], **attributes)]
            outputs += [helper.make_tensor_value_info(codes, code, None)]
            outputs += [helper.make_tensor_value_info(numbers, TensorProto.FLOAT, None)]
    shapes = {"x": ["n", 4], **{kind: shape for kind, (shape, _) in SCALES.items()}}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = InferenceSession(model, backend=backend, dimensions={"n": (0, 5)}, cache=False)
    for count in (3, 0, 5):
        generator = np.random.default_rng(count)
        sizes = {
            name: [count if size == "n" else cast("int", size) for size in shape] for name, shape in shapes.items()
        }
        given = {name: generator.uniform(0.5, 3, shape).astype(np.float32) for name, shape in sizes.items()}
        given["whole"] = np.array(0.5, np.float32)
        expected = cast("list[np.ndarray]", ReferenceEvaluator(model).run(None, dict(given)))
        for output, found, wanted in zip(outputs, session.run(None, given), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=output.name)


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


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("zero", [7, 9])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_a_border_of_codes_is_one_of_numbers(mode: str, zero: int, backend: str) -> None:
    """Between quantizations of the same parameters, and of others."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["numbers"]),
        helper.make_node("Pad", ["numbers", "pads"], ["padded"], mode=mode),
        helper.make_node("QuantizeLinear", ["padded", "scale", "other"], ["y"]),
    ]
    constants = {
        "scale": np.array(0.5, np.float32),
        "zero": np.array(7, np.uint8),
        "other": np.array(zero, np.uint8),
        "pads": np.array([0, 1, 2, 0, 2, 1]),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = np.random.default_rng(0).uniform(-3, 100, (2, 3, 4)).astype(np.float32)
    (expected,) = cast("list[np.ndarray]", ReferenceEvaluator(model).run(None, {"x": x}))
    (found,) = InferenceSession(model, backend=backend, cache=False).run(None, {"x": x})
    np.testing.assert_array_equal(found, expected)

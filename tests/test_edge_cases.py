"""Models at the edge: no elements, narrow floats, layouts and filters that no kernel takes as they are."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from xdsl.parser import Parser

from glow_mlir import InferenceSession
from glow_mlir.context import new_context


def product(element: int, left: list[int], right: list[int]) -> ModelProto:
    """A matrix product of two inputs."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("a", element, left), helper.make_tensor_value_info("b", element, right)],
        [helper.make_tensor_value_info("y", element, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("shapes", [([0, 3], [3, 2]), ([2, 0], [0, 3]), ([2, 3], [3, 0]), ([2, 5], [5, 3])])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32])
def test_products_of_few_elements(element: int, shapes: tuple[list[int], list[int]]) -> None:
    """Rows, columns or the inner axis may be empty; f16 is computed in f32."""
    model = product(element, *shapes)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    rng = np.random.default_rng(0)
    inputs = {n: (rng.standard_normal(s) * 4).astype(dtype) for n, s in zip("ab", shapes, strict=True)}
    (result,) = InferenceSession(model, cache=False).run(None, inputs)
    evaluator = cast("Any", ReferenceEvaluator(model))
    expected = np.asarray(evaluator.run(None, inputs)[0])
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=2e-3)


CONVOLUTIONS = {
    "depthwise, filter at run time": ("1x7x7x9", "9x3x3x1", "1x5x5x9", "group = 9", ""),
    "channels first": ("1x3x7x7", "4x3x3x3", "1x4x7x7", 'pads = [1, 1, 1, 1], layout = "channels_first"', ""),
    "two groups, filter at run time": ("2x6x6x4", "6x3x3x2", "2x4x4x6", "group = 2", ""),
}


@pytest.mark.parametrize("name", list(CONVOLUTIONS))
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_convolutions_that_need_preparation(name: str, element: str) -> None:
    """The CPU agrees with the interpreter."""
    image, filter_, result, properties, _ = CONVOLUTIONS[name]
    text = f"""
glow_high.placeholder @x : tensor<{image}x{element}> {{input}}
glow_high.placeholder @f : tensor<{filter_}x{element}> {{input}}
glow_high.placeholder @y : tensor<{result}x{element}> {{output}}
glow_high.func @main(@x, @f, @y) {{
  %x = glow_high.get @x : tensor<{image}x{element}>
  %f = glow_high.get @f : tensor<{filter_}x{element}>
  %y = glow_high.conv %x, %f {{{properties}}} : tensor<{result}x{element}>
  glow_high.save %y, @y
}}
"""
    rng = np.random.default_rng(1)
    dtype = "float32" if element == "f32" else "float16"
    shapes = {"x": image, "f": filter_}
    inputs = {n: rng.standard_normal([int(d) for d in s.split("x")]).astype(dtype) for n, s in shapes.items()}
    modules = [Parser(new_context(), text).parse_module() for _ in range(2)]
    (result_cpu,) = InferenceSession(modules[0], cache=False).run(None, inputs)
    (expected,) = InferenceSession(modules[1], backend="interpreter").run(None, inputs)
    np.testing.assert_allclose(result_cpu, expected, rtol=1e-2 if element == "f16" else 1e-5, atol=1e-2)


def test_input_that_is_an_output() -> None:
    """An output may have the name of an input; both keep it."""
    described = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "graph", [described], [described, helper.make_tensor_value_info("y", 1, [3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    value = np.array([-1, 2, 3], np.float32)
    for backend in ("cpu", "interpreter"):
        session = InferenceSession(model, backend=backend, cache=False)
        assert [arg.name for arg in session.get_outputs()] == ["x", "y"]
        same, positive = session.run(None, {"x": value})
        np.testing.assert_array_equal(same, value)
        np.testing.assert_array_equal(positive, np.maximum(value, 0))

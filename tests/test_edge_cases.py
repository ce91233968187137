"""Models at the edge: no elements, narrow floats, layouts and filters that no kernel takes as they are."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from single_node import SingleNode, assert_equal
from xdsl.parser import Parser

from glow_mlir import InferenceSession
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.ir.context import new_context


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


def along(kind: str, shape: tuple[int, ...], axis: int, opset: int = 13) -> SingleNode:
    """An operator along an axis of a tensor without elements."""
    return SingleNode(kind, [np.zeros(shape, np.float32)], opset, {"axis": axis})


def over(kind: str, shape: tuple[int, ...], axis: int) -> SingleNode:
    """A reduction of a tensor without elements."""
    return SingleNode(kind, [np.zeros(shape, np.float32), np.array([axis], np.int64)], 18, constant=(1,))


EMPTY = [((0,), 0), ((0, 3), 0), ((0, 3), 1), ((2, 0), 1), ((2, 0, 3), 0), ((2, 0, 3), 1), ((2, 0, 3), 2)]
IMAGES = [(0, 2, 3, 3), (2, 0, 3, 3)]
ALONG = ("Hardmax", "Softmax", "LogSoftmax")
REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL2", "ReduceLogSumExp")
OF_NOTHING: list[SingleNode] = [
    *(along(kind, shape, axis, opset) for kind in ALONG for shape, axis in EMPTY for opset in (11, 13)),
    *(over(kind, shape, axis) for kind in REDUCTIONS for shape, axis in EMPTY),
    *(along("ArgMax", shape, axis) for shape, axis in EMPTY if shape[axis]),
    *(
        SingleNode("TopK", [np.zeros(shape, np.float32), np.array([0], np.int64)], 11, {"axis": axis}, 2, (1,))
        for shape, axis in EMPTY
    ),
    *(SingleNode("MaxPool", [np.zeros(shape, np.float32)], 12, {"kernel_shape": [2, 2]}) for shape in IMAGES),
    *(SingleNode("AveragePool", [np.zeros(shape, np.float32)], 11, {"kernel_shape": [2, 2]}) for shape in IMAGES),
    *(
        SingleNode("InstanceNormalization", [np.zeros(shape, np.float32), *[np.ones(shape[1], np.float32)] * 2], 6)
        for shape in IMAGES
    ),
    *(
        SingleNode("Attention", [np.zeros((1, 2, 3, 0), np.float32)] * 3, 23, {"is_causal": causal})
        for causal in (0, 1)
    ),
]


def named(case: SingleNode) -> str:
    """The operator, shape, attributes and opset of a case."""
    shape = "x".join(str(size) for size in np.shape(cast("Any", case.operands[0])))
    return f"{case.kind}-{shape}-{'-'.join(map(str, case.attributes.values()))}-{case.opset}"


@pytest.mark.parametrize("case", OF_NOTHING, ids=named)
def test_operators_on_nothing(case: SingleNode) -> None:
    """Operands have no elements; a sum over none is 0, a maximum -inf."""
    expected = case.by_reference()
    assert_equal(case.by_us(), expected)
    assert_equal(case.on_cpu(), expected)


@pytest.mark.parametrize("shape", IMAGES)
def test_responses_of_no_channels_are_normalized(shape: tuple[int, ...]) -> None:
    """ONNX's reference fails here."""
    x = np.zeros(shape, np.float32)
    case = SingleNode("LRN", [x], 13, {"size": 3})
    assert_equal(case.by_us(), [x])
    assert_equal(case.on_cpu(), [x])


@pytest.mark.parametrize(
    "case",
    [
        along("ArgMax", (0,), 0),
        along("ArgMin", (2, 0), 1),
        SingleNode("TopK", [np.zeros((2, 0), np.float32), np.array([1], np.int64)], 11, {}, 2, (1,)),
        SingleNode("Gather", [np.zeros((2, 0), np.float32), np.array([0], np.int64)], 13, {"axis": 1}),
        SingleNode("Conv", [np.zeros((1, 2, 0, 5), np.float32), np.ones((3, 2, 1, 1), np.float32)], 11),
        SingleNode("Resize", [np.zeros((1, 0), np.float32), None, np.ones(2, np.float32)], 13, constant=(2,)),
    ],
    ids=named,
)
def test_what_nothing_lacks_is_one_error(case: SingleNode) -> None:
    with pytest.raises((ModelError, UnsupportedError), match="node 'y0'"):
        case.on_cpu()

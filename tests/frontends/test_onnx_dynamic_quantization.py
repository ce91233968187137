"""Codes of numbers whose range is known at run time only have the bits that the standard and onnxruntime give them."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from breadth import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import QuantType, quantize_dynamic  # pyright: ignore[reportUnknownVariableType]

from glow_mlir import InferenceSession

COUNT = 8
"""Numbers of an input."""

WHOLE = st.integers(0, 255).map(np.float32) | st.integers(-99, 99).map(lambda number: np.float32(number * 41))
STEPS = st.integers(-2000, 2000).map(lambda number: np.float32(number / 16))
NUMBERS = arrays(np.float32, COUNT, elements=WHOLE | STEPS | st.floats(-(2.0**20), 2.0**20, width=32))
"""Numbers of an input: pixels, multiples of some numbers, of which many are ties, and any."""


def unoptimized(model: onnx.ModelProto) -> Any:
    """A session of onnxruntime that computes each operator as it stands."""
    options = cast("Any", onnxruntime.SessionOptions())
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def model_of(nodes: list[NodeProto], outputs: list[str], **constants: np.ndarray | np.generic) -> onnx.ModelProto:
    """A model of an input x; types and shapes of outputs follow."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [COUNT])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def written_out() -> list[NodeProto]:
    """DynamicQuantizeLinear as the standard spells it out."""
    steps: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
        ("ReduceMin", ["x"], "xmin", {"keepdims": 0}),
        ("Min", ["xmin", "least"], "low", {}),
        ("ReduceMax", ["x"], "xmax", {"keepdims": 0}),
        ("Max", ["xmax", "least"], "high", {}),
        ("Sub", ["high", "low"], "range", {}),
        ("Div", ["range", "most"], "scale", {}),
        ("Div", ["low", "scale"], "scaled", {}),
        ("Sub", ["least", "scaled"], "start", {}),
        ("Clip", ["start", "least", "most"], "clipped", {}),
        ("Round", ["clipped"], "rounded", {}),
        ("Cast", ["rounded"], "zero", {"to": TensorProto.UINT8}),
        ("QuantizeLinear", ["x", "scale", "zero"], "y", {}),
    )
    return [helper.make_node(kind, operands, [result], **fields) for kind, operands, result, fields in steps]


FORMS = {
    "operator": lambda: model_of(
        [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])], ["y", "scale", "zero"]
    ),
    "written-out": lambda: model_of(written_out(), ["y", "scale", "zero"], least=np.float32(0), most=np.float32(255)),
    "normalized": lambda: model_of(
        [
            helper.make_node("Div", ["x", "most"], ["share"]),
            helper.make_node("QuantizeLinear", ["share", "scale", "zero"], ["y"]),
        ],
        ["y"],
        most=np.float32(255),
        scale=np.float32(2 / 255),
        zero=np.uint8(3),
    ),
    "rounded": lambda: model_of(
        [helper.make_node("Div", ["x", "size"], ["parts"]), helper.make_node("Floor", ["parts"], ["y"])],
        ["y"],
        size=np.float32(41),
    ),
}
"""Name → a model whose results are decided by the last bit of a quotient by a constant."""


@cache
def sessions(form: str, accuracy: str, backend: str) -> tuple[InferenceSession, Any, ReferenceEvaluator]:
    """Ours, onnxruntime's and the reference of ONNX."""
    model = FORMS[form]()
    ours = InferenceSession(model, cache=False, backend=backend, accuracy=accuracy)
    return ours, unoptimized(model), ReferenceEvaluator(model)


def with_last(*numbers: float) -> np.ndarray:
    """An input of these behind ones that are small beside them, or zeros beside denormals."""
    first = float(any(abs(number) > 1 for number in numbers))
    return np.array([first] * (COUNT - len(numbers)) + list(numbers), np.float32)


def has_scale(x: np.ndarray) -> bool:
    """Whether the range of numbers has a scale that is neither 0 nor infinite: the standard says no code of others."""
    with np.errstate(over="ignore"):
        scale = (max(x.max(), np.float32(0)) - min(x.min(), np.float32(0))) / np.float32(255)
    return bool(0 < scale < np.inf)


@pytest.mark.parametrize(("accuracy", "backend"), [("default", "cpu"), ("strict", "cpu"), ("default", "interpreter")])
@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=examples(40))
@given(x=NUMBERS)
@example(x=with_last(1e-45))
@example(x=with_last(-1e-45))
@example(x=with_last(1e-43))
@example(x=with_last(2e-43, -2e-43))
@example(x=with_last(3e-40))
@example(x=with_last(3e38, -3e38))
@example(x=with_last(np.inf))
@example(x=with_last(-np.inf))
@example(x=with_last(np.inf, -np.inf))
def test_a_code_is_that_of_the_standard(form: str, accuracy: str, backend: str, x: np.ndarray) -> None:
    ours, theirs, standard = sessions(form, accuracy, backend)
    found = ours.run(None, {"x": x})
    for result, expected in zip(found, theirs.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(result, expected)
    if has_scale(x):
        for result, expected in zip(found, cast("list[np.ndarray]", standard.run(None, {"x": x})), strict=True):
            np.testing.assert_array_equal(result, expected)


def test_the_zero_point_is_computed_with_a_quotient() -> None:
    x = np.array([-15.25, 0, 7.625, 15.25, 1, 2, 3, 4], np.float32)
    _, scale, zero = sessions("operator", "default", "cpu")[0].run(None, {"x": x})
    assert (scale, zero) == (np.float32(30.5) / np.float32(255), 128)


def test_zeros_have_the_scale_of_onnxruntime() -> None:
    found = sessions("operator", "default", "cpu")[0].run(None, {"x": np.zeros(COUNT, np.float32)})
    assert [array.max() for array in found] == [0, 1, 0]


# ---- networks -----------------------------------------------------------------------------------------------------


def network(random: np.random.Generator) -> onnx.ModelProto:
    """Products of codes, and what has bits of its own in between, unlike sums of floats."""
    nodes: list[NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def node(kind: str, *operands: str, **fields: Any) -> str:
        result = f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, operands, [result], result, **fields))
        return result

    def constant(*shape: int) -> str:
        array = np.asarray(random.standard_normal(shape) * 0.4, np.float32)
        constants.append(numpy_helper.from_array(array, f"c{len(constants)}"))
        return constants[-1].name

    channels, value = 4, "x"
    for is_last in (*[False] * int(random.integers(3)), True):
        outputs, size = int(random.integers(2, 9)), int(random.choice([1, 3]))
        filters = constant(outputs, channels, size, size)
        value = node("Conv", value, filters, constant(outputs), pads=[size // 2] * 4, kernel_shape=[size, size])
        channels = outputs
        kind = str(random.choice(["Relu", "HardSwish", "Clip", "MaxPool", "Div", "Add", ""])) if not is_last else ""
        if kind == "MaxPool":
            value = node(kind, value, kernel_shape=[2, 2], strides=[1, 1])
        elif kind in ("Div", "Add"):
            value = node(kind, value, constant(channels, 1, 1))
        elif kind:
            value = node(kind, value)
    rows = node("Flatten", value)
    shape = [1, 4, 6, 6]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "net", given, [helper.make_tensor_value_info(rows, 1, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("seed", range(10))
def test_a_dynamically_quantized_network_has_the_bits_of_onnxruntime(seed: int) -> None:
    random = np.random.default_rng(seed)
    kind = QuantType.QUInt8 if seed % 2 else QuantType.QInt8
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, written = Path(folder) / "plain.onnx", Path(folder) / "written.onnx"
        onnx.save(network(random), plain)
        quantize_dynamic(plain, written, weight_type=kind, op_types_to_quantize=["Conv", "MatMul"])
        model = onnx.load(written)
    assert any(node.op_type == "ConvInteger" for node in model.graph.node)
    theirs, ours = unoptimized(model), InferenceSession(model, cache=False)
    for _ in range(4):
        x = np.asarray(random.standard_normal([1, 4, 6, 6]) * random.uniform(0.1, 10), np.float32)
        (found,), (expected,) = ours.run(None, {"x": x}), theirs.run(None, {"x": x})
        np.testing.assert_array_equal(found, expected)

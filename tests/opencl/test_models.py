"""Models on a device of OpenCL equal the CPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest
from checkout import ROOT
from models import bert_encoder, lstm_network, mobilenet_v2, random_inputs, resnet18
from onnx import TensorProto, helper
from quantized_models import quantized_model, residual

from glow_mlir import InferenceSession
from glow_mlir.errors import ExecutionError, UnsupportedOperatorsError

pytestmark = pytest.mark.extra

TOLERANCE = 2e-6
"""Of the largest output: sums may have another order where vectors are of another width."""


def digits() -> onnx.ModelProto:
    """The example's classifier, of two images."""
    model = onnx.load(ROOT / "examples" / "digits.onnx")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 2
    return model


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "digits": digits,
    "residual": residual,
    "residual in codes": lambda: quantized_model("residual", "qdq-u8"),
    "mobile in codes": lambda: quantized_model("mobile", "qdq-i8"),
    "lstm": lambda: lstm_network(layers=1, steps=5, width=12, hidden=20),
    "resnet18": lambda: resnet18(size=64, classes=100),
    "bert": bert_encoder,
    "mobilenet_v2": lambda: mobilenet_v2(size=64, classes=100, width=0.5),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_cpu(name: str) -> None:
    logging.getLogger().setLevel(logging.ERROR)  # onnxruntime's quantization has advice.
    model = MODELS[name]()
    inputs = random_inputs(model, np.random.default_rng(0))
    expected = InferenceSession(model, cache=False).run(None, inputs)
    session = InferenceSession(model, backend="opencl", cache=False)
    for _ in range(2):
        for wanted, found in zip(expected, session.run(None, inputs), strict=True):
            if "codes" in name:
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * float(np.abs(wanted).max()))


def model_of(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, tuple[int, list[int]]], shape: list[int | None]
) -> bytes:
    """A model with one output `y`, of floats."""
    given = [helper.make_tensor_value_info(name, kind, sizes) for name, (kind, sizes) in inputs.items()]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "small", given, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


def test_what_a_device_cannot_run_is_one_error_that_lists_it() -> None:
    ways = [
        helper.make_graph(
            [helper.make_node(kind, ["x"], [kind])], kind, [], [helper.make_tensor_value_info(kind, 1, [4])]
        )
        for kind in ("Relu", "Neg")
    ]
    nodes = [
        helper.make_node("If", ["c"], ["chosen"], "choice", then_branch=ways[0], else_branch=ways[1]),
        helper.make_node("Compress", ["chosen", "kept"], ["y"], "some", axis=0),
    ]
    inputs = {
        "x": (TensorProto.FLOAT, [4]),
        "c": (TensorProto.BOOL, list[int]()),
        "kept": (TensorProto.BOOL, [4]),
    }
    with pytest.raises(UnsupportedOperatorsError, match=r"backend 'opencl'.*glow_high.if.*'choice'.*'some'"):
        InferenceSession(model_of(nodes, inputs, [None]), backend="opencl", cache=False)


def test_an_instruction_that_fails_says_why() -> None:
    nodes = [helper.make_node("Gather", ["x", "at"], ["y"], "row")]
    inputs = {"x": (TensorProto.FLOAT, [4, 3]), "at": (TensorProto.INT64, [2])}
    session = InferenceSession(model_of(nodes, inputs, [2, 3]), backend="opencl", cache=False)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(ExecutionError, match="out of range"):
        session.run(None, {"x": x, "at": np.array([1, 9])})
    (found,) = session.run(None, {"x": x, "at": np.array([1, -1])})
    np.testing.assert_array_equal(found, x[[1, 3]])


def test_sizes_of_each_call_are_compiled_for() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = onnx.load_from_string(model_of(nodes, {"x": (TensorProto.FLOAT, [1, 4])}, [1, 4]))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    session = InferenceSession(model, backend="opencl", cache=False)
    for count in (1, 3, 7):
        x = np.linspace(-1, 1, 4 * count, dtype=np.float32).reshape(count, 4)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))

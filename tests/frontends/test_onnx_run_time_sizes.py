"""Models with bounds of free dimensions: one compilation computes for all sizes, as onnxruntime does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from models import bert_encoder
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.errors import OptionError, UnsupportedError

BOUNDS = {"batch": (1, 4), "length": (1, 16)}


def onnx_model(nodes: Sequence[onnx.NodeProto], shape: Sequence[int | str], **constants: Any) -> onnx.ModelProto:
    """A model of one input `x`, whose last node gives `y`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(kind: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, operands.split(), [result], name=f"{kind.lower()}_{result}", **attributes)


TABLE = np.arange(128, dtype=np.float32).reshape(16, 8)

MODELS = {
    "shapes computed of shapes": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s first", "batch"),
            node("Gather", "s second", "length"),
            node("Unsqueeze", "batch zero", "b"),
            node("Unsqueeze", "length zero", "l"),
            node("Concat", "b l two four", "split", axis=0),
            node("Reshape", "x split", "heads"),
            node("Transpose", "heads", "turned", perm=[0, 2, 1, 3]),
            node("Transpose", "turned", "back", perm=[0, 2, 1, 3]),
            node("Reshape", "back whole", "same"),
            node("Slice", "table zero l", "rows"),
            node("Add", "same rows", "y"),
        ],
        ["batch", "length", 8],
        first=np.int64(0),
        second=np.int64(1),
        zero=np.array([0]),
        two=np.array([2]),
        four=np.array([4]),
        whole=np.array([0, 0, -1]),
        table=TABLE,
    ),
    "sizes as numbers": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Cast", "s", "numbers", to=TensorProto.FLOAT),
            node("ReduceSum", "x one", "sum", keepdims=0),
            node("Slice", "numbers one two", "count"),
            node("Div", "sum count", "y"),
        ],
        ["batch", "length", 8],
        one=np.array([1]),
        two=np.array([2]),
    ),
    "expands, constants and concats": onnx_model(
        [
            node("Shape", "x", "s"),
            node("Expand", "row s", "rows"),
            node("ConstantOfShape", "s", "ones", value=numpy_helper.from_array(np.ones(1, np.float32))),
            node("Add", "rows ones", "sum"),
            node("Concat", "x sum x", "y", axis=1),
        ],
        ["batch", "length", 8],
        row=np.arange(8, dtype=np.float32),
    ),
}


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", MODELS)
def test_one_compilation_serves_all_sizes(name: str, backend: str) -> None:
    model = MODELS[name].SerializeToString()
    session = InferenceSession(model, backend=backend, dimensions=BOUNDS, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    for batch, length in ((1, 1), (4, 16), (3, 7)):
        x = np.random.default_rng(0).normal(size=(batch, length, 8)).astype(np.float32)
        (found,), (wanted,) = session.run(None, {"x": x}), reference.run(None, {"x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert session.specializations == []


def test_an_encoder_runs_with_any_number_of_sequences_of_any_length() -> None:
    model = bert_encoder(layers=1, width=32, heads=2, length=16, vocabulary=50, is_free=True).SerializeToString()
    session = InferenceSession(model, dimensions=BOUNDS, cache=False)
    reference: Any = onnxruntime.InferenceSession(model)
    for batch, length in ((1, 16), (2, 5), (4, 9)):
        generator = np.random.default_rng(length)
        ids = generator.integers(0, 50, (batch, length))
        inputs = {"ids": ids, "mask": (np.arange(length) < generator.integers(1, length, (batch, 1))).astype(np.int64)}
        (found,), (wanted,) = session.run(None, inputs), reference.run(None, inputs)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_what_takes_no_such_sizes_is_named() -> None:
    model = onnx_model([node("Hardmax", "x", "y")], ["batch", 4]).SerializeToString()
    with pytest.raises(UnsupportedError, match=r"^1 operator is not supported .* \('hardmax_y'\)"):
        InferenceSession(model, dimensions={"batch": (1, 4)}, cache=False)


@pytest.mark.parametrize("bounds", [(4, 1), (-1, 4), (1, 2, 3), ("a", 4)])
def test_bounds_are_two_numbers(bounds: Any) -> None:
    model = MODELS["sizes as numbers"].SerializeToString()
    with pytest.raises(OptionError, match=r"^dimension 'batch' cannot be"):
        InferenceSession(model, dimensions={"batch": bounds, "length": 4}, cache=False)

"""Small ONNX models, and what the importer says about those that it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model

FLOATS = TensorProto.FLOAT


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[str] = ("y",),
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 18,
    **fields: Any,
) -> onnx.ModelProto:
    """A model with one input `x` of two floats, unless said otherwise."""
    given = [value("x")] if inputs is None else inputs
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", given, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **fields)


def value(name: str, kind: int = FLOATS, shape: Sequence[int | str | None] | None = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def declared(
    nodes: Sequence[onnx.NodeProto], output: onnx.ValueInfoProto, *others: onnx.ValueInfoProto
) -> onnx.ModelProto:
    """A model that says of what types its output and other values are."""
    model = model_of(nodes, outputs=[])
    model.graph.output.append(output)
    model.graph.value_info.extend(others)
    return model


def node(kind: str, inputs: str = "x", outputs: str = "y", name: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), outputs.split(), name, **attributes)


def weight(name: str, *values: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def integers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def message(error: GlowError) -> str:
    """The error as a user sees it, which has to be one line."""
    line = str(error)
    assert "\n" not in line
    return line


def refusal(source: onnx.ModelProto | bytes | Path, kind: type[GlowError], **options: Any) -> str:
    with pytest.raises(kind) as caught:
        import_model(source, **options)
    return message(caught.value)

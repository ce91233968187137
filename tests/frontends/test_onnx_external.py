"""The files beside a model that hold its weights."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from glow_mlir.frontends.onnx.external import external_files
from glow_mlir.frontends.onnx.importer import open_model


def outside(location: str) -> onnx.TensorProto:
    """A tensor in a file."""
    tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def constant(location: str) -> onnx.NodeProto:
    """A node with a tensor in a file."""
    return helper.make_node("Constant", [], ["t"], value=outside(location))


def choice(*nodes: onnx.NodeProto) -> onnx.NodeProto:
    """A node with a branch of those nodes, which has a tensor in the file `branch` as well."""
    return helper.make_node("If", ["c"], ["t"], then_branch=helper.make_graph(nodes, "b", [], [], [outside("branch")]))


PLACES = {
    "initializer": helper.make_graph([], "g", [], [], [outside("here")]),
    "attribute": helper.make_graph([constant("here")], "g", [], []),
    "branch": helper.make_graph([choice(choice(constant("here")))], "g", [], []),
}


@pytest.mark.parametrize("place", PLACES)
def test_files_of_a_graph(place: str) -> None:
    model = helper.make_model(PLACES[place], opset_imports=[helper.make_opsetid("", 17)])
    assert external_files(open_model(model)) == ([] if place != "branch" else ["branch"]) + ["here"]


def test_files_of_functions() -> None:
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "F", [], ["t"], [constant("node"), choice(constant("inner"))], opsets)
    default = onnx.AttributeProto(name="a", type=onnx.AttributeProto.TENSOR, t=outside("default"))
    function.attribute_proto.append(default)
    model = helper.make_model(helper.make_graph([], "g", [], []), functions=[function], opset_imports=opsets)
    assert external_files(open_model(model)) == ["branch", "default", "inner", "node"]


def test_file_without_a_name_is_none() -> None:
    model = helper.make_model(
        helper.make_graph([constant("")], "g", [], []), opset_imports=[helper.make_opsetid("", 17)]
    )
    assert external_files(open_model(model)) == []

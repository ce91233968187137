"""Networks with strings and maps: served by threads, and refused in a line where only tensors go."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glow_mlir import Host
from glow_mlir.errors import OptionError


def classifier() -> onnx.ModelProto:
    """A classifier of strings with a map for each row, as skl2onnx writes them by default."""
    labels = ["no", "yes"]
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=[-1.0, 1.0],
            intercepts=[0.0, 0.0],
            classlabels_strings=labels,
            post_transform="SOFTMAX",
        ),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_strings=labels),
    ]
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])],
        [helper.make_tensor_value_info("label", TensorProto.STRING, ["N"]), helper.make_value_info("maps", maps)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_threads_give_strings_and_maps() -> None:
    with Host() as host:
        host.add("classifier", classifier())
        found = host.submit("classifier", {"x": np.array([[2.0], [-1.0]], np.float32)}).result()
    assert found["label"].tolist() == ["yes", "no"]
    maps: Any = found["maps"]
    assert [list(item) for item in maps] == [["no", "yes"]] * 2
    assert maps[0]["yes"] == pytest.approx(1 / (1 + np.exp(-4)), abs=1e-6)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"workers": "processes"}, "output 'label' is string"),
        ({"batch": 4}, r"output 'maps' is seq\(map\(string,tensor\(float\)\)\)"),
    ],
)
def test_what_takes_tensors_alone_says_so(said: dict[str, Any], expected: str) -> None:
    with Host() as host, pytest.raises(OptionError, match=expected):
        host.add("classifier", classifier(), **said)

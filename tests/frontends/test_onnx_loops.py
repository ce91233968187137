"""Loops as exporters write them: counters with an axis, and state and rows whose sizes no number bounds."""

from __future__ import annotations

from typing import cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from glow_mlir.api.onnxruntime.inference_session import InferenceSession


def model(signature: str, body: str, opset: int = 18) -> onnx.ModelProto:
    """A model in the syntax of onnx's parser."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {signature} {{ {body} }}')


def check(source: onnx.ModelProto, *cases: dict[str, np.ndarray]) -> None:
    """Compare the results of a session with onnxruntime's, to the bit, shapes included."""
    session = InferenceSession(source, cache=False)
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    for given in cases:
        expected = cast("list[np.ndarray]", peer.run(None, given))
        for found, wanted in zip(session.run(None, given), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


# ---- The number of the trip, and that it takes place


@pytest.mark.parametrize("number", ["int64", "int64[1]", "int64[N]"])
@pytest.mark.parametrize(("condition", "given"), [("bool", "bool"), ("bool[1]", "bool[1]")])
@pytest.mark.parametrize("trips", ["int64 n = {2}", "int64[1] n = {2}"])
def test_counters_and_conditions_have_the_axes_that_the_body_declares(
    number: str, condition: str, given: str, trips: str
) -> None:
    """PyTorch's exporter wrote them with an axis up to opset 10."""
    source = model(
        f"(float[3] x) => (float[3] y, int64 z, bool w) <{trips}, {given} yes = {{1}}>",
        f"""
        y, z, w = Loop (n, yes, x) <
            body = step ({number} i, {condition} c, float[3] a) => (bool go, float[3] b, int64 j, bool d) {{
                j = Identity (i)
                d = Identity (c)
                go = Identity (c)
                b = Neg (a)
            }}
        >
        """,
    )
    for output in source.graph.output:
        output.type.tensor_type.ClearField("shape")
    for output in source.graph.node[0].attribute[0].g.output:
        output.type.tensor_type.ClearField("shape")
    check(source, {"x": np.arange(3, dtype=np.float32)})


def test_a_body_may_squeeze_its_counter() -> None:
    source = model(
        "(float[4, 3] x, int64 n) => (float[3] y) <float[3] zero = {0, 0, 0}, bool yes = {1}>",
        """
        y = Loop (n, yes, zero) <
            body = step (int64[1] i, bool c, float[3] a) => (bool go, float[3] b) {
                place = Squeeze <axes = [0]> (i)
                row = Gather <axis = 0> (x, place)
                b = Add (a, row)
                go = Identity (c)
            }
        >
        """,
        opset=9,
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    check(source, {"x": x, "n": np.array(3)}, {"x": x, "n": np.array(0)})

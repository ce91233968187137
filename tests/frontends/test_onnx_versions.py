"""
Every form that an operator of ONNX took since opset 1, as far as its first is of opset 6 or older.

A form is compared with ONNX's reference implementation; one that this does not know, with the later form that means the
same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, numpy_helper
from onnx_models import model_of, node, refusal, value
from operator_forms import BATCH, BY_OPERANDS, FORMS, IMAGE, TRAINED, Form, floats, signed
from single_node import SingleNode, assert_equal

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, ModelError

REFERENCE = 7
"""The opset from which on the reference implementation knows the forms."""


ELSEWHERE = {"If", "Loop", "MaxRoiPool", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
"""Operators with tests of their own, or none that is supported."""


def versions() -> dict[str, list[Any]]:
    """The schemas of all operators of opset 6 or older, by name, without withdrawn ones."""
    found: dict[str, list[Any]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        if schema.domain == "" and not schema.deprecated and (schema.since_version <= 6 or schema.name in found):
            found.setdefault(schema.name, []).append(schema)
    return found


def test_every_old_operator_is_listed() -> None:
    assert versions().keys() == FORMS.keys() | ELSEWHERE


@pytest.mark.parametrize("kind", FORMS)
def test_every_form(kind: str) -> None:
    for schema in versions()[kind]:
        version: int = schema.since_version
        form = FORMS[kind][max(since for since in FORMS[kind] if since <= version)]
        attributes = dict(form.attributes)
        if "consumed_inputs" in schema.attributes:
            attributes["consumed_inputs"] = [0] * len(form.operands)
        constant = range(1, len(form.operands)) if kind in BY_OPERANDS else ()
        ours = SingleNode(kind, form.operands, version, attributes, form.outputs, constant)
        expected = by_reference(kind, form, max(version, REFERENCE))
        actual = ours.by_us()
        # The later form may have the same elements in another shape.
        assert_equal(actual, [item.reshape(own.shape) for item, own in zip(expected, actual, strict=True)], 1e-4, 1e-5)


def by_reference(kind: str, form: Form, opset: int) -> list[np.ndarray]:
    """What the reference computes of a form, or of the later one that means the same."""
    if form.later is not None:
        return by_reference(kind, form.later, form.later.opset)
    return SingleNode(form.kind or kind, form.operands, opset, form.attributes, form.outputs).by_reference()


def test_statistics_of_the_batch() -> None:
    """In training, which each opset says in its own way; the deviation that training gives is another matter."""
    expected = by_reference("BatchNormalization", TRAINED, TRAINED.opset)
    for opset, attributes in ((6, {"is_test": 0}), (9, {}), (15, {"training_mode": 1})):
        node_of_all = SingleNode("BatchNormalization", BATCH, opset, attributes, 5 if opset < 14 else 3)
        assert_equal(node_of_all.by_us()[:3], expected, 1e-4, 1e-5)


def test_statistics_of_each_element() -> None:
    operands = [BATCH[0], *(floats(2, 5, 5, seed=seed) for seed in range(4))]
    attributes = {"is_test": 1, "spatial": 0}
    ours = SingleNode("BatchNormalization", operands, 6, attributes).by_us()
    # Each element by itself is a channel.
    rows = [operands[0].reshape(2, 50), *(item.reshape(50) for item in operands[1:])]
    expected = SingleNode("BatchNormalization", rows, 15).by_reference()[0]
    assert_equal(ours, [expected.reshape(2, 2, 5, 5)], 1e-4, 1e-5)


LIMITS: dict[str, tuple[onnx.ModelProto, type[GlowError], str]] = {
    "shapes without broadcast": (
        model_of([node("Add", "x w", name="sum")], [value("x", shape=(2, 3)), value("w", shape=(3,))], opset=6),
        ModelError,
        "node 'sum': Add: (2, 3) is not (3,) (hint: up to opset 6, the attribute broadcast allows that)",
    ),
    "part that is not there": (
        model_of(
            [node("Mul", "x w", name="scale", broadcast=1, axis=0)],
            [value("x", shape=(2, 3)), value("w", shape=(3,))],
            opset=6,
        ),
        ModelError,
        "node 'scale': Mul: (3,) is not in (2, 3) from axis 0 on (hint: ",
    ),
    "third operand of Gemm": (
        model_of([node("Gemm", "x x c", name="dense")], [value("x", shape=(2, 2)), value("c", shape=(2,))], opset=6),
        ModelError,
        "node 'dense': Gemm: (2,) is not (2, 2) (hint: ",
    ),
    "type that is not there": (
        model_of([node("Cast", name="to", to="FLOAT7")], opset=5),
        ModelError,
        "node 'to': Cast: there is no element type 'FLOAT7' (hint: ",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_refusal(case: str) -> None:
    model, kind, expected = LIMITS[case]
    assert expected in refusal(model, kind)


def test_network_of_an_old_exporter() -> None:
    """Of opset 1, before models said so, with numbers as names and weights among the inputs, as machine code."""
    nodes = [
        node("Conv", "0 1", "4", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "4 2", "5", broadcast=1, axis=1),
        node("Relu", "5", "6", consumed_inputs=[0]),
        node("Reshape", "6", "7", shape=[1, -1]),
        node("Gemm", "7 3", "8", transB=1, broadcast=1),
        node("Softmax", "8", "9", axis=1),
    ]
    nodes[4].input.append("bias")
    weights = {"1": floats(4, 2, 3, 3), "2": floats(4), "3": signed(3, 100), "bias": floats(3)}
    inputs = [value(name, shape=array.shape) for name, array in {"0": IMAGE, **weights}.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    model = model_of(nodes, inputs, ["9"], tensors, ir_version=2)
    del model.opset_import[:]
    image = SingleNode("Conv", [IMAGE, weights["1"], weights["2"]], 11, {"pads": [1] * 4}).by_reference()[0]
    scores = np.maximum(image, 0).reshape(1, -1) @ weights["3"].T + weights["bias"]
    exponentials = np.exp(scores - scores.max())
    session = InferenceSession(model.SerializeToString(), cache=False)
    assert [item.name for item in session.get_inputs()] == ["0"]
    np.testing.assert_allclose(session.run(["9"], {"0": IMAGE})[0], exponentials / exponentials.sum(), rtol=1e-4)

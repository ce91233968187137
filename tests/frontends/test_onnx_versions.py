"""
Every form that an operator of ONNX took since opset 1, as far as its first is of opset 6 or older.

A form is compared with ONNX's reference implementation; one that this does not know, with the later form that means the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, numpy_helper
from onnx_models import model_of, node, refusal, value
from single_node import SingleNode, assert_equal

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, ModelError, UnsupportedError

REFERENCE = 7
"""The opset from which on the reference implementation knows the forms."""


@dataclass(frozen=True)
class Form:
    """Operands and attributes for a form of an operator, and of those of a later form that means the same."""

    operands: Sequence[np.ndarray]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    later: Form | None = None
    outputs: int = 1
    kind: str = ""
    """The operator, where it is another one."""
    opset: int = 9
    """The opset of a later form."""


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).uniform(0.1, 0.9, shape).astype(np.float32)


def signed(*shape: int) -> np.ndarray:
    return 4 * floats(*shape) - 2


def truths(*shape: int) -> np.ndarray:
    return floats(*shape, seed=1) > 0.5


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CUBE, IMAGE = signed(2, 3, 4), signed(1, 2, 5, 5)
COLUMN, PLANE = floats(3, 1, seed=1), floats(2, 3, seed=1)


def limited(left: np.ndarray, middle: np.ndarray, plane: np.ndarray) -> dict[int, Form]:
    """A part of the first operand in the middle by attributes, then as numpy broadcasts."""
    later = Form([left, middle[:, None]])
    return {1: Form([left, middle], {"broadcast": 1, "axis": 1}, later), 7: Form([left, plane[..., None]])}


def plain(*operands: np.ndarray, **attributes: Any) -> dict[int, Form]:
    return {1: Form(operands, attributes)}


def reduced(operand_since: int) -> dict[int, Form]:
    """Axes as an attribute, then as an operand."""
    later = Form([CUBE, integers(1)], {"keepdims": 0})
    return {1: Form([CUBE], {"axes": [1], "keepdims": 0}), operand_since: later}


BATCH = [np.concatenate([IMAGE, 2 * IMAGE]), *(floats(2, seed=seed) for seed in range(4))]
TRAINED = Form(BATCH, {"training_mode": 1}, opset=15, outputs=3)


LAYER = [floats(3, 2, 4), floats(1, 5, 4, seed=1), floats(1, 5, 5, seed=2), floats(1, 10, seed=3)]


def recurrent(gates: int) -> dict[int, Form]:
    weights = [np.concatenate([part] * gates, axis=1) for part in LAYER[1:3]]
    bias = np.concatenate([LAYER[3]] * gates, axis=1)
    return {1: Form([LAYER[0], *weights, bias], {"hidden_size": 5}, outputs=2)}


UNARY = tuple(
    "Abs Ceil Elu Exp Flatten Floor HardSigmoid Identity LeakyRelu LpNormalization Neg Reciprocal Relu Shape Sigmoid "
    "Size Softplus Softsign Tanh Transpose".split()
)
OVER_ROWS = ("Softmax", "LogSoftmax", "Hardmax")
REDUCTIONS = ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

WHOLE = Form([IMAGE], {"p": 3, "kernel_shape": [5, 5]}, kind="LpPool", opset=18)
SCALED = Form([IMAGE, np.array([1, 1, 2, 3], np.float32)])
BORDER = [0, 1, 0, 2, 0, 1]
MATRICES = [PLANE, floats(3, 4)]

FORMS: dict[str, dict[int, Form]] = {
    **{kind: plain(CUBE) for kind in UNARY},
    **{kind: {1: Form([CUBE], {}, Form([CUBE.reshape(2, 12)], {"axis": 1})), 13: Form([CUBE])} for kind in OVER_ROWS},
    **{kind: plain(floats(2, 3)) for kind in ("Log", "Sqrt")},
    **{kind: limited(CUBE, COLUMN[:, 0], PLANE) for kind in ("Add", "Div", "Mul", "Sub")},
    **{kind: limited(truths(2, 3, 4), truths(3), truths(2, 3)) for kind in ("And", "Or", "Xor")},
    **{kind: limited(CUBE, COLUMN[:, 0], PLANE) for kind in ("Greater", "Less")},
    **{kind: plain(CUBE, CUBE + 1, CUBE * CUBE) for kind in ("Max", "Mean", "Min", "Sum")},
    **{f"Reduce{kind}": reduced(18) for kind in REDUCTIONS},
    **{kind: plain(CUBE, axis=1, keepdims=0) for kind in ("ArgMax", "ArgMin")},
    **{kind: plain(IMAGE) for kind in ("GlobalAveragePool", "GlobalMaxPool")},
    "AveragePool": plain(IMAGE, kernel_shape=[3, 3], pads=[1, 1, 0, 0], strides=[2, 1]),
    "BatchNormalization": {
        1: Form(BATCH, {"is_test": 1}, Form(BATCH, opset=15)),
        7: Form(BATCH, {}, Form(BATCH, opset=15)),
        14: Form(BATCH),
    },
    "Cast": {1: Form([CUBE], {"to": "INT32"}, Form([CUBE], {"to": 6})), 6: Form([CUBE], {"to": 6})},
    "Clip": {1: Form([CUBE], {"min": -1.0, "max": 0.5}), 11: Form([CUBE, floats(), np.array(0.9, np.float32)])},
    "Concat": {1: Form([CUBE, CUBE], {}, Form([CUBE, CUBE], {"axis": 1})), 4: Form([CUBE, CUBE], {"axis": 2})},
    "Constant": plain(value=numpy_helper.from_array(CUBE)),
    "Conv": plain(IMAGE, floats(4, 2, 3, 3), floats(4), pads=[1, 1, 1, 1]),
    "ConvTranspose": plain(IMAGE, floats(2, 4, 3, 3), floats(4), strides=[2, 2]),
    "DepthToSpace": plain(signed(1, 8, 2, 3), blocksize=2),
    "Dropout": {1: Form([CUBE], {"is_test": 1}, Form([CUBE])), 7: Form([CUBE])},
    "Equal": limited(integers(*range(6)).reshape(2, 3), integers(2), integers(2, 5)[:, None][:, 0]),
    "GRU": recurrent(3),
    "Gather": plain(CUBE, integers(2, 0), axis=1),
    "Gemm": {
        1: Form([*MATRICES, floats(4)], {"broadcast": 1, "alpha": 0.5}, Form([*MATRICES, floats(4)], {"alpha": 0.5})),
        7: Form([*MATRICES, floats(2, 1)], {"beta": 0.5}),
    },
    "GlobalLpPool": {1: Form([IMAGE], {"p": 3.0}, WHOLE), 2: Form([IMAGE], {"p": 3}, WHOLE)},
    "InstanceNormalization": plain(IMAGE, floats(2), floats(2, seed=1), epsilon=0.01),
    "LRN": plain(IMAGE, size=3),
    "LSTM": recurrent(4),
    "LpPool": {
        1: Form([IMAGE], {"p": 3.0, "kernel_shape": [2, 2]}, Form([IMAGE], {"p": 3, "kernel_shape": [2, 2]})),
        2: Form([IMAGE], {"p": 3, "kernel_shape": [2, 2]}),
    },
    "MatMul": plain(PLANE, COLUMN),
    "MaxPool": plain(IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "Not": plain(truths(2, 3)),
    "PRelu": {
        1: Form([IMAGE, floats(2)], {}, Form([IMAGE, floats(2)[:, None, None]])),
        7: Form([IMAGE, floats(2, 1, 1)]),
    },
    "Pad": {
        1: Form([CUBE], {"paddings": BORDER, "value": 2.0}, Form([CUBE], {"pads": BORDER, "value": 2.0})),
        2: Form([CUBE], {"pads": BORDER, "value": 2.0}),
        11: Form([CUBE, integers(*BORDER)]),
    },
    "Pow": {
        1: Form([floats(2, 3), floats(3)], {"broadcast": 1}, Form([floats(2, 3), floats(3)])),
        7: Form([floats(2, 3), COLUMN[:2]]),
    },
    "RNN": recurrent(1),
    "ReduceLogSum": {1: Form([floats(2, 3)], {"axes": [1]}), 18: Form([floats(2, 3), integers(1)])},
    "ReduceSum": reduced(13),
    "Reshape": {1: Form([CUBE], {"shape": [0, -1]}, Form([CUBE, integers(0, -1)])), 5: Form([CUBE, integers(4, 0, 2)])},
    "Selu": {1: Form([CUBE], {}, Form([CUBE], {"alpha": 1.6732, "gamma": 1.0507})), 6: Form([CUBE])},
    "Slice": {
        1: Form([CUBE], {"starts": [1], "ends": [-1], "axes": [2]}),
        10: Form([CUBE, integers(-1), integers(-9), integers(1), integers(-2)]),
    },
    "SpaceToDepth": plain(signed(1, 2, 4, 6), blocksize=2),
    "Split": {
        1: Form([CUBE], {"axis": 1, "split": [1, 2]}, outputs=2),
        13: Form([CUBE, integers(1, 2)], {"axis": 1}, outputs=2),
    },
    "Squeeze": {1: Form([signed(1, 2, 1)], {"axes": [0]}), 13: Form([signed(1, 2, 1), integers(0)])},
    "Tile": {
        1: Form([CUBE, np.array(2, np.float32), np.array(1, np.float32)], {}, Form([CUBE, integers(1, 2, 1)])),
        6: Form([CUBE, integers(1, 2, 1)]),
    },
    "TopK": {1: Form([CUBE], {"k": 2, "axis": 1}, outputs=2), 10: Form([CUBE, integers(2)], {"axis": 1}, outputs=2)},
    "Unsqueeze": {1: Form([CUBE], {"axes": [0, 3]}), 13: Form([CUBE, integers(0, 3)])},
    "Upsample": {
        1: Form([IMAGE], {"height_scale": 2.0, "width_scale": 3.0}, SCALED),
        7: Form([IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]}, SCALED),
        9: SCALED,
    },
}
"""Operator → the opset from which on it takes operands and attributes so → these."""

BY_OPERANDS = {
    *("Clip", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "TopK", "Unsqueeze", "Upsample"),
    *(f"Reduce{kind}" for kind in (*REDUCTIONS, "LogSum", "Sum")),
}
"""Operators whose later forms have operands that fix shapes."""

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
    "training": (
        model_of([node("Dropout", name="drop")], opset=6),
        UnsupportedError,
        "node 'drop': Dropout: is_test = 0, which is training, is not supported",
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

"""Operands and attributes for the forms that operators of ONNX took since opset 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper


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


@dataclass(frozen=True)
class Bounded:
    """A form of an operator, and the axes that have one free size: of each case, operand → axis."""

    form: Form
    cases: Sequence[Mapping[int, int]]
    least: int = 1
    """The smallest size that the operator takes there."""
    domain: str = ""


def codes(*shape: int) -> np.ndarray:
    return np.random.default_rng([2, *shape]).integers(0, 256, shape).astype(np.uint8)


SCALE, ZERO = np.array(0.05, np.float32), np.array(100, np.uint8)
CORNERS = np.array([[0, 0, 3, 4], [1, 1, 4, 2]], np.float32)
HALVED = np.array([1, 1, 0.5, 1.5], np.float32)
NOTHING = np.zeros(0, np.float32)
BATCH_ROWS_COLUMNS = ({0: 0}, {0: 2}, {0: 3})

LATER_FORMS: dict[str, Bounded] = {
    "Col2Im": Bounded(Form([signed(1, 8, 16), integers(5, 5), integers(2, 2)], kind="Col2Im", opset=18), [{0: 0}]),
    "ConvInteger": Bounded(
        Form([codes(1, 2, 5, 5), codes(4, 2, 3, 3)], {"strides": [2, 2]}, opset=10), BATCH_ROWS_COLUMNS, 5
    ),
    "DeformConv": Bounded(Form([IMAGE, floats(3, 2, 2, 2), floats(1, 8, 4, 4)], opset=19), [{0: 0, 2: 0}]),
    "Det": Bounded(Form([signed(2, 3, 3)], opset=11), [{0: 0}]),
    "DFT": Bounded(Form([signed(2, 4, 1), np.array(4), np.array(1)], opset=20), [{0: 0}]),
    "Einsum": Bounded(
        Form([signed(2, 3, 4), signed(2, 4, 5)], {"equation": "bij,bjk->bik"}, opset=12), [{0: 0, 1: 0}, {0: 1}, {1: 2}]
    ),
    "GridSample": Bounded(
        Form([IMAGE, signed(1, 3, 4, 2)], opset=16), [{0: 0, 1: 0}, *({0: axis} for axis in (1, 2, 3)), {1: 1}, {1: 2}]
    ),
    "GridSample, mirrored": Bounded(
        Form([IMAGE, signed(1, 3, 4, 2)], {"padding_mode": "reflection", "align_corners": 1}, opset=16),
        [{0: 2}, {0: 3}],
    ),
    "MatMulNBits": Bounded(
        Form([signed(2, 3, 64), codes(20, 2, 16), floats(20, 2)], {"bits": 4, "block_size": 32, "N": 20, "K": 64}),
        [{0: 0}, {0: 1}],
        domain="com.microsoft",
    ),
    "MaxPool": Bounded(
        Form([IMAGE], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1]}, outputs=2, opset=12),
        [*BATCH_ROWS_COLUMNS, {0: 1}],
        2,
    ),
    "MaxPool, column-major": Bounded(
        Form([IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "storage_order": 1}, outputs=2, opset=12),
        BATCH_ROWS_COLUMNS,
        3,
    ),
    "MaxPool, the last one cut": Bounded(
        Form([IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, opset=12), BATCH_ROWS_COLUMNS
    ),
    "AveragePool, padding counts": Bounded(
        Form(
            [IMAGE],
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            opset=11,
        ),
        BATCH_ROWS_COLUMNS,
    ),
    "Conv by steps": Bounded(
        Form([IMAGE, floats(4, 2, 3, 3), floats(4)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}), BATCH_ROWS_COLUMNS
    ),
    "Conv of one channel each": Bounded(
        Form([IMAGE, floats(2, 1, 3, 3)], {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}), BATCH_ROWS_COLUMNS
    ),
    "QLinearConv": Bounded(
        Form(
            [codes(1, 2, 5, 5), SCALE, ZERO, codes(4, 2, 3, 3), SCALE, ZERO, np.array(0.9, np.float32), ZERO],
            {"strides": [2, 2], "pads": [1, 1, 1, 1]},
            opset=10,
        ),
        BATCH_ROWS_COLUMNS,
    ),
    "QLinearSigmoid": Bounded(
        Form([codes(2, 3, 4), SCALE, ZERO, np.array(1 / 256, np.float32), np.array(0, np.uint8)]),
        [{0: 0}, {0: 2}],
        domain="com.microsoft",
    ),
    "Resize, linear": Bounded(Form([IMAGE, NOTHING, HALVED], {"mode": "linear"}, opset=19), BATCH_ROWS_COLUMNS, 2),
    "Resize, cubic": Bounded(Form([IMAGE, NOTHING, HALVED], {"mode": "cubic"}, opset=19), BATCH_ROWS_COLUMNS, 2),
    "Resize, nearest": Bounded(Form([IMAGE, NOTHING, HALVED], {"mode": "nearest"}, opset=19), BATCH_ROWS_COLUMNS, 2),
    "ReverseSequence": Bounded(
        Form([signed(2, 4, 3), integers(2, 4)], {"batch_axis": 0, "time_axis": 1}, opset=10), [{0: 0, 1: 0}, {0: 2}]
    ),
    "RoiAlign": Bounded(
        Form([IMAGE, CORNERS, integers(0, 0)], {"output_height": 2, "output_width": 3}, opset=16),
        [*BATCH_ROWS_COLUMNS, {0: 1}, {1: 0, 2: 0}],
    ),
    "STFT": Bounded(Form([signed(2, 16, 1), np.array(4), np.ones(8, np.float32)], opset=17), [{0: 0}, {0: 1}], 8),
}
"""
Operators of later opsets or of onnxruntime, and later forms, with bounds; a name begins with that of the operator.
"""

BY_OPERANDS = {
    *("Clip", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "TopK", "Unsqueeze", "Upsample"),
    *(f"Reduce{kind}" for kind in (*REDUCTIONS, "LogSum", "Sum")),
}
"""Operators whose later forms have operands that fix shapes."""

"""Templates of operators on elements, along axes, and of normalization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from sweep.drawing import EVERYTHING, FLOATS, INTEGERS, NUMBERS, Draw, draws
from sweep.points import ELEMENTS, ONNXRUNTIME, Application, Operand, given, weight

UNARY: Mapping[str, tuple[str, float]] = {
    **dict.fromkeys(["Abs", "Ceil", "Floor", "Neg", "Relu", "LeakyRelu", "Sign", "HardSigmoid"], ("normal", 1)),
    **dict.fromkeys(["Identity", "Round", "ThresholdedRelu", "Shrink", "Reciprocal"], ("normal", 1)),
    **dict.fromkeys(["Celu", "Elu", "Erf", "Exp", "Gelu", "Selu", "Sigmoid", "Softplus", "Tanh"], ("normal", 4)),
    **dict.fromkeys(["Asinh", "Atan", "Cos", "Cosh", "Sin", "Sinh", "Softsign", "Tan", "Mish"], ("normal", 4)),
    **dict.fromkeys(["HardSwish"], ("normal", 1)),
    **dict.fromkeys(["Acos", "Asin", "Atanh"], ("from -0.95 0.95", 4)),
    **{"Acosh": ("from 1.1 9", 4), "Log": ("from 0.1 9", 4), "Sqrt": ("from 0.1 9", 1)},
}
"""Operator → what its operand has, and its cost."""

_INTEGERS_TOO = ("Abs", "Neg", "Relu", "Sign", "Identity")


@draws(FLOATS, *(name for name in UNARY if name not in _INTEGERS_TOO))
@draws(NUMBERS, *_INTEGERS_TOO)
def unary(draw: Draw, operator: str, dtype: str) -> Application:
    """One operand, of any rank."""
    dtype = "f32" if operator == "Neg" and dtype == "u8" else dtype
    fill, cost = UNARY[operator]
    alpha = {"alpha": draw.number(0.05, 1.5)} if operator in ("LeakyRelu", "Celu", "Elu", "ThresholdedRelu") else {}
    more: dict[str, Any] = {"approximate": draw.pick("none", "tanh")} if operator == "Gelu" else {}
    return Application(operator, [Operand(draw.shape(cost=cost), dtype, fill)], {**alpha, **more})


@draws(FLOATS, "Gelu", "QuickGelu", domain=ONNXRUNTIME)
def gelu(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(cost=4), dtype)], domain=ONNXRUNTIME)


@draws(FLOATS, "BiasGelu", "FastGelu", domain=ONNXRUNTIME)
def gelu_with_bias(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=4)
    return Application(operator, [Operand(shape, dtype), weight(shape[-1:], dtype)], domain=ONNXRUNTIME)


@draws(("bool",), "Not")
@draws(INTEGERS, "BitwiseNot")
@draws(FLOATS, "IsInf", "IsNaN")
def unary_of_few_types(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(), dtype)])


BINARY: Mapping[str, str] = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"], "normal"),
    **{"Div": "from 1 9", "Mod": "from 1 9", "Pow": "from 1 3", "BitShift": "from 0 7"},
    **dict.fromkeys(["And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu"], "normal"),
}
"""Operator → what its second operand has."""


@draws(("f32", "f64", "f16", "i32", "i64"), "Add", "Sub", "Mul", "Div", "Pow")
@draws(("f32", "i32", "f64", "i64", "f16", "u8"), "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
@draws(NUMBERS, "Mod")
@draws(("bool",), "And", "Or", "Xor")
@draws(INTEGERS, "BitwiseAnd", "BitwiseOr", "BitwiseXor")
@draws(("u8", "u32", "u64"), "BitShift")
def binary(draw: Draw, operator: str, dtype: str) -> Application:
    """Operands of which one is broadcast; the second is a constant half the time."""
    shape = draw.shape()
    other = Operand(draw.broadcast(shape), dtype, BINARY[operator], constant=draw.chance(0.3))
    first = Operand(shape, dtype, "from 1 9" if operator == "Pow" else "normal")
    more: dict[str, Any] = {"direction": draw.pick("LEFT", "RIGHT")} if operator == "BitShift" else {}
    if operator == "Mod" and dtype in FLOATS:
        more = {"fmod": 1}
    commutes = operator not in ("Pow", "Div", "Mod", "BitShift") and draw.chance(0.3)
    return Application(operator, [other, first] if commutes else [first, other], more)


@draws(FLOATS, "PRelu")
def prelu(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(4)
    slope = draw.pick(shape, (1,), (shape[1], 1, 1))
    return Application(operator, [Operand(shape, dtype), weight(slope, dtype)])


@draws(("f32", "f64", "f16", "i32", "i64", "u8"), "Max", "Min")
@draws(FLOATS, "Mean", "Sum")
def variadic(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape()
    return Application(
        operator, [Operand(shape, dtype), *(Operand(draw.broadcast(shape), dtype) for _ in range(draw.size(1, 4)))]
    )


@draws(NUMBERS, "Clip")
def clip(draw: Draw, operator: str, dtype: str) -> Application:
    low, high = (given(value, dtype) if draw.chance(0.8) else None for value in (1, 3))
    return Application(operator, [Operand(draw.shape(), dtype), low, high])


@draws(("f32", "u8", "i32", "i64", "f16", "f64"), "Where")
def where(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape()
    return Application(
        operator,
        [Operand(draw.broadcast(shape), "bool"), Operand(shape, dtype), Operand(draw.broadcast(shape), dtype)],
    )


@draws(EVERYTHING, "Cast")
def cast(draw: Draw, operator: str, dtype: str) -> Application:
    to = draw.pick(*(other for other in EVERYTHING if other != dtype))
    number = helper.np_dtype_to_tensor_dtype(np.dtype(ELEMENTS[to]))
    fill = "from 0 9" if to != "bool" and dtype != "bool" else "normal"
    return Application(operator, [Operand(draw.shape(), dtype, fill)], {"to": number})


@draws(("f32", "i32", "f16", "f64"), "BitCast")
def bit_cast(draw: Draw, operator: str, dtype: str) -> Application:
    to = {"f32": 6, "i32": 1, "f16": 5, "f64": 7}[dtype]
    return Application(operator, [Operand(draw.shape(), dtype)], {"to": to})


@draws(("f32", "f16", "f64", "i32", "i64"), "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd")
@draws(("f32", "f16", "f64", "i32"), "ReduceL1", "ReduceL2", "ReduceSumSquare")
@draws(FLOATS, "ReduceLogSum", "ReduceLogSumExp")
def reduction(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 5))
    axes = given(draw.axes(len(shape))) if draw.chance(0.9) else None
    fill = "from 1 2" if operator in ("ReduceProd", "ReduceLogSum") else "normal"
    return Application(operator, [Operand(shape, dtype, fill), axes], {"keepdims": draw.pick(0, 1)})


@draws(("f32", "f64", "i32", "u8", "i64", "i8", "f16"), "ArgMax", "ArgMin")
def arg_reduction(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 4))
    more = {"keepdims": draw.pick(0, 1), "select_last_index": draw.pick(0, 0, 1)}
    return Application(operator, [Operand(shape, dtype)], {"axis": draw.axis(len(shape)), **more})


@draws(("f32", "i32", "i64", "f64"), "CumSum", "CumProd")
def cumulative(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 4))
    more = {"exclusive": draw.pick(0, 1), "reverse": draw.pick(0, 1)}
    axis = given(draw.axis(len(shape)))
    return Application(operator, [Operand(shape, dtype, "from 1 2" if operator == "CumProd" else "normal"), axis], more)


@draws(FLOATS, "Softmax", "LogSoftmax", "Hardmax")
def softmax(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4), cost=4)
    return Application(operator, [Operand(shape, dtype)], {"axis": draw.pick(-1, draw.axis(len(shape)))})


@draws(FLOATS, "LpNormalization")
def lp_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    return Application(operator, [Operand(shape, dtype)], {"axis": draw.axis(len(shape)), "p": draw.pick(1, 2)})


@draws(("f32", "f16"), "MeanVarianceNormalization")
def mean_variance(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(4), dtype)], {"axes": draw.pick([0, 2, 3], [2, 3], [1, 2, 3])})


@draws(FLOATS, "LayerNormalization", "RMSNormalization")
def layer_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=2)
    axis = draw.pick(-1, -1, 1)
    parameters = [weight(shape[axis:], dtype)] * (2 if operator == "LayerNormalization" and draw.chance() else 1)
    return Application(operator, [Operand(shape, dtype), *parameters], {"axis": axis})


@draws(("f32", "f64"), "SimplifiedLayerNormalization")
def simplified(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=2)
    return Application(operator, [Operand(shape, dtype), weight(shape[-1:], dtype)], {"axis": -1})


@draws(("f32", "f16"), "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=ONNXRUNTIME)
def skip_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=2)
    row = weight(shape[-1:], dtype)
    rows = [row, row, row] if operator == "SkipLayerNormalization" else [row, row]
    return Application(
        operator, [Operand(shape, dtype), Operand(shape, dtype), *rows], {"epsilon": 0.001}, domain=ONNXRUNTIME
    )


@draws(FLOATS, "BatchNormalization")
def batch_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.pick(2, 3, 4))
    row, positive = weight(shape[1:2], dtype), weight(shape[1:2], dtype, "from 0.5 2")
    return Application(operator, [Operand(shape, dtype), row, row, row, positive])


@draws(("f32", "f16"), "InstanceNormalization")
def instance_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(4, cost=0.5)
    row = weight(shape[1:2], dtype)
    return Application(operator, [Operand(shape, dtype), row, row])


@draws(FLOATS, "GroupNormalization")
def group_normalization(draw: Draw, operator: str, dtype: str) -> Application:
    batch, _, height, width = draw.shape(4)
    groups, depth = draw.size(2, 8), draw.size(2, 8)
    row = weight((groups * depth,), dtype)
    return Application(
        operator, [Operand((batch, groups * depth, height, width), dtype), row, row], {"num_groups": groups}
    )


@draws(("f32",), "LRN")
def local_response(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(4, cost=8), dtype)], {"size": draw.pick(3, 5, 7)})


@draws(("f32", "f16"), "Dropout")
def dropout(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(), dtype), given(0.3, "f32")])


@draws(("f32", "f16"), "ScaledSiLU", "BranchwiseRMSNorm", domain=ONNXRUNTIME)
def branchwise(draw: Draw, operator: str, dtype: str) -> Application:
    shape = (*draw.shape(2, cost=64), 4 * draw.size(4, 32))
    return Application(operator, [Operand(shape, dtype)], {}, domain=ONNXRUNTIME)


@draws(("f32", "f16"), "GatedAdd", domain=ONNXRUNTIME)
def gated_add(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    gate = Operand((*shape[:2], 1), dtype)
    return Application(operator, [Operand(shape, dtype), Operand(shape, dtype), gate], {}, domain=ONNXRUNTIME)


@draws(("f32",), "SampleOp", domain=ONNXRUNTIME)
def sample(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(), dtype)], domain=ONNXRUNTIME)


@draws(("f32", "f16"), "GatedRMSNorm", domain=ONNXRUNTIME)
def gated_norm(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    row = weight(shape[-1:], dtype)
    return Application(operator, [Operand(shape, dtype), row, Operand(shape, dtype)], {}, domain=ONNXRUNTIME)

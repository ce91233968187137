"""Export of elementwise operators that are not plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from glow_mlir.dialects.element_types import expressed_of, is_integer, is_narrow_float, numpy_dtype, storage_of
from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high import quantization as quantization_ops
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.narrow_floats import is_power_of_two
from glow_mlir.dialects.properties import flag, number, text
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, sizes_of
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.ir.registry import onnx_export


def _plain(kind: str) -> Callable[[Writer, HighOp], str]:
    return lambda writer, op: writer.emit(kind, *op.operands)


for _operator, _name in {binary.MaxOp: "Max", binary.MinOp: "Min"}.items():
    onnx_export(_operator)(_plain(_name))


@onnx_export(act.SwishOp)
def swish(writer: Writer, op: act.SwishOp) -> str:
    """x · sigmoid(alpha · x), because the opset has no operator for it."""
    inner = writer.emit("Mul", op.input, writer.like(number(op.alpha), op.input))
    return writer.emit("Mul", op.input, writer.emit("Sigmoid", inner))


@onnx_export(math.Expm1Op)
def expm1(writer: Writer, op: math.Expm1Op) -> str:
    """tanh(x / 2) · (exp(x) + 1), which avoids cancellation."""
    one, half = writer.like(1.0, op.input), writer.like(0.5, op.input)
    tangent = writer.emit("Tanh", writer.emit("Mul", op.input, half))
    return writer.emit("Mul", tangent, writer.emit("Add", writer.emit("Exp", op.input), one))


@onnx_export(math.Log1pOp)
def log1p(writer: Writer, op: math.Log1pOp) -> str:
    """2 · atanh(x / (x + 2)) near 0, elsewhere log(1 + x)."""
    one, two, half = (writer.like(value, op.input) for value in (1.0, 2.0, 0.5))
    ratio = writer.emit("Div", op.input, writer.emit("Add", op.input, two))
    near = writer.emit("Mul", writer.emit("Atanh", ratio), two)
    far = writer.emit("Log", writer.emit("Add", op.input, one))
    return writer.emit("Where", writer.emit("Less", writer.emit("Abs", op.input), half), near, far)


@onnx_export(binary.BitShiftOp)
def bit_shift(writer: Writer, op: binary.BitShiftOp) -> str:
    """Shift to the left or right."""
    return writer.emit("BitShift", op.left, op.right, direction=text(op.direction).upper())


@onnx_export(binary.ClipOp)
def clip(writer: Writer, op: binary.ClipOp) -> str:
    """A Clip for scalar limits, or Max and Min for arrays."""
    limits = [limit for limit in (op.low, op.high) if limit is not None]
    if all(rank_of(limit) == 0 for limit in limits):
        return writer.emit("Clip", op.input, op.low, op.high)
    value = writer.name(op.input)
    if op.low is not None:
        value = writer.emit("Max", value, op.low)
    return value if op.high is None else writer.emit("Min", value, op.high)


@onnx_export(math.CastOp)
def cast(writer: Writer, op: math.CastOp) -> str:
    """A Cast."""
    beyond: dict[str, Any] = {"saturate": int(flag(op.saturate))} if is_narrow_float(op.to) else {}
    if beyond and is_power_of_two(op.to):
        beyond["round_mode"] = text(op.round_mode)
    return writer.emit("Cast", op.input, to=helper.np_dtype_to_tensor_dtype(numpy_dtype(op.to)), **beyond)


@onnx_export(SplatOp)
def splat(writer: Writer, op: SplatOp) -> str:
    """A tensor filled with one value."""
    dtype = numpy_dtype(element_of(op.result))
    if rank_of(op.result) == 0:
        return writer.constant(number(op.value), dtype)
    value = onnx.numpy_helper.from_array(np.array([number(op.value)], dtype))
    return writer.emit("ConstantOfShape", writer.sizes(sizes_of(op.result)), value=value)


# ---- quantized values


def _parameters(
    writer: Writer, op: quantization_ops.QuantizeOp | quantization_ops.DequantizeOp
) -> tuple[str, str, int | None]:
    """Scale and zero point in ONNX's form, and the axis along which they differ."""
    element = op.to if isinstance(op, quantization_ops.QuantizeOp) else element_of(op.input)
    static = parameters_of(element)
    storage = storage_of(element)
    dtype = numpy_dtype(storage)
    if static is not None:
        scale = writer.constant(static[0], numpy_dtype(expressed_of(element)))
        return scale, writer.constant(static[1], dtype), None
    assert op.scale is not None
    shape, rank = shape_of(op.scale), rank_of(op.input)
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    if len(wide) > 1 or not is_integer(storage):
        raise writer.unsupported(f"scales of shape {shape} cannot be exported")
    axis = rank - len(shape) + wide[0] if wide else None
    sizes = (shape[wide[0]],) if wide else ()
    scale = writer.reshaped(op.scale, sizes)
    if op.zero_point is None:
        return scale, writer.constant(np.zeros(sizes), dtype), axis
    zero_point = writer.name(op.zero_point)
    if shape_of(op.zero_point) != shape:
        zero_point = writer.emit("Expand", zero_point, writer.constant(shape))
    return scale, writer.reshaped(zero_point, sizes), axis


@onnx_export(quantization_ops.QuantizeOp)
def quantize(writer: Writer, op: quantization_ops.QuantizeOp) -> str:
    """A QuantizeLinear."""
    scale, zero_point, axis = _parameters(writer, op)
    return writer.emit("QuantizeLinear", op.input, scale, zero_point, axis=axis)


@onnx_export(quantization_ops.DequantizeOp)
def dequantize(writer: Writer, op: quantization_ops.DequantizeOp) -> str:
    """A DequantizeLinear."""
    scale, zero_point, axis = _parameters(writer, op)
    return writer.emit("DequantizeLinear", op.input, scale, zero_point, axis=axis)


@onnx_export(quantization_ops.StorageCastOp)
def storage_cast(writer: Writer, op: quantization_ops.StorageCastOp) -> str:
    """The operand itself: ONNX's integer types have no quantization parameters."""
    return writer.name(op.input)

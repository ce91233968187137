"""Export of products of quantized values, and of the rescaling of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float, numpy_dtype, storage_of
from glow_mlir.dialects.glow_high import quantization as quantization_ops
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.ir.registry import onnx_export

INTEGER_PRODUCTS = {"Conv": "ConvInteger", "MatMul": "MatMulInteger"}
"""Product → the product of 8-bit quantized values with i32 accumulators."""


def zero_point_name(writer: Writer, value: SSAValue) -> str:
    """The zero point of quantized values; absent for plain integers."""
    element = element_of(value)
    found = parameters_of(element)
    return "" if found is None else writer.constant(found[1], numpy_dtype(storage_of(element)))


def product(
    writer: Writer, op: HighOp, kind: str, left: str, right: str, *bias: SSAValue | None, **attributes: Any
) -> str:
    """
    A product of the first two operands of an operator, given by their names, with a bias of their type.

    Narrow floats with a wide product are cast first. Raises `UnsupportedError` for products of quantized values that
    ONNX does not have.
    """
    elements = [element_of(value) for value in op.operands[:2]]
    result = element_of(op.results[0])
    if all(element == result for element in elements):
        return writer.emit(kind, left, right, *bias, **attributes)
    if is_float(result):
        wide = [writer.emit("Cast", name, to=onnx.TensorProto.FLOAT) for name in (left, right)]
        return writer.emit(kind, *wide, *bias, **attributes)
    if kind not in INTEGER_PRODUCTS or any(numpy_dtype(storage_of(element)).itemsize > 1 for element in elements):
        raise writer.unsupported(f"a product of {elements[0]} and {elements[1]} cannot be exported")
    zero_points = [zero_point_name(writer, value) for value in op.operands[:2]]
    return writer.emit(INTEGER_PRODUCTS[kind], left, right, *zero_points, **attributes)


@onnx_export(quantization_ops.RescaleOp)
def rescale(writer: Writer, op: quantization_ops.RescaleOp) -> str:
    """Multiply and add in f32, and quantize with scale 1."""
    number = writer.emit("Cast", op.input, to=onnx.TensorProto.FLOAT)
    scaled = writer.emit("Mul", number, op.multiplier)
    moved = scaled if op.offset is None else writer.emit("Add", scaled, op.offset)
    static = parameters_of(op.to)
    zero_point = writer.constant(0 if static is None else static[1], numpy_dtype(storage_of(op.to)))
    return writer.emit("QuantizeLinear", moved, writer.constant(1.0, np.float32), zero_point)


@onnx_export(quantization_ops.LookupOp)
def lookup(writer: Writer, op: quantization_ops.LookupOp) -> str:
    """Gather a table entry for each quantized value; negative values count from the end."""
    return writer.emit("Gather", op.table, writer.emit("Cast", op.input, to=onnx.TensorProto.INT64))

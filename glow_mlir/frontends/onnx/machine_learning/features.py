"""The operators of ai.onnx.ml that prepare features."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, EqualOp, GreaterOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, IsNanOp, SqrtOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.machine_learning.encoders import ML, operand_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings, Value, takes_values
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.symbols import product_of


@onnx_operator("ArrayFeatureExtractor", domain=ML)
@takes_values
def array_feature_extractor(node: Node) -> Value:
    """Gather columns of numbers or strings; a vector is one row."""
    value = operand_of(node)
    rows = value.numbers if isinstance(value, Strings) else value
    if rank_of(rows) == 1:
        rows = node.emit(ReshapeOp, rows, shape=(1, *sizes_of(rows)))
    columns = node.emit(ReshapeOp, node.input(1), shape=(product_of(node.sizes(1)),))
    found = node.emit(GatherOp, rows, columns, axis=rank_of(rows) - 1)
    return Strings(found) if isinstance(value, Strings) else found


@onnx_operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node) -> SSAValue:
    """Concatenate all operands as f32 [N, total], each cut or padded with zeros to its number of features."""
    widths = node.ints("inputdimensions", ())
    if len(widths) != len(node.inputs):
        raise ModelError(f"FeatureVectorizer: {len(widths)} sizes for {len(node.inputs)} operands", node=node.name)
    columns: list[SSAValue] = []
    for position, width in enumerate(widths):
        value = node.cast(node.input(position), f32)
        sizes = sizes_of(value)
        if len(sizes) == 1:
            value = node.emit(ReshapeOp, value, shape=(1, *sizes))
        elif len(sizes) != 2:
            raise node.unsupported(f"operand {position} has {len(sizes)} axes, not two")
        columns.append(_of_width(node, value, width))
    return node.emit(ConcatOp, columns, axis=1)


def _of_width(node: Node, value: SSAValue, width: int) -> SSAValue:
    """Cut or pad a matrix to `width` columns."""
    columns = sizes_of(value)[1]
    if columns == width:
        return value
    if not isinstance(columns, int) or width < 0:
        raise node.unsupported(f"{width} features of {columns} columns")
    if columns > width:
        return cut(node, value, {1: (0, width)})
    return node.emit(PadOp, value, node.splat(0.0, value), pads=(0, 0, 0, width - columns))


@onnx_operator("Binarizer", domain=ML)
def binarizer(node: Node) -> SSAValue:
    """1 above a threshold, else 0, in the operand's type."""
    value = node.input()
    limit = node.float("threshold", 0.0)
    if not is_float_dtype(numpy_dtype(node.element())):
        limit = float(np.floor(limit))
    return node.cast(node.emit(GreaterOp, value, node.splat(limit, value)), node.element())


@onnx_operator("Scaler", domain=ML)
def scaler(node: Node) -> SSAValue:
    """(x − offset) · scale in f32; offset and scale are one number, or one for each column."""
    value = node.cast(node.input(), f32)
    offset, scale = (
        _by_column(node, value, np.array(node.floats(name, ()) or (default,), np.float32), name)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    return node.emit(MulOp, node.emit(SubOp, value, offset), scale)


def _by_column(node: Node, value: SSAValue, numbers: np.ndarray, name: str) -> SSAValue:
    """One number, or one for each column, ready to broadcast to `value`; raises `ModelError` for other lengths."""
    columns = sizes_of(value)[-1] if rank_of(value) else 1
    if len(numbers) not in (1, columns) or (len(numbers) > 1 and rank_of(value) > 2):
        reason = f"{node.kind}: {len(numbers)} numbers in '{name}' for {sizes_of(value)}"
        raise ModelError(reason, node=node.name, hint="one, or one for each column")
    return node.constant(numbers if len(numbers) > 1 else numbers.reshape(()), name)


@onnx_operator("Imputer", domain=ML)
def imputer(node: Node) -> SSAValue:
    """Replace elements equal to a number, or NaN, by another number: one for all columns, or one for each."""
    value = node.input()
    dtype = numpy_dtype(node.element())
    if is_float_dtype(dtype):
        filling, replaced = node.floats("imputed_value_floats", ()), node.float("replaced_value_float", 0.0)
    else:
        filling, replaced = node.ints("imputed_value_int64s", ()), node.int("replaced_value_int64", 0)
    if not filling:
        raise ModelError("Imputer: it has no values of the type of its operand", node=node.name)
    is_replaced = (
        node.emit(IsNanOp, value) if replaced != replaced else node.emit(EqualOp, value, node.splat(replaced, value))
    )
    numbers = _by_column(node, value, np.array(filling, dtype), "imputed values")
    return node.emit(WhereOp, is_replaced, numbers, value)


@onnx_operator("Normalizer", domain=ML)
def normalizer(node: Node) -> SSAValue:
    """
    Divide rows, in f32, by their norm; a row with norm 0 is unchanged.

    The norm is the largest element (MAX), the sum of magnitudes (L1), or the Euclidean norm (L2). As in onnxruntime,
    MAX ignores magnitudes of negative elements.
    """
    value = node.cast(node.input(), f32)
    node.check_rank(0, (1, 2), "a matrix, or one row")
    axis = rank_of(value) - 1
    match node.text("norm", "MAX"):
        case "MAX":
            norm = node.emit(ReduceMaxOp, value, axes=[axis], keepdims=True)
        case "L1":
            norm = node.emit(ReduceSumOp, node.emit(AbsOp, value), axes=[axis], keepdims=True)
        case "L2":
            squares = node.emit(ReduceSumOp, node.emit(MulOp, value, value), axes=[axis], keepdims=True)
            norm = node.emit(SqrtOp, squares)
        case word:
            raise ModelError(f"Normalizer: there is no norm '{word}'", node=node.name, hint="MAX, L1 or L2")
    is_zero = node.emit(EqualOp, norm, node.splat(0.0, norm))
    return node.emit(DivOp, value, node.emit(WhereOp, is_zero, node.splat(1.0, norm), norm))

"""
Gradients of quantization and its inverse: straight-through, as if nothing were rounded (arXiv 1308.3432).

The cotangent of quantized values is that of the numbers they represent; scales of quantized values computed by the
graph get none.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import storage_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import GreaterOrEqualOp, LessOrEqualOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds, parameters_of
from glow_mlir.dialects.shapes import element_of
from glow_mlir.differentiation.contributions import Contributions, converted_like, reduced_to
from glow_mlir.differentiation.elementwise import elementwise
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


def stands_for_numbers(value: SSAValue) -> bool:
    """Whether a value is the quantization of numbers that the graph computes."""
    op = value.owner
    while isinstance(op, StorageCastOp):
        op = op.input.owner
    return isinstance(op, QuantizeOp)


@gradient(QuantizeOp)
def quantize(op: QuantizeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    The cotangent where the quantized value is in range, bounds included, as in `torch.fake_quantize_per_tensor_affine`.
    """

    def contribution() -> SSAValue:
        value, zero = cotangent, emit.splat(0, cotangent)
        for beyond, comparison, step in zip(_bounds(op), (GreaterOrEqualOp, LessOrEqualOp), (-0.5, 0.5), strict=True):
            inside = emit(comparison, op.input, _number_at(op, beyond + step, emit))
            value = emit(WhereOp, inside, value, zero)
        return converted_like(reduced_to(value, op.input, emit), op.input, emit)

    return {"input": contribution}


def _bounds(op: QuantizeOp) -> tuple[int, int]:
    """The least and the largest quantized value."""
    if isinstance(op.to, UniformQuantizedType):
        return op.to.least.data, op.to.most.data
    return integer_bounds(cast("IntegerType", storage_of(op.to)))


def _number_at(op: QuantizeOp, code: float, emit: Emitter) -> SSAValue:
    """The number that a quantized value represents; `code` may lie between two."""
    if (known := parameters_of(op.to)) is not None:
        return emit.splat((code - known[1]) * known[0], op.input)
    assert op.scale is not None
    nearest = emit.splat(code, op.scale)
    if op.zero_point is not None:
        nearest = emit(SubOp, nearest, emit(CastOp, op.zero_point, to=element_of(op.scale)))
    return converted_like(emit(MulOp, nearest, op.scale), op.input, emit)


@gradient(DequantizeOp)
def dequantize(op: DequantizeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent; the scale has a cotangent only for quantized values that the graph does not compute."""
    if not stands_for_numbers(op.input):
        return elementwise(op, cotangent, emit)
    return {"input": lambda: reduced_to(cotangent, op.input, emit)}


@gradient(StorageCastOp)
def storage_cast(op: HighOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent, because quantized values do not change."""
    return {"input": lambda: cotangent}

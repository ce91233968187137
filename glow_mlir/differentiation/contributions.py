"""The results of gradient functions, and their helpers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.symbols import Sizes

Contribution = Callable[[], SSAValue | None]
"""Emits the cotangent contributed to an operand; `None` if it is 0."""

Contributions = Mapping[str, Contribution | Sequence[Contribution]]
"""
Operand name of an operator → its contribution, or one for each value of a variadic operand.

Contributions that are not requested are not emitted. Operands without an entry have no differentiable influence.
"""


def by_operand(op: HighOp, contributions: Sequence[Contribution]) -> Contributions:
    """Contributions by operand name, given in the order of the operands."""
    grouped = zip(op.operand_groups(), group_like(op, contributions), strict=True)
    return {name: group for (name, _), group in grouped if group is not None}


def reduced_to(value: SSAValue, like: SSAValue, emit: Emitter) -> SSAValue:
    """A cotangent summed along the axes to which an operand was broadcast, with the operand's shape."""
    wanted = sizes_of(like)
    own = sizes_of(value)
    if own == wanted:
        return value
    behind = len(own) - len(wanted)
    axes = [axis for axis, size in enumerate(own) if axis < behind or (wanted[axis - behind] == 1 and size != 1)]
    total = emit(ReduceSumOp, value, axes=axes) if axes else value
    return reshaped(total, wanted, emit)


def expanded_to(value: SSAValue, sizes: Sizes, emit: Emitter) -> SSAValue:
    """A value broadcast to the given sizes."""
    if sizes_of(value) == sizes:
        return value
    if rank_of(value) < len(sizes):
        value = emit(ReshapeOp, value, shape=(*(1,) * (len(sizes) - rank_of(value)), *sizes_of(value)))
    return value if sizes_of(value) == sizes else emit(ExpandOp, value, shape=sizes)


def reshaped(value: SSAValue, sizes: Sizes, emit: Emitter) -> SSAValue:
    """A value with other sizes and the same elements."""
    return value if sizes_of(value) == sizes else emit(ReshapeOp, value, shape=sizes)


def transposed(value: SSAValue, permutation: Sequence[int], emit: Emitter) -> SSAValue:
    """A value with permuted axes."""
    if tuple(permutation) == tuple(range(rank_of(value))):
        return value
    return emit(TransposeOp, value, permutation=tuple(permutation))


def converted_like(value: SSAValue, other: SSAValue, emit: Emitter) -> SSAValue:
    """A value converted to the element type of another."""
    element = element_of(other)
    return value if element_of(value) == element else emit(CastOp, value, to=element)


def zeros_like(value: SSAValue, emit: Emitter) -> SSAValue:
    """Zeros with the sizes and the element type of a value."""
    return emit.splat(0, value, sizes_of(value))

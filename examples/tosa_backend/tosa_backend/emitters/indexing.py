"""What is taken by indices, and the indices of extremes."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32, i1, i8, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, ArgMinOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import PROPAGATE
from tosa_backend.elements import held
from tosa_backend.rules import emits


def _can_take(op: GatherOp) -> bool:
    return held(element_of(op.input)) != i1


@emits(GatherOp, when=_can_take)
def gather(op: GatherOp, b: TosaBuilder) -> SSAValue:
    """GATHER of [around, axis, inside]; an index below 0 counts from the back."""
    axis, count = normalize_axis(integer(op.axis), rank_of(op.input)), math.prod(shape_of(op.indices))
    size, known = shape_of(op.input)[axis], b.known(op.indices)
    if known is not None:
        places = b.constant(np.where(known < 0, known + size, known).astype(np.int32).reshape(1, count))
    else:
        places = b.reshape(b.value(op.indices), (1, count))
        below = b("greater", b.splat(0, i32, (1, 1)), places, shape=(1, count), element=i1)
        places = b("select", below, b.add(places, b.splat(size, i32, (1, 1))), places, shape=(1, count), element=i32)
    return b.reshape(taken(b, b.value(op.input), axis, places), shape_of(op.result))


def taken(b: TosaBuilder, value: SSAValue, axis: int, places: SSAValue) -> SSAValue:
    """What is at places [1, count] of an axis."""
    shape, (_, count) = shape_of(value), shape_of(places)
    around, inside = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    values = b.reshape(value, (around, shape[axis], inside))
    found = b("gather", values, b.tile(places, (around, 1)), shape=(around, count, inside))
    return b.reshape(found, (*shape[:axis], count, *shape[axis + 1 :]))


def _first_largest(op: ArgMaxOp) -> bool:
    return held(element_of(op.input)) in (f32, i8) and not flag(op.select_last_index)


@emits(ArgMaxOp, when=_first_largest)
def arg_max(op: ArgMaxOp, b: TosaBuilder) -> SSAValue:
    """ARGMAX, which takes the first of equal elements."""
    return _position(op, b.value(op.input), b)


def _first_smallest(op: ArgMinOp) -> bool:
    return element_of(op.input) == f32 and not flag(op.select_last_index)


@emits(ArgMinOp, when=_first_smallest)
def arg_min(op: ArgMinOp, b: TosaBuilder) -> SSAValue:
    """The place of the largest of the negated elements."""
    return _position(op, b.negate(b.value(op.input)), b)


def _position(op: ArgMaxOp | ArgMinOp, value: SSAValue, b: TosaBuilder) -> SSAValue:
    shape = shape_of(value)
    axis = normalize_axis(integer(op.axis), len(shape))
    left = (*shape[:axis], *shape[axis + 1 :])
    found = b("argmax", value, shape=left, element=i32, axis=b.axis(axis), nan_mode=PROPAGATE)
    return b.reshape(found, shape_of(op.result))

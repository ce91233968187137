"""Reductions, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import f32, i1, i8, i32
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.reductions import (
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
    Reduction,
)
from glow_mlir.dialects.shapes import element_of, shape_of
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import PROPAGATE
from tosa_backend.elements import held
from tosa_backend.rules import emits

NAMES: Mapping[type[Operation], tuple[str, Mapping[str, Any]]] = {
    ReduceSumOp: ("reduce_sum", {}),
    ReduceMeanOp: ("reduce_sum", {}),
    ReduceProdOp: ("reduce_product", {}),
    ReduceMaxOp: ("reduce_max", {"nan_mode": PROPAGATE}),
    ReduceMinOp: ("reduce_min", {"nan_mode": PROPAGATE}),
}
"""Reduction → TOSA's, and its properties."""


def _on_floats(op: Reduction) -> bool:
    return element_of(op.input) == f32


def _on_numbers(op: Reduction) -> bool:
    return held(element_of(op.input)) in (f32, i32)


def _on_order(op: Reduction) -> bool:
    return held(element_of(op.input)) in (f32, i8, i32) and element_of(op.input) != i1


def _reduced(op: Reduction, b: TosaBuilder) -> SSAValue:
    name, fields = NAMES[type(op)]
    found = b.value(op.input)
    for axis in op.reduced_axes():
        found = b.along(name, found, axis, **fields)
    return found


@emits(ReduceMaxOp, ReduceMinOp, when=_on_order)
def reduce_order(op: Reduction, b: TosaBuilder) -> SSAValue:
    """REDUCE_MAX and REDUCE_MIN."""
    return b.reshape(_reduced(op, b), shape_of(op.result))


@emits(ReduceSumOp, when=_on_numbers)
@emits(ReduceProdOp, when=_on_floats)
def reduce_numbers(op: Reduction, b: TosaBuilder) -> SSAValue:
    """REDUCE_SUM and REDUCE_PRODUCT; sums of integers that do not fit are undefined in TOSA."""
    return b.reshape(_reduced(op, b), shape_of(op.result))


@emits(ReduceMeanOp, when=_on_floats)
def reduce_mean(op: ReduceMeanOp, b: TosaBuilder) -> SSAValue:
    """The sum, times one over the count."""
    total, shape = _reduced(op, b), shape_of(op.input)
    count = math.prod(shape[axis] for axis in op.reduced_axes())
    share = b.splat(1 / count, f32, (1,) * len(shape))
    return b.reshape(b.mul(total, share) if shape else total, shape_of(op.result))

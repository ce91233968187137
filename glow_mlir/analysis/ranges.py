"""Ranges of tensors: between which numbers all elements lie, as far as operators and constants tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_bool, is_float, is_unsigned
from glow_mlir.dialects.glow_high import activations, elementwise_math, indexing, normalization, pooling, reductions
from glow_mlir.dialects.glow_high import data_movement as movement
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, size_of
from glow_mlir.ir.traversal import Scope, operations

MOST_ELEMENTS = 1 << 12
"""Constants with more elements are not looked at."""


@dataclass(frozen=True)
class Range:
    """All elements that are not NaN lie in [`low`, `high`]; a zero of either sign is 0."""

    low: float = -math.inf
    high: float = math.inf

    def within(self, low: float, high: float) -> bool:
        """Whether the range lies in [low, high]."""
        return low <= self.low and self.high <= high

    def join(self, other: Range) -> Range:
        """The smallest range that has both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def sign(self) -> Range:
        """What is left of the range where only signs are sure."""
        return Range(0.0 if self.low >= 0 else -math.inf, 0.0 if self.high <= 0 else math.inf)


ANY = Range()
POSITIVE = Range(0.0, math.inf)
NEGATIVE = Range(-math.inf, 0.0)
UNIT = Range(0.0, 1.0)
SIGNED_UNIT = Range(-1.0, 1.0)
ZERO = Range(0.0, 0.0)

Rule = Callable[[Operation, Sequence[Range]], Range]


def _always(range_: Range) -> Rule:
    return lambda op, operands: range_


def _first(op: Operation, operands: Sequence[Range]) -> Range:
    return operands[0]


def _joined(op: Operation, operands: Sequence[Range]) -> Range:
    joined = operands[0]
    for operand in operands[1:]:
        joined = joined.join(operand)
    return joined


def _where(op: Operation, operands: Sequence[Range]) -> Range:
    return _joined(op, operands[1:])


def _pad(op: Operation, operands: Sequence[Range]) -> Range:
    assert isinstance(op, movement.PadOp)
    if text(op.mode) != "constant":
        return operands[0]
    return operands[0].join(operands[1] if op.value is not None else ZERO)


def _positive(op: Operation, operands: Sequence[Range]) -> Range:
    """What leaves positive numbers as they are, and does anything to negative ones."""
    return operands[0] if operands[0].low >= 0 else ANY


def _largest(op: Operation, operands: Sequence[Range]) -> Range:
    return Range(max(operand.low for operand in operands), max(operand.high for operand in operands))


def _smallest(op: Operation, operands: Sequence[Range]) -> Range:
    return Range(min(operand.low for operand in operands), min(operand.high for operand in operands))


def _sum_of_signs(op: Operation, operands: Sequence[Range]) -> Range:
    return _joined(op, operands).sign() if is_float(element_of(op.results[0])) else ANY


def _product(op: Operation, operands: Sequence[Range]) -> Range:
    if not is_float(element_of(op.results[0])):
        return ANY
    left, right = (operand.sign() for operand in operands)
    alike = op.operands[0] is op.operands[1] or (left == right and left in (POSITIVE, NEGATIVE))
    return POSITIVE if alike else ANY


def _cast(op: Operation, operands: Sequence[Range]) -> Range:
    """Signs stay where a float is on either side; integers among themselves wrap."""
    source, target = element_of(op.operands[0]), element_of(op.results[0])
    return operands[0].sign() if is_float(source) or is_float(target) else ANY


def _not_empty(op: Operation, operands: Sequence[Range]) -> Range:
    return operands[0] if size_of(op.operands[0]) else ANY


def _max_pool(op: Operation, operands: Sequence[Range]) -> Range:
    assert isinstance(op, pooling.Pool)
    return operands[0] if meets_input(op) else ANY


def _mean(op: Operation, operands: Sequence[Range]) -> Range:
    return operands[0].join(ZERO).sign()


def _float_positive(op: Operation, operands: Sequence[Range]) -> Range:
    return POSITIVE if is_float(element_of(op.results[0])) else ANY


def meets_input(op: pooling.Pool) -> bool:
    """Whether every window has an element of the input, not padding alone, as far as is simple to say."""
    window = op.window()
    rank = len(window.kernel)
    short = all(max(window.padding(axis)) < window.kernel[axis] for axis in range(rank))
    return not any(window.pads) or (short and set(window.dilations) == {1} and not window.ceil_mode)


RULES: Mapping[type[Operation], Rule] = {
    activations.EluOp: _positive,
    activations.HardSigmoidOp: _always(UNIT),
    activations.LeakyReluOp: _positive,
    activations.SigmoidOp: _always(UNIT),
    activations.SoftplusOp: _always(POSITIVE),
    activations.SoftsignOp: _always(SIGNED_UNIT),
    activations.TanhOp: _always(SIGNED_UNIT),
    binary.AddOp: _sum_of_signs,
    binary.MaxOp: _largest,
    binary.MinOp: _smallest,
    binary.MulOp: _product,
    binary.WhereOp: _where,
    elementwise_math.AbsOp: _float_positive,
    elementwise_math.CastOp: _cast,
    elementwise_math.ErfOp: _always(SIGNED_UNIT),
    elementwise_math.ExpOp: _always(POSITIVE),
    elementwise_math.SqrtOp: _always(POSITIVE),
    indexing.GatherElementsOp: _first,
    indexing.GatherNDOp: _first,
    indexing.GatherOp: _first,
    movement.ConcatOp: _joined,
    movement.ExpandOp: _first,
    movement.PadOp: _pad,
    movement.ReshapeOp: _first,
    movement.SliceOp: _first,
    movement.TileOp: _first,
    movement.TransposeOp: _first,
    normalization.HardmaxOp: _always(UNIT),
    normalization.LogSoftmaxOp: _always(NEGATIVE),
    normalization.SoftmaxOp: _always(UNIT),
    pooling.AvgPoolOp: _mean,
    pooling.LpPoolOp: _float_positive,
    pooling.MaxPoolOp: _max_pool,
    reductions.ReduceL1Op: _float_positive,
    reductions.ReduceL2Op: _float_positive,
    reductions.ReduceMaxOp: _not_empty,
    reductions.ReduceMeanOp: _sum_of_signs,
    reductions.ReduceMinOp: _not_empty,
    reductions.ReduceSumOp: _sum_of_signs,
    reductions.ReduceSumSquareOp: _float_positive,
}
"""Operator → the range of its result, from those of its operands. What limits elements has `limits_of`."""


def value_ranges(scope: Scope, storage: Storage) -> dict[SSAValue, Range]:
    """The ranges of all values of a function or block about which something is known, in one walk."""
    known: dict[SSAValue, Range] = {}
    for op in operations(scope):
        for result in op.results:
            if (found := _range_of(op, result, known, storage)) != ANY:
                known[result] = found
    return known


def _range_of(op: Operation, result: SSAValue, known: Mapping[SSAValue, Range], storage: Storage) -> Range:
    if isinstance(op, GetOp):
        return _constant_range(result, storage)
    number = splat_number(result)
    if number is not None:
        return ANY if math.isnan(number) or is_bool(element_of(result)) else Range(number, number)
    operands = [known.get(operand, ANY) for operand in op.operands]
    limits = limits_of(op)
    if limits is not None:
        inner = known.get(limits.input, ANY)
        return Range(limits.limited(inner.low), limits.limited(inner.high))
    rule = RULES.get(type(op))
    found = ANY if rule is None or not operands else rule(op, operands)
    return POSITIVE if found == ANY and is_unsigned(element_of(result)) else found


def _constant_range(value: SSAValue, storage: Storage) -> Range:
    if not 0 < size_of(value.type) <= MOST_ELEMENTS or is_bool(element_of(value)):
        return ANY
    array = storage.value_of(value)
    if array is None or np.isnan(array).all():
        return ANY
    # Not as floats, which have no room for all integers.
    return Range(np.nanmin(array).item(), np.nanmax(array).item())

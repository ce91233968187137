"""`raise-gathers`: gather the rows of a table, and compute on these, instead of computing on the whole table."""

from __future__ import annotations

import math

from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import bytes_of, has_static_shape, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class RaiseGather(Pattern):
    """Gather the operands of elementwise operators instead of their result, if that has more rows than are gathered."""

    limit: int
    """Tables that are computed from constants stay as they are up to this many bytes."""

    @rooted
    def match_and_rewrite(self, op: GatherOp, rewriter: Rewriter, /) -> None:
        table = _Table(op)
        if not table.is_larger() or not table.operators or not all(map(_is_stored, table.read)):
            return
        if all(map(rewriter.storage.is_constant, map(_origin, table.read))):
            # Elementwise operators on constants cost nothing in a call: only memory may be won.
            size = bytes_of(op.input)
            if size <= self.limit or size <= sum(bytes_of(_narrow(value)) for value in table.read):
                return
        rewriter.replace(op, (), [table.gathered(op.input, rewriter.emit)])


class _Table:
    """The input of a gather as a tree of elementwise operators that only gathers read."""

    def __init__(self, op: GatherOp) -> None:
        self._op = op
        self._rank = rank_of(op.input)
        self._axis = normalize_axis(integer(op.axis), self._rank)
        self.operators: set[Operation] = set()
        """The operators of the tree."""
        self.read: dict[SSAValue, None] = {}
        """The values that the tree reads and that differ from row to row."""
        if all(isinstance(use.operation, GatherOp) and use.index == 0 for use in op.input.uses):
            self._add(op.input)
            while added := [value for value in self.read if self._is_own(value)]:
                for value in added:
                    del self.read[value]
                    self._add(value)

    def is_larger(self) -> bool:
        """Whether the table has more rows than are gathered."""
        if not has_static_shape(self._op.input):
            return False
        gathered = math.prod(map(largest, sizes_of(self._op.indices)))
        return shape_of(self._op.input)[self._axis] > gathered

    def _is_own(self, value: SSAValue) -> bool:
        """Whether an elementwise operator computes a value for the tree alone."""
        return _is_elementwise(value) and all(use.operation in self.operators for use in value.uses)

    def _add(self, value: SSAValue) -> None:
        """Add the operator behind a value."""
        if _is_elementwise(value):
            assert isinstance(value.owner, HighOp)
            self.operators.add(value.owner)
            self.read |= dict.fromkeys(filter(self._has_rows, value.owner.operands))

    def _place(self, value: SSAValue) -> int:
        """The axis of an operand along which rows are gathered; negative if it has none."""
        return self._axis - self._rank + rank_of(value)

    def _has_rows(self, value: SSAValue) -> bool:
        """Whether an operand differs from row to row."""
        place = self._place(value)
        return place >= 0 and sizes_of(value)[place] != 1

    def gathered(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """Emit the rows of a value in the tree, or of an operand of it."""
        return self._gathered(value, emit, {})

    def _gathered(self, value: SSAValue, emit: Emitter, known: dict[SSAValue, SSAValue]) -> SSAValue:
        if value not in known:
            known[value] = self._emitted(value, emit, known)
        return known[value]

    def _emitted(self, value: SSAValue, emit: Emitter, known: dict[SSAValue, SSAValue]) -> SSAValue:
        owner, place = value.owner, self._place(value)
        if owner in self.operators:
            assert isinstance(owner, HighOp)
            operands = [self._gathered(operand, emit, known) for operand in owner.operands]
            return emit.insert(type(owner).inferred(operands, owner.properties, owner.location)).results[0]
        if place < 0:
            return value  # It has fewer axes, and is broadcast along the rows.
        if self._has_rows(value):
            return emit(GatherOp, value, self._op.indices, axis=place, failure=text(self._op.failure))
        sizes, rank = shape_of(value), rank_of(self._op.indices)
        if rank == 1 or (rank and place == 0):
            return value
        return emit(ReshapeOp, value, shape=(*sizes[:place], *[1] * rank, *sizes[place + 1 :]))


def _is_elementwise(value: SSAValue) -> bool:
    """Whether an elementwise operator computes a value; dequantized values stay what gathers dequantize later."""
    return isinstance(value.owner, Elementwise) and not isinstance(value.owner, DequantizeOp)


def _origin(value: SSAValue) -> SSAValue:
    """The value whose elements another one has, moved or dequantized."""
    while isinstance(owner := value.owner, DequantizeOp | BlockwiseDequantizeOp | DataMovement) and _moves(owner):
        value = owner.operands[0]
    return value


def _moves(op: HighOp) -> bool:
    """Whether all elements of the result are elements of one operand, perhaps dequantized."""
    return not isinstance(op, DataMovement) or (op.moves_only() and len(op.operands) == 1)


def _narrow(value: SSAValue) -> SSAValue:
    """The dequantized value behind a dequantization, or the value itself."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, DequantizeOp | BlockwiseDequantizeOp) else value


def _is_stored(value: SSAValue) -> bool:
    """Whether a value is a constant, an input or state, or has their elements: no operator computes it."""
    return isinstance(_origin(value).owner, GetOp)


@dataclass(frozen=True)
class RaiseGathersPass(PatternPass):
    """
    Gather above elementwise operators on stored tables that have more rows than are gathered.

    Tables of inputs and state are not computed as a whole. Tables of constants with more than `limit` bytes stay in
    their narrow type; others are computed by `fold-constants`. Tables with other readers stay.
    """

    name = "raise-gathers"

    limit: int = 1 << 20

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((RaiseGather(self.limit),)),)

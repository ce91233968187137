"""`merge-reductions`: compute the smallest and the largest element of a tensor in one pass."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from glow_mlir.dialects.expressions import equal, where
from glow_mlir.dialects.generic_form import generic_form, operand_tensors, rounded
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.expressed import axis_names
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMinOp
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass


class MergeMinimumWithMaximum(Pattern):
    """Replace a minimum and a maximum over all elements of one tensor by a row of both."""

    @rooted
    def match_and_rewrite(self, op: ReduceMinOp, rewriter: Rewriter, /) -> None:
        rank = rank_of(op.input)
        if not rank or len(op.reduced_axes()) < rank:
            return
        users = (use.operation for use in op.input.uses)
        alike = (user for user in users if isinstance(user, ReduceMaxOp) and len(user.reduced_axes()) == rank)
        other = next(alike, None)
        if other is None or other.parent is not op.parent:
            return
        emit = rewriter.emit_before(_first_reader(op), fuse_locations([op.location, other.location]))
        numbers = emit.constant(np.arange(2, dtype=np.int32), "limits")
        names = axis_names(rank)
        signature = Signature.parse(f"x[{', '.join(names)}], number[row] -> limits[row]")
        operands = (op.input, numbers)
        elements = [element_of(value) for value in operands]
        x, number = operand_tensors(signature, elements)
        least, most = op.of_elements(x, tuple(names)), other.of_elements(x, tuple(names))
        root = rounded(where(equal(number, 0), least, most), elements[0])
        form = generic_form(signature, root, elements, [sizes_of(value) for value in operands])
        row = GenericOp.of(operands, form, emit.location)
        for inner in row.walk():
            inner.location = emit.location
        emit.insert(row)
        reductions = op, other
        parts = [emit(SliceOp, row.result, starts=[place], ends=[place + 1], steps=[1]) for place in range(2)]
        shaped = [
            emit(ReshapeOp, part, shape=sizes_of(own.result)) for part, own in zip(parts, reductions, strict=True)
        ]
        for reduction, value in zip(reductions, shaped, strict=True):
            rewriter.replace(reduction, (), [value])


def _first_reader(op: ReduceMinOp) -> Operation:
    """The first operator that may read the operand of a reduction in its block."""
    owner, block = op.input.owner, op.parent
    assert block is not None, "the reduction is in a block"
    following = owner.next_op if isinstance(owner, Operation) and owner.parent is block else None
    return next(own_operations(block)) if following is None else following


@dataclass(frozen=True)
class MergeReductionsPass(PatternPass):
    """
    Replace a minimum and a maximum over all elements of a tensor, as dynamic quantization takes them, by one operator
    that reads the tensor once. Both are exact in any order.
    """

    name = "merge-reductions"
    WALKS = (Walk((MergeMinimumWithMaximum(),)),)

"""`shrink-splats`: let elementwise operators broadcast a scalar instead of reading a uniform tensor."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.constants.layer_weights import agreed
from glow_mlir.constants.storage import Storage, scalar_attribute, splat_array
from glow_mlir.dialects.glow_high.base import group_like
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import broadcast, element_of, has_one_element, is_empty, rank_of, shape_of, sizes_of
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class ShrinkOperands(Pattern):
    """Replace uniform operands by scalars, as long as another operand determines the shape of the result."""

    @rooted
    def match_and_rewrite(self, op: Elementwise, rewriter: Rewriter, /) -> None:
        for position, operand in enumerate(op.operands):
            if rank_of(operand) == 0:
                continue
            sizes = [sizes_of(other) for index, other in enumerate(op.operands) if index != position]
            if broadcast(*sizes) != sizes_of(op.result):
                continue
            number = equal_elements(operand, rewriter.storage)
            if number is not None:
                value = scalar_attribute(number, element_of(operand))
                op.operands[position] = rewriter.emit(SplatOp, value=value, shape=())
                rewriter.notify_op_modified(op)


class ComputeSplat(Pattern):
    """Evaluate an operator on splats to a splat; single elements are left to `fold-constants`."""

    @rooted
    def match_and_rewrite(self, op: Elementwise, rewriter: Rewriter, /) -> None:
        splats = [value.owner for value in op.operands if isinstance(value.owner, SplatOp)]
        if len(splats) < len(op.operands) or has_one_element(op.result) or is_empty(op.result):
            return
        ones = [splat_array(splat).reshape(-1)[0].reshape(()) for splat in splats]
        (result,) = apply_semantics(op, group_like(op, ones))
        value = scalar_attribute(np.asarray(result).reshape(-1)[0], element_of(op.result))
        rewriter.replace(op, SplatOp.make(value=value, shape=shape_of(op.result)))


@dataclass(frozen=True)
class ShrinkSplatsPass(PatternPass):
    """
    Turn uniform operands of elementwise operators into scalar splats, and operators on splats alone into splats (Glow's
    OptimizeSplat).
    """

    name = "shrink-splats"
    WALKS = (Walk((ShrinkOperands(), ComputeSplat())),)


def equal_elements(value: SSAValue, storage: Storage) -> np.generic | None:
    """The common value of all elements of a splat or constant, or `None`."""
    array = None if is_empty(value) else storage.deferred(value)
    if array is None:
        return None
    common = agreed(array, _common_bytes)
    return None if common is None else np.frombuffer(common, array.dtype)[0]


def _common_bytes(array: np.ndarray) -> bytes | None:
    """The bytes of each element if all are equal, or `None`."""
    flat = array.reshape(-1)
    first, last = flat[:1].tobytes(), flat[-1:].tobytes()
    same = first == last and bool((flat.view(np.uint8).reshape(flat.size, -1) == np.frombuffer(first, np.uint8)).all())
    return first if same else None

"""`shrink-splats`: let elementwise operators broadcast one number instead of reading a tensor of equal ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage, scalar_attribute
from glow_mlir.dialects.glow_high.base import group_like
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import broadcast, element_of, rank_of, shape_of, size_of
from glow_mlir.interpreter.machine import apply_semantics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class ShrinkSplatsPass(ModulePass):
    """
    Turn operands of elementwise operators whose elements are all equal into scalar splats, and operators on splats
    alone into splats (Glow's OptimizeSplat).
    """

    name = "shrink-splats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, Elementwise):
                    shrink_operands(candidate, storage)
                    compute_once(candidate, storage)
            erase_dead(function.block)


def shrink_operands(op: Elementwise, storage: Storage) -> None:
    """Replace operands of equal elements by scalars, as long as the others give the result its shape."""
    for position, operand in enumerate(op.operands):
        if rank_of(operand) == 0:
            continue
        shapes = [shape_of(other) for place, other in enumerate(op.operands) if place != position]
        if broadcast(*shapes) != shape_of(op.result):
            continue
        number = equal_elements(operand, storage)
        if number is not None:
            emit = Emitter(op, storage)
            element = element_of(operand)
            op.operands[position] = emit(SplatOp, value=scalar_attribute(number, element), shape=())


def equal_elements(value: SSAValue, storage: Storage) -> np.generic | None:
    """The number that all elements of a splat or constant are, or `None`."""
    array = storage.value_of(value) if size_of(value.type) else None
    if array is None:
        return None
    flat = array.reshape(-1)
    first, last = flat[:1].tobytes(), flat[-1:].tobytes()
    same = first == last and bool((flat.view(np.uint8).reshape(flat.size, -1) == np.frombuffer(first, np.uint8)).all())
    return flat[0] if same else None


def compute_once(op: Elementwise, storage: Storage) -> None:
    """Replace an operator on splats by a splat."""
    arrays = [storage.value_of(value) for value in op.operands if isinstance(value.owner, SplatOp)]
    if len(arrays) < len(op.operands) or size_of(op.result) < 2:
        return  # A single element is for `fold-constants`.
    ones = [np.asarray(array).reshape(-1)[0].reshape(()) for array in arrays]
    (result,) = apply_semantics(op, group_like(op, ones))
    emit = Emitter(op, storage)
    attribute = scalar_attribute(np.asarray(result).reshape(-1)[0], element_of(op.result))
    replace(op, [emit(SplatOp, value=attribute, shape=shape_of(op.result))])

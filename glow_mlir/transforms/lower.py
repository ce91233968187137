"""`lower`: replace operators that the backend does not execute by simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of, shape_of, size_of
from glow_mlir.ir import statistics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import LOWERINGS
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class LowerPass(ModulePass):
    """
    Lower operators that the backend does not support, until it supports all or no lowering is left (paper §3.4).

    Those whose results have no elements become splats.
    What cannot be lowered stays; `verify-lowered` reports it.
    """

    name = "lower"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            backend = get_backend(function.target.backend)
            pending: list[Operation] = list(function.block.ops)
            while pending:
                candidate = pending.pop()
                if isinstance(candidate, HighOp):
                    pending += lower_one(candidate, backend, storage)
            erase_dead(function.block)


def is_same(new: Operation, op: Operation) -> bool:
    """Whether a lowering gave back the operator that it was to lower."""
    alike = type(new) is type(op) and new.properties == op.properties
    return alike and list(new.operand_types) == list(op.operand_types)


def lower_one(op: HighOp, backend: Backend, storage: Storage) -> list[Operation]:
    """Lower one operator where the backend needs it; returns the operators that replace it."""
    if backend.supports(op):
        return []
    emit = Emitter(op, storage)
    if not any(size_of(result) for result in op.results):
        # Formulas of lowerings need not hold for operands without elements.
        replace(op, [emit.splat(0, element_of(result), shape_of(result)) for result in op.results])
        statistics.count("operators without elements")
        return []
    function = LOWERINGS.get(type(op))
    if function is None:
        return []
    values = cast("SSAValue | Sequence[SSAValue]", function(op, emit))
    if any(is_same(new, op) for new in emit.emitted):
        # Nothing gained: the operator stays, and `verify-lowered` reports it.
        for new in reversed(emit.emitted):
            Rewriter.erase_op(new)
        return []
    replace(op, [values] if isinstance(values, SSAValue) else list(values))
    statistics.count("operators lowered")
    return emit.emitted

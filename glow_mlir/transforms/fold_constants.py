"""`fold-constants`: replace operators on constants by their value, computed by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage, constant_op
from glow_mlir.constants.weights import is_large
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.interpreter.machine import apply_semantics
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace

LARGEST_SPLATS = 1 << 28
"""Bytes of splats from which on nothing is computed on them: they are small only as long as they are one number."""


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """
    Replace operators whose operands are all constants by a constant (Glow's ConstantFold).

    A result larger than `limit` bytes folds only where it is no larger than its operands together, so that an expanded
    constant does not bloat the weights.
    """

    name = "fold-constants"

    limit: int = 1 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, HighOp) and not isinstance(candidate, SplatOp):
                    self._fold(candidate, storage)
            erase_dead(function.block)

    def _fold(self, op: HighOp, storage: Storage) -> None:
        results = self._results(op, storage)
        if results is None:
            return
        replacements: list[SSAValue] = []
        block = op.parent_block()
        assert block is not None
        for result, array in zip(op.results, results, strict=True):
            wish = result.name_hint or op.name.split(".", 1)[1]
            new = constant_op(storage, array, wish, op.location)
            block.insert_op_before(new, op)
            replacements.append(new.results[0])
        replace(op, replacements)
        statistics.count("operators folded")

    def _results(self, op: HighOp, storage: Storage) -> Sequence[np.ndarray | Deferred] | None:
        """The values of the results, or `None` where they are not known, or too large."""
        if (moved := moved_elements(op, storage)) is not None:
            return (moved,)
        available = sum(map(bytes_of, op.operands))
        splats = sum(bytes_of(value) for value in op.operands if isinstance(value.owner, SplatOp))
        if splats > LARGEST_SPLATS or any(bytes_of(result) > max(self.limit, available) for result in op.results):
            return None
        operands = grouped_arrays(op, storage)
        return None if operands is None else tuple(map(np.asarray, apply_semantics(op, operands)))


def moved_elements(op: HighOp, storage: Storage) -> Deferred | None:
    """The result of an operator that only moves the elements of a large constant; `None` for every other one."""
    source = storage.deferred(op.input) if isinstance(op, TransposeOp | ReshapeOp) else None
    if not isinstance(op, TransposeOp | ReshapeOp) or source is None or not is_large(source) or source.size == 1:
        return None
    return source.transposed(ints(op.permutation)) if isinstance(op, TransposeOp) else source.reshaped(ints(op.shape))


def grouped_arrays(op: HighOp, storage: Storage) -> list[Any] | None:
    """The values of all operands, grouped as the definition says, or `None` where one is no constant."""
    if not op.operands or not all(map(storage.is_constant, op.operands)):
        return None
    return group_like(op, [storage.value_of(value) for value in op.operands])

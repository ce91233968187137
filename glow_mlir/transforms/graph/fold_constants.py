"""`fold-constants`: replace operators on constants by their value, computed by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import is_large
from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, SplatOp
from glow_mlir.dialects.lean_operation import operands_of
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import bytes_of, element_of, has_one_element
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.run_time_sizes import has_run_time_sizes
from glow_mlir.support.dataclass import dataclass

MAX_GROWTH = 8
"""How often the bytes of all constants results may have: some operators follow one another on weights."""

LARGEST_SPLATS = 1 << 28
"""Bytes of splats from which on nothing is computed on them: they are small only as long as they are one number."""


UNCOUNTED = 1 << 10
"""Bytes up to which a result is not counted: as much as an operator takes itself."""


@dataclass
class Growth:
    """How many bytes of constants all runs of the pass on one module have made, beside those that it had before."""

    held: int
    made: int = 0

    @staticmethod
    def of(module: ModuleOp) -> Growth:
        """
        That of a module, of which the first call notes what it holds.

        It is kept beside the IR: bounds that each run takes from what the run before has left multiply.
        """
        if module not in _GROWTHS:
            constants = (op for op in module.body.block.ops if isinstance(op, ConstantOp))
            _GROWTHS[module] = Growth(sum(bytes_of(op.type) for op in constants))
        return _GROWTHS[module]

    def allows(self, size: int, total: int) -> bool:
        """Whether there may be as many bytes more: `total` in all, or so many times what was there."""
        return self.made + size <= max(total, MAX_GROWTH * self.held)


_GROWTHS: WeakKeyDictionary[Operation, Growth] = WeakKeyDictionary()
"""Module → what has been made for it."""


class FoldMovedConstant(Pattern):
    """The elements of a large constant in another order or shape, which are moved when they are needed."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp | ReshapeOp, rewriter: Rewriter, /) -> None:
        moved = moved_elements(op, rewriter.storage)
        if moved is not None:
            replace_by_constants(op, [moved], rewriter)


@dataclass(frozen=True)
class FoldConstantOperands(Pattern):
    """An operator on constants alone is what the interpreter computes."""

    limit: int
    """Bytes of a result up to which it may be larger than the operands together."""
    total: int
    """Bytes that results may take together, whatever there was before."""
    codes: bool = False
    """Whether codes become the wider numbers that they stand for."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        given = operands_of(op)
        sources = [untyped(value) for value in given] if self.codes else given
        if not sources or not all(map(rewriter.storage.is_constant, sources)):  # Of most operators.
            return
        if not op.HAS_INSTRUCTION:  # Gradients are no functions of values.
            return
        if isinstance(op, SplatOp) or has_run_time_sizes(op) or is_typing(op) or (not self.codes and is_expansion(op)):
            return
        # An operand that is read twice is there once.
        available = sum(map(bytes_of, set(op.operands)))
        splats = sum(bytes_of(value) for value in op.operands if isinstance(value.owner, SplatOp))
        if splats > LARGEST_SPLATS or any(bytes_of(result) > max(self.limit, available) for result in op.results):
            return
        operands = group_like(op, [rewriter.storage.value_of(value) for value in sources])
        counted = sum(size for size in map(bytes_of, op.results) if size > min(self.limit, UNCOUNTED))
        growth = Growth.of(rewriter.storage.module)
        if counted and not growth.allows(counted, self.total):
            return
        try:
            results = apply_semantics(op, operands)
        except ExecutionError:  # It fails where it is executed, if it is.
            return
        growth.made += counted
        replace_by_constants(op, [np.asarray(array) for array in results], rewriter)


@dataclass(frozen=True)
class FoldConstantsPass(PatternPass):
    """
    Replace operators whose operands are all constants by a constant (Glow's ConstantFold).

    A result larger than `limit` bytes folds only where it is no larger than its operands together, so that an expanded
    constant does not bloat the weights. Codes stay codes, unless they are as wide as the numbers that they stand for,
    or `codes` is given. All results, of all runs on a module but for tiny ones, have `total` bytes together at most, or
    eight times those that constants had before the first run; what is left over is computed by each inference.
    """

    name = "fold-constants"

    limit: int = 1 << 20
    codes: bool = False
    total: int = 1 << 28

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((FoldMovedConstant(), FoldConstantOperands(self.limit, self.total, self.codes))),)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        Growth.of(op)
        super().apply(ctx, op)


def is_expansion(op: HighOp) -> bool:
    """Whether an operator makes wider numbers of codes, more than one."""
    if isinstance(op, BlockwiseDequantizeOp):
        return True
    return (
        isinstance(op, DequantizeOp)
        and not has_one_element(op.result)
        and byte_width(element_of(op.input)) < byte_width(element_of(op.result))
    )


def is_typing(op: HighOp) -> bool:
    """Whether an operator says which codes integers are, which constants do not."""
    return isinstance(op, StorageCastOp) and storage_of(op.to) != op.to


def replace_by_constants(op: HighOp, arrays: Sequence[np.ndarray | Deferred], rewriter: Rewriter) -> None:
    """Replace the results of `op` by constants, which are named after them, or else after the operator."""
    kind, emit = op.name.split(".", 1)[1], rewriter.emit
    values = [
        _as_element(emit.constant(array, result.name_hint or kind), element_of(result), emit)
        for result, array in zip(op.results, arrays, strict=True)
    ]
    rewriter.replace(op, (), values)


def _as_element(value: SSAValue, element: Attribute, emit: Emitter) -> SSAValue:
    """A constant as codes of a type, where it is not of plain elements."""
    return value if element == storage_of(element) else emit(StorageCastOp, value, to=element)


def moved_elements(op: TransposeOp | ReshapeOp, storage: Storage) -> Deferred | None:
    """The result of an operator that moves the elements of a large constant; `None` for every other operand."""
    source = storage.deferred(op.input)
    if source is None or not is_large(source) or source.size == 1:
        return None
    return source.transposed(ints(op.permutation)) if isinstance(op, TransposeOp) else source.reshaped(ints(op.shape))


def untyped(value: SSAValue) -> SSAValue:
    """The integers that codes are, where an operator says alone which codes these are."""
    owner = value.owner
    return owner.input if isinstance(owner, StorageCastOp) and is_typing(owner) else value

"""`fold-constants`: evaluate operators on constants with the interpreter."""

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
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import bytes_of, element_of, has_one_element
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.run_time_sizes import has_run_time_sizes
from glow_mlir.rewriting.elementwise_constants import widened_constant
from glow_mlir.rewriting.quantized_values import is_typing, untyped
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import operands_of

MAX_GROWTH = 8
"""Maximum growth of all constants in total: chains of operators on weights would multiply them."""

LARGEST_SPLATS = 1 << 28
"""Splats larger than this many bytes are not evaluated: they are small only as long as they stay splats."""


UNCOUNTED = 1 << 10
"""Results up to this many bytes are not counted: an operator takes as much itself."""


@dataclass
class Growth:
    """The bytes of constants that all runs of the pass on one module have added, and those it had before."""

    held: int
    made: int = 0

    @staticmethod
    def of(module: ModuleOp) -> Growth:
        """
        The growth of a module; the first call records its size.

        Kept beside the IR: a bound relative to the previous run would compound.
        """
        if module not in _GROWTHS:
            constants = (op for op in module.body.block.ops if isinstance(op, ConstantOp))
            _GROWTHS[module] = Growth(sum(bytes_of(op.type) for op in constants))
        return _GROWTHS[module]

    def allows(self, size: int, total: int) -> bool:
        """Whether `size` more bytes are allowed: up to `total`, or up to a multiple of the original constants."""
        return self.made + size <= max(total, MAX_GROWTH * self.held)


_GROWTHS: WeakKeyDictionary[Operation, Growth] = WeakKeyDictionary()
"""Module → its growth."""


class FoldMovedConstant(Pattern):
    """Fold a reshape or transpose of a large constant into a deferred array."""

    @rooted
    def match_and_rewrite(self, op: TransposeOp | ReshapeOp, rewriter: Rewriter, /) -> None:
        moved = moved_elements(op, rewriter.storage)
        if moved is not None:
            replace_by_constants(op, [moved], rewriter)


@dataclass(frozen=True)
class FoldConstantOperands(Pattern):
    """Evaluate an operator whose operands are all constant."""

    limit: int
    """Maximum bytes of a result that is larger than its operands together, times `expansion`."""
    expansion: int
    """How many times as large as its operands together a result of any size may be."""
    total: int
    """Bytes of results that are always allowed in total."""
    quantized: bool = False
    """Whether to fold dequantizations to wider numbers."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        given = operands_of(op)
        sources = [untyped(value) for value in given] if self.quantized else given
        if not sources or not all(map(rewriter.storage.is_constant, sources)):  # The common case.
            return
        if not op.HAS_INSTRUCTION:  # Gradients have no value semantics.
            return
        if (
            isinstance(op, SplatOp)
            or has_run_time_sizes(op)
            or (isinstance(op, StorageCastOp) and is_typing(op))
            or (not self.quantized and is_expansion(op))
        ):
            return
        # Count an operand once even if it is read twice.
        available = sum(map(bytes_of, set(op.operands)))
        splats = sum(bytes_of(value) for value in op.operands if isinstance(value.owner, SplatOp))
        largest = max(map(bytes_of, op.results), default=0)
        if splats > LARGEST_SPLATS or largest > max(self.limit, self.expansion * available):
            return
        widened = widened_constant(op, sources, rewriter.storage)
        # Repetition of elements compounds: it may add a multiple of the original constants, and no more.
        total = self.total if widened is not None or largest <= max(self.limit, available) else 0
        counted = sum(size for size in map(bytes_of, op.results) if size > min(self.limit, UNCOUNTED))
        growth = Growth.of(rewriter.storage.module)
        if counted and not growth.allows(counted, total):
            return
        results = _results(op, sources, rewriter.storage) if widened is None else [widened]
        if results is not None:
            growth.made += counted
            replace_by_constants(op, results, rewriter)


def _results(op: HighOp, sources: Sequence[SSAValue], storage: Storage) -> Sequence[np.ndarray | Deferred] | None:
    """The results of an operator on constants; `None` where it fails, which execution reports if it gets there."""
    try:
        results = apply_semantics(op, group_like(op, [storage.value_of(value) for value in sources]))
    except ExecutionError:
        return None
    return [np.asarray(array) for array in results]


@dataclass(frozen=True)
class FoldConstantsPass(PatternPass):
    """
    Replace operators whose operands are all constants by a constant (Glow's ConstantFold).

    A result larger than `limit` bytes is folded only if it is at most `expansion` times as large as its operands
    together, so that expansions do not bloat the weights. Large constants are widened when they are written. Quantized
    constants stay quantized unless they are as wide as the dequantized numbers, or `quantized` is set. All results of
    all runs on a module, tiny ones excepted, take at most `total` bytes or eight times the original constants, and
    repetitions of elements beyond `limit` only the latter; the rest is computed at run time.
    """

    name = "fold-constants"

    limit: int = 1 << 20
    quantized: bool = False
    total: int = 1 << 28
    expansion: int = 8

    def walks(self) -> tuple[Walk, ...]:
        return (
            Walk((FoldMovedConstant(), FoldConstantOperands(self.limit, self.expansion, self.total, self.quantized))),
        )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        Growth.of(op)
        super().apply(ctx, op)


def is_expansion(op: HighOp) -> bool:
    """Whether an operator dequantizes several values to wider numbers."""
    if isinstance(op, BlockwiseDequantizeOp):
        return True
    return (
        isinstance(op, DequantizeOp)
        and not has_one_element(op.result)
        and byte_width(element_of(op.input)) < byte_width(element_of(op.result))
    )


def replace_by_constants(op: HighOp, arrays: Sequence[np.ndarray | Deferred], rewriter: Rewriter) -> None:
    """Replace the results of `op` by constants named after them, or else after the operator."""
    kind, emit = op.name.split(".", 1)[1], rewriter.emit
    values = [
        _as_element(emit.constant(array, result.name_hint or kind), element_of(result), emit)
        for result, array in zip(op.results, arrays, strict=True)
    ]
    rewriter.replace(op, (), values)


def _as_element(value: SSAValue, element: Attribute, emit: Emitter) -> SSAValue:
    """Cast a constant to a quantized type, if `element` is one."""
    return value if element == storage_of(element) else emit(StorageCastOp, value, to=element)


def moved_elements(op: TransposeOp | ReshapeOp, storage: Storage) -> Deferred | None:
    """Permute or reshape a large constant lazily; `None` for other operands."""
    source = storage.deferred(op.input)
    if source is None or not is_large(source) or source.size == 1:
        return None
    return source.transposed(ints(op.permutation)) if isinstance(op, TransposeOp) else source.reshaped(ints(op.shape))

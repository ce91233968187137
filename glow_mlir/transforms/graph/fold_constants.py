"""`fold-constants`: evaluate operators on constants with the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import is_deferred
from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp
from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.returns import ReturnOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, GetOp, SaveOp, SplatOp
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import bytes_of, element_of, has_one_element
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.run_time_sizes import has_run_time_sizes
from glow_mlir.ir.traversal import storage_read
from glow_mlir.rewriting.elementwise_constants import widened_constant
from glow_mlir.rewriting.quantized_values import is_typing, untyped
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import operands_of

MAX_GROWTH = 8
"""Maximum growth of all constants in total: chains of operators on weights would multiply them."""

LARGEST_SPLATS = 1 << 28
"""Splats larger than this many bytes are not evaluated: they are small only as long as they stay splats."""

LARGEST_RETURNED = 1 << 16
"""
Results of more bytes are not folded if they are only returned and much larger than their operands: a call computes them
in the time of a copy.
"""

_AS_FAST_AS_COPIES = (ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TileOp, AddOp, SubOp, MulOp, CastOp)
"""Operators that take no longer than it takes to copy their results."""

UNCOUNTED = 1 << 10
"""Results up to this many bytes are not counted: an operator takes as much itself."""


@dataclass
class Growth:
    """
    The bytes of constants that a module had before any run of the pass, and those that the runs have added.

    Constants that are no longer read are erased at once, and do not count: in a chain of operators on a large constant
    only the last result stays.
    """

    held: int
    made: dict[str, int] = field(default_factory=dict[str, int])
    """Name of an added constant → its bytes, if these count."""
    total: int = 0
    """The sum of these bytes."""
    _readers: Counter[str] | None = None
    """Name of a constant → the number of operations that read it in a run of the pass; `None` until it is needed."""

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

    def begin(self, module: ModuleOp) -> None:
        """Begin a run: other passes may have erased constants, and added readers."""
        self._readers = None
        if self.made:
            self.made = {name: size for name, size in self.made.items() if self.readers(module)[name]}
            self.total = sum(self.made.values())

    def readers(self, module: ModuleOp) -> Counter[str]:
        """Name of a constant → the number of operations that read it."""
        if self._readers is None:
            self._readers = Counter(read for function in functions(module) for read in storage_read(function))
        return self._readers

    def allows(self, size: int, total: int) -> bool:
        """Whether `size` more bytes are allowed: up to `total`, or up to a multiple of the original constants."""
        return self.total + size <= max(total, MAX_GROWTH * self.held)

    def add(self, constant: GetOp, size: int, readers: Counter[str]) -> None:
        """Record a read of a folded result, and at the first one its bytes if these count."""
        name = constant.storage_name
        if not readers[name] and size:
            self.made[name] = size
            self.total += size
        readers[name] += 1

    def release(self, values: Iterable[SSAValue], rewriter: Rewriter) -> None:
        """Erase reads without uses behind values, and constants that nothing reads any more."""
        readers = self.readers(rewriter.storage.module)
        pending = list(values)
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, GetOp | StorageCastOp) or owner.parent is None or owner.results[0].uses:
                continue
            pending += owner.operands
            rewriter.erase(owner)
            if isinstance(owner, GetOp):
                name = owner.storage_name
                readers[name] -= 1
                if not readers[name] and rewriter.storage.erase_constant(name):
                    self.total -= self.made.pop(name, 0)


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
        if largest > max(LARGEST_RETURNED, self.expansion * (available - splats)) and is_returned(op, rewriter.storage):
            return
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
            replace_by_constants(op, results, rewriter, counts=bool(counted))


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
    together, so that expansions do not bloat the weights; one that is only returned stays if it is larger than that,
    because computing it takes less time than reading and copying it. Large constants are widened when they are written.
    Quantized constants stay quantized unless they are as wide as the dequantized numbers, or `quantized` is set. All
    results of all runs on a module that are read, tiny ones excepted, take at most `total` bytes or eight times the
    original constants, and repetitions of elements beyond `limit` only the latter; the rest is computed at run time.
    Constants that only folded operators have read are erased.
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
        Growth.of(op).begin(op)
        super().apply(ctx, op)


def is_returned(op: Operation, storage: Storage) -> bool:
    """
    Whether the results of an operator are only returned, by themselves or behind operators on other constants, and all
    of these operators take no longer than a copy.
    """
    while isinstance(op, _AS_FAST_AS_COPIES):
        uses = [use for result in op.results for use in result.uses]
        if len(uses) != 1:
            return False
        user = uses[0].operation
        if isinstance(user, ReturnOp | SaveOp):
            return True
        others = (operand for operand in user.operands if operand.owner is not op)
        if not all(map(storage.is_constant, others)):
            return False
        op = user
    return False


def is_expansion(op: HighOp) -> bool:
    """Whether an operator dequantizes several values to wider numbers."""
    if isinstance(op, BlockwiseDequantizeOp):
        return True
    return (
        isinstance(op, DequantizeOp)
        and not has_one_element(op.result)
        and byte_width(element_of(op.input)) < byte_width(element_of(op.result))
    )


def replace_by_constants(
    op: HighOp, arrays: Sequence[np.ndarray | Deferred], rewriter: Rewriter, *, counts: bool = False
) -> None:
    """
    Replace the results of `op` by constants named after them, or else after it, and erase what only it has read.

    `counts` says whether the results count as growth.
    """
    kind, emit, growth = op.name.split(".", 1)[1], rewriter.emit, Growth.of(rewriter.storage.module)
    readers = growth.readers(rewriter.storage.module)
    operands = tuple(op.operands)
    values: list[SSAValue] = []
    for result, array in zip(op.results, arrays, strict=True):
        value = emit.constant(array, result.name_hint or kind)
        if isinstance(value.owner, GetOp):
            growth.add(value.owner, bytes_of(value) if counts else 0, readers)
        values.append(_as_element(value, element_of(result), emit))
    rewriter.replace(op, (), values)
    growth.release(operands, rewriter)


def _as_element(value: SSAValue, element: Attribute, emit: Emitter) -> SSAValue:
    """Cast a constant to a quantized type, if `element` is one."""
    return value if element == storage_of(element) else emit(StorageCastOp, value, to=element)


def moved_elements(op: TransposeOp | ReshapeOp, storage: Storage) -> Deferred | None:
    """Permute or reshape a large constant lazily; `None` for other operands."""
    source = storage.deferred(op.input)
    if source is None or not is_deferred(source) or source.size == 1:
        return None
    return source.transposed(ints(op.permutation)) if isinstance(op, TransposeOp) else source.reshaped(ints(op.shape))

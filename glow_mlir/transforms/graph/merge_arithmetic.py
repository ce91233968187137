"""`merge-arithmetic`: merge chains of arithmetic with constants into one product and one sum."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.analysis.decisive import decisive_values
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.ir.traversal import operations
from glow_mlir.rewriting.affine import Affine, AffineOp, affine_parts, data_operand
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.support.dataclass import dataclass


class MergeArithmetic(Pattern):
    """Replace a chain of arithmetic with constants by a product and a sum, if these are fewer or cheaper operators."""

    @rooted
    def match_and_rewrite(self, op: AffineOp, rewriter: Rewriter, /) -> None:
        chain = rewriter.analysis(_chains).get(op)
        parts = [] if chain is None else _parts(chain)
        if chain is None or (len(parts) >= len(chain.ops) and not _is_cheaper(chain)):
            return
        if chain.ops[-1].results[0] in rewriter.analysis(decisive_values) and not _keeps_bits(chain):
            return
        last = chain.ops[-1]
        dtype = numpy_dtype(element_of(last.results[0]))
        constants = rewriter.emit_before(last)
        emit = constants.at(fuse_locations(member.location for member in chain.ops))
        # The operand may come from another chain, rewritten before this one.
        value = data_operand(op, rewriter.storage)
        assert value is not None
        for operator, array in parts:
            value = emit(operator, value, constants.constant(array.astype(dtype), NAMES[operator]))
        rewriter.replace(last, (), [value])
        for member in reversed(chain.ops[:-1]):
            rewriter.erase(member)


@dataclass(frozen=True)
class MergeArithmeticPass(PatternPass):
    """
    Merge chains of sums, differences, products, quotients, negations and batch-norms with constants into at most one
    product and one sum (Glow's FoldBatchNormalizationWithArithmeticChain).

    A batch-norm with constants becomes a product and a sum; a quotient by a power of two becomes an equal product.
    Operators are not merged if the combined constants would overflow, vanish or need more memory, if something else
    reads the intermediate value, or with accuracy `strict`, where each operator rounds. Values that decide quantized
    values, indices or truth values are merged only if the result is bit-identical.
    """

    name = "merge-arithmetic"
    WALKS = (Walk((MergeArithmetic(),)),)


NAMES: dict[type[Operation], str] = {MulOp: "factor", AddOp: "addend"}
"""Operator → name of its constant."""


MAX_CANCELLED = 2.0**-10
"""
Addends are not merged if their sum is smaller than this share of the largest: `(x + c) - c` may be meant to round.
"""


@dataclass
class _Chain:
    """A chain of operators, and its affine function of the operand of the first."""

    ops: list[Operation]
    total: Affine
    most: int
    """Number of elements of the largest constant."""
    largest: np.ndarray
    """The largest addend, scaled by the factors behind it."""


def _chains(function: FunctionOp, storage: Storage) -> dict[Operation, _Chain]:
    """The longest mergeable chains, each by its first operator."""
    by_end: dict[SSAValue, _Chain] = {}
    is_apart = is_strict(function)
    for op in operations(function):
        data = data_operand(op, storage)
        step = None if data is None else affine_parts(op, data, storage)
        if data is None or step is None or not step.is_safe(element_of(data)):
            continue
        chain = by_end.get(data) if data.has_one_use() and not is_apart else None
        if chain is not None and _extend(chain, op, step):
            by_end[op.results[0]] = by_end.pop(data)
        else:
            most = max(step.factor.size, step.addend.size)
            by_end[op.results[0]] = _Chain([op], step, most, np.abs(step.addend))
    return {chain.ops[0]: chain for chain in by_end.values()}


def _extend(chain: _Chain, op: Operation, step: Affine) -> bool:
    """Append an operator to a chain, unless that costs precision or memory; returns whether it was appended."""
    total, most = chain.total.then(step), max(chain.most, step.factor.size, step.addend.size)
    if max(total.factor.size, total.addend.size) > most or not total.is_safe(element_of(op.results[0])):
        return False
    largest = np.maximum(chain.largest * np.abs(step.factor), np.abs(step.addend))
    if ((np.abs(total.addend) < largest * MAX_CANCELLED) & (largest > 0)).any():
        return False
    chain.ops.append(op)
    chain.total, chain.most, chain.largest = total, most, largest
    return True


def _is_cheaper(chain: _Chain) -> bool:
    """Whether an equal number of merged operators is cheaper: in place of a batch-norm, or an exact quotient."""
    return isinstance(chain.ops[0], BatchNormalizationOp) or (isinstance(chain.ops[0], DivOp) and _is_exact(chain))


def _keeps_bits(chain: _Chain) -> bool:
    """Whether merging preserves bits: of a quotient by a power of two; a batch-norm has no bits to preserve."""
    return _is_exact(chain) or any(isinstance(op, BatchNormalizationOp) for op in chain.ops)


def _is_exact(chain: _Chain) -> bool:
    """Whether a chain is one operator with power-of-two factors, which rounds the same number."""
    mantissas, _ = np.frexp(chain.total.factor)
    return len(chain.ops) == 1 and bool((np.abs(mantissas) == 0.5).all())


def _parts(chain: _Chain) -> list[tuple[type[HighOp], np.ndarray]]:
    """The product and the sum of a chain, each with its constant, without neutral ones."""
    both = ((MulOp, chain.total.factor, 1.0), (AddOp, chain.total.addend, 0.0))
    return [(operator, array) for operator, array, neutral in both if (array != neutral).any()]

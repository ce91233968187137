"""The lowering of Einstein summation to matrix products."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.einsum import EinsumOp, Labels
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import broadcast, element_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes, product_of


@dataclass(frozen=True)
class _Term:
    """A value whose axes are labelled."""

    labels: Labels
    value: SSAValue

    def sizes(self, labels: Labels) -> Sizes:
        """The sizes of some axes; 1 for axes that the value lacks."""
        sizes = dict(zip(self.labels, sizes_of(self.value), strict=True))
        return tuple(sizes.get(label, 1) for label in labels)


@lowering(EinsumOp)
def einsum(op: EinsumOp, emit: Emitter) -> SSAValue:
    """Lower to a chain of products from the left; axes of only one operand are reduced beforehand."""
    contraction = op.contraction()
    terms = [
        _without_repeats(_Term(labels, value), emit) for labels, value in zip(contraction.terms, op.terms, strict=True)
    ]
    total = terms[0]
    for position, term in enumerate(terms[1:], start=1):
        later = {label for other in terms[position + 1 :] for label in other.labels}
        total = _product(total, term, {*contraction.result, *later}, emit)
    return _ordered(_summed(total, contraction.result, emit), contraction.result, emit)


def _without_repeats(term: _Term, emit: Emitter) -> _Term:
    """Take the diagonal along axes with equal labels: every (n + 1)-th element of one axis of n² elements."""
    for label in term.labels:
        if term.labels.count(label) == 1:
            continue
        axes = [axis for axis, other in enumerate(term.labels) if other == label][:2]
        kept = [axis for axis in range(len(term.labels)) if axis not in axes]
        moved = _transposed(term.value, (*kept, *axes), emit)
        *outer, size, _ = sizes_of(moved)
        flat = emit(ReshapeOp, moved, shape=(*outer, size * size))
        diagonal = emit(
            SliceOp,
            flat,
            starts=(0,) * (len(outer) + 1),
            ends=(*outer, size * size),
            steps=(*(1,) * len(outer), size + 1),
        )
        return _without_repeats(_Term((*(term.labels[axis] for axis in kept), label), diagonal), emit)
    return term


def _product(left: _Term, right: _Term, needed: Collection[str], emit: Emitter) -> _Term:
    """The product of two terms, summed over axes that are not needed later."""
    left = _summed(left, {*needed, *right.labels}, emit)
    right = _summed(right, {*needed, *left.labels}, emit)
    batch = tuple(label for label in left.labels if label in right.labels and label in needed)
    inner = tuple(label for label in left.labels if label in right.labels and label not in needed)
    rows = tuple(label for label in left.labels if label not in right.labels)
    columns = tuple(label for label in right.labels if label not in left.labels)
    labels = (*batch, *rows, *columns)
    if not inner:
        factors = (emit(ReshapeOp, _ordered(t, labels, emit), shape=t.sizes(labels)) for t in (left, right))
        return _Term(labels, emit(MulOp, *factors))
    # Read the right operand as it is if its rows or columns are the summed axes.
    transposed = right.labels[-1] in inner
    left_matrix = _matrices(left, batch, rows, inner, emit)
    right_matrix = _matrices(right, batch, *((columns, inner) if transposed else (inner, columns)), emit)
    product = emit(MatMulOp, left_matrix, right_matrix, transpose_right=transposed)
    if (element := element_of(left.value)) != element_of(product):
        # The sum of narrow integers is wider, and wraps here.
        product = emit(CastOp, product, to=element)
    sizes = (*broadcast(left.sizes(batch), right.sizes(batch)), *left.sizes(rows), *right.sizes(columns))
    return _Term(labels, emit(ReshapeOp, product, shape=sizes))


def _matrices(term: _Term, batch: Labels, rows: Labels, columns: Labels, emit: Emitter) -> SSAValue:
    """Reshape the value to a batch of matrices."""
    ordered = _ordered(term, (*batch, *rows, *columns), emit)
    shape = (*term.sizes(batch), product_of(term.sizes(rows)), product_of(term.sizes(columns)))
    return emit(ReshapeOp, ordered, shape=shape)


def _summed(term: _Term, kept: Collection[str], emit: Emitter) -> _Term:
    """Sum over the axes that are not in `kept`."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in kept)
    return _Term(labels, emit(ReduceSumOp, term.value, axes=axes, keepdims=False))


def _ordered(term: _Term, labels: Labels, emit: Emitter) -> SSAValue:
    """Transpose the axes to the order of `labels`; some labels may be absent."""
    return _transposed(term.value, tuple(term.labels.index(x) for x in labels if x in term.labels), emit)


def _transposed(value: SSAValue, permutation: tuple[int, ...], emit: Emitter) -> SSAValue:
    if permutation == tuple(range(len(permutation))):
        return value
    return emit(TransposeOp, value, permutation=permutation)

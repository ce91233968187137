"""The gradient of Einstein summation, itself an Einstein summation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from string import ascii_letters

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.einsum import EinsumOp, Labels
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, WhereOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.differentiation.contributions import Contributions, expanded_to, reshaped
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class _Factor:
    """A value whose axes have labels; each label has one size."""

    labels: Labels
    value: SSAValue


@gradient(EinsumOp)
def einsum(op: EinsumOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """For each operand, the sum of products of the cotangent and the other operands."""
    contraction = op.contraction()
    sizes = contraction.sizes([sizes_of(term) for term in op.terms])

    def contribution(position: int) -> SSAValue:
        others = [
            _without_broadcasts(labels, value, sizes, emit)
            for other, (labels, value) in enumerate(zip(contraction.terms, op.terms, strict=True))
            if other != position
        ]
        factors = [_Factor(contraction.result, cotangent), *others]
        return _summed_to(op.terms[position], contraction.terms[position], factors, sizes, emit)

    return {"terms": [partial(contribution, position) for position in range(len(contraction.terms))]}


def _without_broadcasts(labels: Labels, value: SSAValue, sizes: Mapping[str, Size], emit: Emitter) -> _Factor:
    """An operand without the axes of size one that are broadcast along a label."""
    kept = [(label, size) for label, size in zip(labels, sizes_of(value), strict=True) if size == sizes[label]]
    return _Factor(tuple(label for label, _ in kept), reshaped(value, tuple(size for _, size in kept), emit))


def _summed_to(
    like: SSAValue, labels: Labels, factors: list[_Factor], sizes: Mapping[str, Size], emit: Emitter
) -> SSAValue:
    """The sum of products of factors, in the sizes of an operand with labels."""
    own = sizes_of(like)
    labels_used = {label for factor in factors for label in factor.labels}
    different = tuple(dict.fromkeys(labels))
    whole = {label for label, size in zip(labels, own, strict=True) if size == sizes[label]}
    kept = tuple(label for label in different if label in labels_used and label in whole)
    value = _product(factors, kept, emit)
    # Along an axis that no other factor has, each element has the same influence.
    present = dict(zip(labels, own, strict=True))
    value = reshaped(value, tuple(present[label] if label in kept else 1 for label in different), emit)
    value = expanded_to(value, tuple(present[label] for label in different), emit)
    return value if different == labels else _on_diagonal(value, labels, emit)


def _product(factors: list[_Factor], result: Labels, emit: Emitter) -> SSAValue:
    """The sum of products over all labels that the result lacks."""
    if len(factors) == 1:
        (factor,) = factors
        axes = tuple(axis for axis, label in enumerate(factor.labels) if label not in result)
        if result == tuple(label for label in factor.labels if label in result):
            return emit(ReduceSumOp, factor.value, axes=axes, keepdims=False) if axes else factor.value
    used = dict.fromkeys(label for factor in factors for label in factor.labels)
    letters = dict(zip(used, ascii_letters, strict=False))
    terms = ",".join("".join(map(letters.__getitem__, factor.labels)) for factor in factors)
    equation = f"{terms}->{''.join(map(letters.__getitem__, result))}"
    return emit(EinsumOp, [factor.value for factor in factors], equation=equation)


def _on_diagonal(value: SSAValue, labels: Labels, emit: Emitter) -> SSAValue:
    """Distinct labels spread to a diagonal over repeated labels; zeros elsewhere."""
    sizes = dict(zip(dict.fromkeys(labels), sizes_of(value), strict=True))
    is_first = [labels.index(label) == axis for axis, label in enumerate(labels)]
    shape = tuple(sizes[label] if first else 1 for label, first in zip(labels, is_first, strict=True))
    result = reshaped(value, shape, emit)
    for axis, label in enumerate(labels):
        if is_first[axis]:
            continue
        indices = positions(sizes[label], i32, emit)
        along = (_along(indices, position, len(labels), emit) for position in (labels.index(label), axis))
        result = emit(WhereOp, emit(EqualOp, *along), result, emit.splat(0, value))
    return result


def _along(values: SSAValue, axis: int, rank: int, emit: Emitter) -> SSAValue:
    """A vector reshaped to `rank` axes, of which `axis` is the vector's."""
    return reshaped(values, (*(1,) * axis, *sizes_of(values), *(1,) * (rank - axis - 1)), emit)

"""Gradients of operators that read or replace elements at indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import i1, i8, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AndOp,
    DivOp,
    EqualOp,
    GreaterOrEqualOp,
    LessOp,
    MulOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NegOp
from glow_mlir.dialects.glow_high.indexing import (
    GatherElementsOp,
    GatherNDOp,
    ReverseSequenceOp,
    Scatter,
    ScatterElementsOp,
    ScatterNDOp,
)
from glow_mlir.dialects.glow_high.reductions import ReduceMinOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.differentiation.contributions import (
    Contributions,
    reshaped,
    zeros_like,
)
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes, product_of


def rows_of(indices: SSAValue, emit: Emitter) -> SSAValue:
    """Indices along one axis as rows of one index."""
    return reshaped(indices, (*sizes_of(indices), 1), emit)


@dataclass(frozen=True)
class _ScatterTarget:
    """The destination of a scatter's updates."""

    scatter: Callable[[SSAValue, SSAValue, str], SSAValue]
    """Scatters updates to the destination in a value, with a reduction."""
    gather: Callable[[SSAValue], SSAValue]
    """Gathers the elements of a value at the destination."""
    owners: Sizes
    """The sizes of the tensor that indices address."""
    updates: Sizes
    """The sizes of the indices, or rows of indices; each has one update."""

    @staticmethod
    def of(op: Scatter, emit: Emitter) -> _ScatterTarget:
        """The destination of an operator."""
        own, indices, failure = sizes_of(op.input), sizes_of(op.indices), op.failure
        if isinstance(op, ScatterElementsOp):
            axis = normalize_axis(integer(op.axis), len(own))
            read, fits = _readable(op, (own[axis],), emit)
            return _ScatterTarget(
                lambda into, updates, reduction: emit(
                    ScatterElementsOp, into, op.indices, updates, axis=op.axis, reduction=reduction, failure=failure
                ),
                lambda value: _read(emit(GatherElementsOp, value, read, axis=op.axis), fits, emit),
                own,
                indices,
            )
        (depth,) = static(indices[-1:])
        read, fits = _readable(op, own[:depth], emit)
        return _ScatterTarget(
            lambda into, updates, reduction: emit(
                ScatterNDOp, into, op.indices, updates, reduction=reduction, failure=failure
            ),
            lambda value: _read(emit(GatherNDOp, value, read), fits, emit),
            own[:depth],
            indices[:-1],
        )


def _readable(op: Scatter, bounds: Sizes, emit: Emitter) -> tuple[SSAValue, SSAValue | None]:
    """
    Indices that can be read at, and whether the ones of the operator are in range, for each update.

    `bounds` are those of the columns of rows, or the one of all single indices. `None` if the operator fails for
    others.
    """
    if text(op.failure):
        return op.indices, None
    sizes = np.array(static(bounds))
    element, is_row = element_of(op.indices), isinstance(op, ScatterNDOp)
    high = emit.constant((sizes if is_row else sizes[0]).astype(numpy_dtype(element)), "sizes")
    low = emit(NegOp, high)
    inside = emit(AndOp, emit(GreaterOrEqualOp, op.indices, low), emit(LessOp, op.indices, high))
    indices = emit(WhereOp, inside, op.indices, emit.splat(0, op.indices))
    if not is_row:
        return indices, inside
    rank = rank_of(inside)
    every = emit(ReduceMinOp, emit(CastOp, inside, to=i8), axes=(rank - 1,))
    return indices, emit(CastOp, reshaped(every, sizes_of(inside)[:-1], emit), to=i1)


def _read(value: SSAValue, fits: SSAValue | None, emit: Emitter) -> SSAValue:
    """What was read, 0 for updates that are left out."""
    if fits is None:
        return value
    inner = (1,) * (rank_of(value) - rank_of(fits))
    return emit(WhereOp, reshaped(fits, (*sizes_of(fits), *inner), emit), value, emit.splat(0, value))


@gradient(ScatterElementsOp)
@gradient(ScatterNDOp)
def scatter(op: Scatter, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Depends on the reduction, which relates updates and operand elements to the result."""
    return _BY_REDUCTION[text(op.reduction)](op, cotangent, _ScatterTarget.of(op, emit), emit)


def _overwritten(op: Scatter, cotangent: SSAValue, target: _ScatterTarget, emit: Emitter) -> Contributions:
    """Replaced elements have no influence, nor do updates replaced by later ones."""

    def updates() -> SSAValue:
        order = reshaped(positions(product_of(target.updates), i64, emit), target.updates, emit)
        last = target.gather(target.scatter(emit.splat(0, i64, target.owners), order, "none"))
        stays = emit(EqualOp, last, order)
        slices = reshaped(stays, (*target.updates, *(1,) * (rank_of(op.updates) - len(target.updates))), emit)
        return emit(WhereOp, slices, target.gather(cotangent), emit.splat(0, cotangent))

    return {"input": lambda: target.scatter(cotangent, zeros_like(op.updates, emit), "none"), "updates": updates}


def _added(op: Scatter, cotangent: SSAValue, target: _ScatterTarget, emit: Emitter) -> Contributions:
    """Each element and update gets the cotangent at its position."""
    return {"input": lambda: cotangent, "updates": lambda: target.gather(cotangent)}


def _multiplied(op: Scatter, cotangent: SSAValue, target: _ScatterTarget, emit: Emitter) -> Contributions:
    """
    The cotangent times the other factors.

    For an update, these are 0 if another update is 0, otherwise the product of all nonzero ones divided by its own (as
    in `torch.scatter_reduce`).
    """

    def updates() -> SSAValue:
        is_zero = emit(EqualOp, op.updates, emit.splat(0, op.updates))
        zero = emit(CastOp, is_zero, to=element_of(op.updates))
        zeros = target.scatter(zeros_like(op.input, emit), zero, "add")
        factors = emit(WhereOp, is_zero, emit.splat(1, op.updates), op.updates)
        product = emit(MulOp, cotangent, target.scatter(op.input, factors, "mul"))
        alone = emit(EqualOp, target.gather(zeros), zero)
        others = emit(DivOp, target.gather(product), factors)
        return emit(WhereOp, alone, others, emit.splat(0, cotangent))

    return {"input": lambda: target.scatter(cotangent, op.updates, "mul"), "updates": updates}


def _extreme(op: Scatter, cotangent: SSAValue, target: _ScatterTarget, emit: Emitter) -> Contributions:
    """Elements and updates that equal the result share its cotangent equally (`torch.scatter_reduce`)."""

    def chosen(value: SSAValue, result: SSAValue) -> SSAValue:
        return emit(CastOp, emit(EqualOp, value, result), to=element_of(value))

    of_input, of_updates = (
        lambda: chosen(op.input, op.result),
        lambda: chosen(op.updates, target.gather(op.result)),
    )

    def shares(own: SSAValue, those: SSAValue) -> SSAValue:
        return emit(DivOp, cotangent, target.scatter(own, those, "add"))

    def input_() -> SSAValue:
        own = of_input()
        return emit(MulOp, own, shares(own, of_updates()))

    def updates() -> SSAValue:
        those = of_updates()
        return emit(MulOp, those, target.gather(shares(of_input(), those)))

    return {"input": input_, "updates": updates}


_BY_REDUCTION: dict[str, Callable[[Scatter, SSAValue, _ScatterTarget, Emitter], Contributions]] = {
    "none": _overwritten,
    "add": _added,
    "mul": _multiplied,
    "max": _extreme,
    "min": _extreme,
}
"""Reduction → its gradient function."""


@gradient(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent, reversed the same way."""

    def contribution() -> SSAValue:
        axes = {"batch_axis": op.batch_axis, "time_axis": op.time_axis}
        return emit(ReverseSequenceOp, cotangent, op.lengths, **axes)

    return {"input": contribution}

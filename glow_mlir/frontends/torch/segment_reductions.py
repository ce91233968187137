"""PyTorch's reductions of segments of an axis, and their gradients."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.expressions import equal, where
from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MaxOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat, scatter_slices
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.frontends.torch.scattering import REDUCTIONS
from glow_mlir.frontends.torch.searching import positions_among
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes, product_of

_INITIAL = {"max": -math.inf, "min": math.inf, "mean": 0.0, "prod": 1.0, "sum": 0.0}
"""Reduction → the default result of empty segments."""


@dataclass(frozen=True)
class Segments:
    """
    Segments of an axis of values [outer…, N, inner…]; each row of the outer axes has its own segments.

    `numbers` has the segment of each of the [outer · N] slices; each row has an additional segment for slices that are
    in none. `lengths` is [outer, S].
    """

    node: TorchNode
    numbers: SSAValue
    lengths: SSAValue
    outer: Sizes
    inner: Sizes
    count: Size

    @staticmethod
    def of(node: TorchNode, value: SSAValue, lengths: SSAValue | None, offsets: SSAValue | None, axis: int) -> Segments:
        """Segments given by lengths, or by offsets: the start of each segment, and the end of the last one."""
        axis = axis_of(axis, rank_of(value))
        sizes = sizes_of(value)
        outer, size = sizes[:axis], sizes[axis]
        rows = product_of(outer)
        given = lengths if offsets is None else offsets
        if given is None:
            raise node.unsupported("segments have neither lengths nor offsets")
        table = node.cast(node.reshaped(given, (rows, sizes_of(given)[axis])), i64)
        if offsets is None:
            own, ends = table, node.emit(CumSumOp, table, axis=1)
        else:
            last = sizes_of(table)[1]
            ends = cut(node, table, {1: (1, last)})
            own = node.emit(SubOp, ends, cut(node, table, {1: (0, last - 1)}))
        count = sizes_of(own)[1]
        positions = node.expanded(node.reshaped(iota(node, size), (1, size)), (rows, size))
        numbers = positions_among(node, ends, positions, right=True)
        first = node.emit(MulOp, node.reshaped(iota(node, rows), (rows, 1)), _number(node, count + 1))
        return Segments(node, flat(node, node.emit(AddOp, numbers, first)), own, outer, sizes[axis + 1 :], count)

    @property
    def rows(self) -> Size:
        """The number of rows, each of which has its own segments."""
        return product_of(self.outer)

    def slices(self, value: SSAValue) -> SSAValue:
        """Reshape a value to a list of slices."""
        return self.node.reshaped(value, (product_of(sizes_of(self.numbers)), *self.inner))

    def reduced(self, slices: SSAValue, reduction: str, initial: float) -> SSAValue:
        """The reduction of the slices of each segment, [outer · (S + 1), inner…]."""
        start = self.node.splat(initial, element_of(slices), (self.rows * (self.count + 1), *self.inner))
        return scatter_slices(self.node, start, 0, self.numbers, slices, reduction)

    def results(self, reduced: SSAValue) -> SSAValue:
        """The results of all segments in PyTorch's shape, without the additional segments."""
        table = self.node.reshaped(reduced, (self.rows, self.count + 1, *self.inner))
        return self.node.reshaped(cut(self.node, table, {1: (0, self.count)}), (*self.outer, self.count, *self.inner))

    def spread(self, results: SSAValue) -> SSAValue:
        """Repeat each segment's result for each of its slices; zeros for slices that are in none."""
        table = self.node.reshaped(results, (self.rows, self.count, *self.inner))
        zeros = self.node.splat(0, element_of(results), (self.rows, 1, *self.inner))
        whole = self.node.emit(ConcatOp, [table, zeros], axis=1)
        lines = self.node.reshaped(whole, (self.rows * (self.count + 1), *self.inner))
        return self.node.emit(GatherOp, lines, self.numbers, axis=0)

    def lengths_as(self, element: Attribute) -> SSAValue:
        """The length of each segment, in the shape of results."""
        ones = (1,) * len(self.inner)
        shaped = self.node.reshaped(self.node.cast(self.lengths, element), (*self.outer, self.count, *ones))
        return self.node.expanded(shaped, (*self.outer, self.count, *self.inner))


def _number(node: TorchNode, size: Size) -> SSAValue:
    return node.tensor(size, i64)


@torch_operator("segment_reduce.default")
def segment_reduce(
    node: TorchNode,
    value: SSAValue,
    reduce: str,
    *,
    lengths: SSAValue | None = None,
    indices: SSAValue | None = None,
    offsets: SSAValue | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> SSAValue:
    """The sum, mean, product, or an extreme of each segment of an axis."""
    if indices is not None:
        raise node.unsupported("segments by indices are not supported")
    segments = Segments.of(node, value, lengths, offsets, axis)
    first = _INITIAL[reduce] if initial is None else initial
    reduction = reduce if reduce in ("max", "min") else REDUCTIONS[reduce]
    found = segments.results(segments.reduced(segments.slices(value), reduction, first))
    if reduce != "mean":
        return found
    lengths_ = node.of(segments.lengths_as(node.element))
    total = node.of(found)
    empty = math.nan if initial is None else total
    return node.value(where(equal(lengths_, 0), empty, total / lengths_))


@torch_operator("_segment_reduce_backward.default")
def segment_reduce_backward(
    node: TorchNode,
    gradient: SSAValue,
    output: SSAValue,
    value: SSAValue,
    reduce: str,
    *,
    lengths: SSAValue | None = None,
    offsets: SSAValue | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> SSAValue:
    """The gradient of segment reductions with respect to the value."""
    segments = Segments.of(node, value, lengths, offsets, axis)
    own = gradient
    if reduce == "mean":
        counts = node.of(segments.lengths_as(node.element))
        own = node.value(node.of(gradient) / where(equal(counts, 0), 1, counts))
    spread = segments.spread(own)
    slices = segments.slices(value)
    if reduce in ("max", "min"):
        spread = _shares(node, segments, spread, slices, segments.spread(output))
    elif reduce == "prod":
        spread = _others(node, segments, spread, slices, 1.0 if initial is None else initial)
    return node.reshaped(spread)


def _shares(node: TorchNode, segments: Segments, gradient: SSAValue, slices: SSAValue, extreme: SSAValue) -> SSAValue:
    """The gradient of an extreme, shared by all elements that equal it or are NaN."""
    is_missing = node.of(node.emit(IsNanOp, slices), i1)
    chosen = node.formulas.kept(equal(node.of(slices), node.of(extreme)) | is_missing)
    ones = node.cast(node.value(chosen), node.element)
    counts = segments.spread(segments.results(segments.reduced(ones, "add", 0)))
    limited = node.emit(MaxOp, counts, node.splat(1, node.element))
    return node.value(where(chosen, node.of(gradient) / node.of(limited), 0))


def _others(node: TorchNode, segments: Segments, gradient: SSAValue, slices: SSAValue, initial: float) -> SSAValue:
    """The gradient of a product: the gradient times the product of all other elements."""
    value = node.of(slices)
    is_zero = node.formulas.kept(equal(value, 0))
    factors = node.value(where(is_zero, 1, value))
    zeros = segments.reduced(node.cast(node.value(is_zero), node.element), "add", 0)
    product, count = (
        node.of(segments.spread(segments.results(item))) for item in (segments.reduced(factors, "mul", initial), zeros)
    )
    left = count - where(is_zero, count * 0 + 1, 0)
    return node.value(where(equal(left, 0), node.of(gradient) * product / node.of(factors), 0))

"""`split-windows`: fold large windows of pools along one axis after the other."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.element_types import byte_width, is_float, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MulOp, PowOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, CastOp, SqrtOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp, Pool, SumPoolOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, may_be_empty, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.windows import CHANNELS_FIRST, Window, is_channels_last, split_sizes
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes, are_numbers, product_of

LONGEST_STRIDE = 2
"""Maximum stride along rows for which vectors of windows are loaded contiguously."""


class SplitLargest(Pattern):
    """The largest element of a large window is the largest of the largest elements of its rows."""

    @rooted
    def match_and_rewrite(self, op: MaxPoolOp, rewriter: Rewriter, /) -> None:
        if is_split(op, costs_of(rewriter.function.target)):
            rewriter.replace(op, (), [_folded(op, op.input, MaxPoolOp, rewriter)])


class SplitSum(Pattern):
    """The sum of a large window is the sum of the sums of its rows."""

    @rooted
    def match_and_rewrite(self, op: SumPoolOp, rewriter: Rewriter, /) -> None:
        if is_split(op, costs_of(rewriter.function.target)):
            rewriter.replace(op, (), [_folded(op, op.input, SumPoolOp, rewriter)])


class SplitMean(Pattern):
    """The mean of a large window is the sum of the sums of its rows, divided once by the number of elements."""

    @rooted
    def match_and_rewrite(self, op: AvgPoolOp, rewriter: Rewriter, /) -> None:
        if not is_split(op, costs_of(rewriter.function.target)) or (counts := _counts(op)) is None:
            return
        emit, element = rewriter.emit, element_of(op.input)
        total = _folded(op, _wide(op.input, emit), SumPoolOp, rewriter)
        dtype = numpy_dtype(element_of(total))
        known = emit.constant(counts.astype(dtype), "counts") if counts.ndim else emit.splat(float(counts), total)
        rewriter.replace(op, (), [_narrowed(emit(DivOp, total, known), element, emit)])


class SplitNorm(Pattern):
    """The norm of a large window is the root of the sum of the sums of its rows."""

    @rooted
    def match_and_rewrite(self, op: LpPoolOp, rewriter: Rewriter, /) -> None:
        element = element_of(op.input)
        if not is_float(element) or not is_split(op, costs_of(rewriter.function.target)):
            return
        emit, p = rewriter.emit, integer(op.p)
        power = size = emit(AbsOp, _wide(op.input, emit))
        for bit in bin(p)[3:]:
            power = emit(MulOp, power, power)
            power = emit(MulOp, power, size) if bit == "1" else power
        norm = _folded(op, power, SumPoolOp, rewriter)
        if p == 2:
            norm = emit(SqrtOp, norm)
        elif p > 1:
            norm = emit(PowOp, norm, emit.splat(1.0 / p, norm))
        rewriter.replace(op, (), [_narrowed(norm, element, emit)])


@dataclass(frozen=True)
class SplitWindowsPass(PatternPass):
    """
    Fold large windows of pools along one axis after the other, so that their cost grows with the sum of the lengths of
    their sides, and not with the product.

    Sums are taken in another order, and means are divided once. Along the innermost axis, vectors of windows read a
    padded copy of the image. Other axes are folded in place.
    """

    name = "split-windows"
    WALKS = (Walk((SplitLargest(), SplitSum(), SplitMean(), SplitNorm())),)


def is_split(op: Pool, costs: Costs, is_last: bool | None = None) -> bool:
    """
    Whether windows are folded along one axis after the other, for they have many elements and overlap a lot.

    It is decided for channels last if `is_last`, by default for the layout of the operator. The batch does not count.
    """
    window = op.window()
    if may_be_empty(op.result) or sum(size > 1 for size in window.kernel) < 2:
        return False
    _, spatial, channels = split_sizes(op.input, op.layout)
    before = [largest(size) for size in spatial]
    after = [largest(size) for size in split_sizes(op.result, op.layout)[1]]
    if is_last is None:
        is_last = is_channels_last(op.layout)
    in_rows = not is_last or largest(channels) < costs.pooled_channels
    step = costs.larger_operations if in_rows and isinstance(op, MaxPoolOp) else 1
    # Vectors of every second element are read twice.
    reads = 1 if is_last else min(window.strides[-1], LONGEST_STRIDE)
    operations, elements = 0, math.prod(before)
    for axis, size in enumerate(window.kernel):
        if window.kernel[axis] == window.strides[axis] == 1 and not any(window.padding(axis)):
            continue
        elements = elements // before[axis] * after[axis]
        taken = size * step * (reads if axis == len(before) - 1 else 1)
        operations += (taken + costs.pool_operations) * elements
    return operations < math.prod(window.kernel) * step * reads * math.prod(after)


def _wide(value: SSAValue, emit: Emitter) -> SSAValue:
    """A value, in f32 if it is narrower."""
    return emit(CastOp, value, to=f32) if byte_width(element_of(value)) < 4 else value


def _narrowed(value: SSAValue, element: Attribute, emit: Emitter) -> SSAValue:
    """A value with the given elements."""
    return value if element_of(value) == element else emit(CastOp, value, to=element)


def _folded(op: Pool, value: SSAValue, by: type[MaxPoolOp | SumPoolOp], rewriter: Rewriter) -> SSAValue:
    """Fold a value along one axis of the windows of a pool after the other: first the outermost one."""
    window, costs = op.window(), costs_of(rewriter.function.target)
    first = 1 if is_channels_last(op.layout) else 2
    for axis in range(len(window.kernel)):
        own = along(window, axis)
        if own.kernel[0] > 1 or own.strides[0] > 1 or any(own.pads):
            value = Fold(rewriter.emit, by, own, costs).of(value, first + axis)
    return value


def along(window: Window, axis: int) -> Window:
    """A window over one of the axes of another one."""
    own = (window.kernel[axis],), (window.strides[axis],), window.padding(axis), (window.dilations[axis],)
    return Window(*own, window.ceil_mode)


@dataclass(frozen=True)
class Fold:
    """The fold of windows along one axis of an image, which is seen as an image with one spatial axis."""

    emit: Emitter
    by: type[MaxPoolOp | SumPoolOp]
    window: Window
    costs: Costs

    def of(self, value: SSAValue, axis: int) -> SSAValue:
        """Fold a value along one of its axes."""
        sizes = sizes_of(value)
        outer, size, inner = product_of(sizes[:axis]), sizes[axis], product_of(sizes[axis + 1 :])
        count = self.window.output(0, size)
        (stride,) = self.window.strides
        has_rows = stride == 1 or (inner == 1 and stride <= LONGEST_STRIDE and are_numbers([size]))
        if has_rows and largest(inner) < self.costs.pooled_channels:
            result = self._along_rows(value, outer, size, inner)
        else:
            image = self._shaped(value, (outer, size, inner))
            result = self._pooled(image, self.window)
        return self._shaped(result, (*sizes[:axis], count, *sizes[axis + 1 :]))

    def _along_rows(self, value: SSAValue, outer: Size, size: Size, inner: Size) -> SSAValue:
        """Fold along rows of pixels with few channels: to vectors of windows, channels are a part of the row."""
        window = self.window
        (kernel,), (stride,), (dilation,), (before, after) = (
            window.kernel,
            window.strides,
            window.dilations,
            window.pads,
        )
        if stride > 1:
            assert isinstance(size, int), "the size is known"
            reach = (window.output(0, size) - 1) * stride + window.extent(0)
            after = max(0, reach - size - before)
        if before or after:
            value, size = self._padded(value, (outer, size, inner), before, after), size + (before + after)
        if not isinstance(inner, int):
            return self._pooled(self._shaped(value, (outer, size, inner)), Window((kernel,), (1,), (0, 0), (dilation,)))
        rows = self._shaped(value, (1, outer, size * inner))
        return self._pooled(rows, Window((kernel,), (stride,), (0, 0), (dilation * inner,)), CHANNELS_FIRST)

    def _padded(self, value: SSAValue, shape: Sizes, before: int, after: int) -> SSAValue:
        """Surround an axis of a value by what changes no fold."""
        element = element_of(value)
        dtype = numpy_dtype(element)
        nothing: float = 0
        if self.by is MaxPoolOp:
            nothing = -math.inf if is_float(element) else int(np.iinfo(dtype).min)
        image = self._shaped(value, shape)
        return self.emit(PadOp, image, self.emit.splat(nothing, value), pads=(0, before, 0, 0, after, 0))

    def _pooled(self, image: SSAValue, window: Window, layout: str | None = None) -> SSAValue:
        """Fold the windows of an image with one spatial axis."""
        properties = {
            "strides": window.strides,
            "pads": window.pads,
            "dilations": window.dilations,
            "ceil_mode": window.ceil_mode,
        }
        if layout is not None:
            return self.emit(self.by, image, kernel_shape=window.kernel, layout=layout, **properties)
        return self.emit(self.by, image, kernel_shape=window.kernel, **properties)

    def _shaped(self, value: SSAValue, shape: Sizes) -> SSAValue:
        return value if sizes_of(value) == tuple(shape) else self.emit(ReshapeOp, value, shape=shape)


def _counts(op: AvgPoolOp) -> np.ndarray | None:
    """
    How many elements each window has: one number, or numbers that broadcast with the result; `None` if sizes that are
    known at run time decide.
    """
    window, is_last = op.window(), is_channels_last(op.layout)
    spatial = split_sizes(op.input, op.layout)[1]
    counts = np.ones(())
    for axis, size in enumerate(spatial):
        own = _counts_along(along(window, axis), size, flag(op.count_include_pad))
        if own is None:
            return None
        counts = counts[..., np.newaxis] * own
    if (counts == counts.flat[0]).all():
        return counts.reshape(-1)[0]
    return counts[..., np.newaxis] if is_last else counts


def _counts_along(window: Window, size: Size, counts_padding: bool) -> np.ndarray | None:
    """How many elements windows have along an axis: one number for each, or for all; `None` if it is not known."""
    (kernel,), (before, after) = window.kernel, window.pads
    if not isinstance(size, int):
        is_plain = not window.ceil_mode and (counts_padding or before == after == 0)
        return np.asarray([kernel]) if is_plain else None
    low, high = (-before, size + after) if counts_padding else (0, size)
    starts = np.arange(window.output(0, size)) * window.strides[0] - before
    taps = starts[:, np.newaxis] + np.arange(kernel) * window.dilations[0]
    return ((taps >= low) & (taps < high)).sum(axis=1)

"""
Elements of an image at points between others: which elements contribute to a point, their weights, and their sum.

Points are processed in blocks. The contributing elements along each axis are found for a whole block, in vectors. The
offsets and weights of all their combinations go to the stack, where each point reads its own, once for all its
channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for, load, load_raw, raw, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, larger, vector_loop
from glow_mlir.codegen.builder.types import i32, i64, integer_of_width, type_info
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.shapes import largest_shape
from glow_mlir.interpreter.sampling import WEIGHTS
from glow_mlir.support.dataclass import dataclass

MAX_UNROLLED = 8
"""The maximum number of elements per element of the result whose products are unrolled; more are a loop."""

_BEYOND = 8
"""How far beyond an axis elements are numbered: further than any that contributes to a point inside."""


@dataclass(frozen=True)
class Tap:
    """One element that contributes along an axis, for each point of a block."""

    index: Value
    """The index of the element, in range: i32."""
    weight: Value | None = None
    """Its weight, unless that is 1."""
    inside: Value | None = None
    """Whether that element exists, if elements outside are zero."""


def size_as(b: Builder, size: Index, like: Value) -> Number:
    """A size as a number of the same element type as `like`."""
    if isinstance(size, int):
        return float(size) if like.info.is_float else size
    return b.cast(size, like.info.element)


def elements_before(b: Builder, x: Value, size: Index) -> Value:
    """The elements before points as i32, at most some steps beyond the axis; for NaN as well."""
    return b.cast(b.min(b.max(b.floor(x), float(-_BEYOND)), size_as(b, size + _BEYOND, x)), i32)


def clamped(b: Builder, index: Value, size: Index) -> Value:
    """The nearest element that exists."""
    return b.max(b.min(index, size_as(b, size - 1, index)), 0)


def mirrored(b: Builder, index: Value, size: Index, aligned: bool) -> Value:
    """
    The element that an index stands for on a mirrored axis: at its last elements if `aligned`, else at their outer
    borders.
    """
    length = 2 * (size - 1) if aligned else 2 * size
    period = size_as(b, larger(b, length, 1), index)
    index = (index + _BEYOND * period) % period
    back = (period if aligned else period - 1) - index
    return clamped(b, b.select(index < size_as(b, size, index), index, back), size)


def zero_outside(b: Builder, index: Value, size: Index) -> tuple[Value, Value]:
    """The nearest element that exists, and whether it is the requested one."""
    return clamped(b, index, size), b.compare("ult", index, size_as(b, size, index))


def weighted_taps(
    b: Builder, x: Value, size: Index, mode: str, type_: Attribute, tap: Callable[[Value, Value | None], Tap]
) -> list[Tap]:
    """
    The taps of points `x` along an axis, with weights of a type.

    `tap` makes them from an index, maybe beyond the axis, and a weight.
    """
    before = elements_before(b, x, size)
    if mode == "nearest":
        return [tap(before, None)]
    first, weights = WEIGHTS[mode]
    fraction = b.cast(x - b.floor(x), type_)
    return [tap(before + (first + position), weight) for position, weight in enumerate(weights(fraction))]


class TapBlock:
    """The combinations of taps of all axes, for each point of a block: offsets, weights and masks on the stack."""

    def __init__(self, b: Builder, axes: Sequence[Sequence[Tap]], source: Operand, strides: Sequence[int]) -> None:
        self.b, self.source = b, source
        self.lanes = axes[0][0].index.lanes
        self.taps = math.prod(map(len, axes))
        reach = sum(
            size * abs(stride) for size, stride in zip(largest_shape(source.value), source.strides, strict=False)
        )
        self.offset_type = i64 if reach >= 1 << 31 else i32
        self.moves_bits = self.taps == 1
        self.type = raw(source.element) if self.moves_bits else computed(source.element)
        self.mask_type = integer_of_width(type_info(self.type).bits)
        self.offsets = self._table(self.offset_type)
        self.weights = None if self.moves_bits else self._table(self.type)
        self.masks = None if axes[0][0].inside is None else self._table(self.mask_type)
        for number, taps in enumerate(product(*axes)):
            self._put(number, taps, strides)

    def _table(self, element: Attribute) -> Value:
        return self.b.stack(element, self.taps * self.lanes)

    def _put(self, number: int, taps: Sequence[Tap], strides: Sequence[int]) -> None:
        """Store one combination, for all points."""
        b = self.b
        entry = number * self.lanes
        moves = [b.cast(tap.index, self.offset_type) * stride for tap, stride in zip(taps, strides, strict=True)]
        weights = [tap.weight for tap in taps if tap.weight is not None]
        inside = [tap.inside for tap in taps if tap.inside is not None]
        self.offsets.at(entry, self.offset_type).store(_combined(moves, lambda x, y: x + y))
        if self.weights is not None:
            self.weights.at(entry, self.type).store(_combined(weights, lambda x, y: x * y))
        if self.masks is not None:
            mask = b.cast(_combined(inside, lambda x, y: x & y), self.mask_type)
            self.masks.at(entry, self.mask_type).store(-mask)

    def element(self, number: Index, lane: Index, start: Index, lanes: int) -> Value:
        """`lanes` channels of the element of a point's tap; zeros if it lies outside."""
        b, entry = self.b, number * self.lanes + lane
        offset = b.index(self.offsets.at(entry, self.offset_type).load(self.offset_type)) + start
        step = self.source.strides[-1]
        if self.moves_bits:
            x = load_raw(b, self.source, offset, step, lanes)
        else:
            x = load(b, self.source, offset, step, lanes)
        if self.masks is None:
            return x
        mask = self.masks.at(entry, self.mask_type).load(self.mask_type)
        return x & mask if self.moves_bits else b.bitcast(b.bits_of(x) & mask, self.type)

    def weight(self, number: Index, lane: Index) -> Value:
        """The weight of one tap of a point."""
        assert self.weights is not None
        return self.weights.at(number * self.lanes + lane, self.type).load(self.type)

    def total(self, lane: Index, start: Index, lanes: int) -> Value:
        """The sum over all taps of a point, for `lanes` channels; a single tap is moved as raw bits."""
        if self.moves_bits:
            return self.element(0, lane, start, lanes)
        first = self.element(0, lane, start, lanes) * self.weight(0, lane)
        if self.taps <= MAX_UNROLLED:
            for number in range(1, self.taps):
                first = self.b.fma(self.element(number, lane, start, lanes), self.weight(number, lane), first)
            return first
        with self.b.loop(1, self.taps, carried=[first]) as loop:
            x, weight = self.element(loop.index, lane, start, lanes), self.weight(loop.index, lane)
            loop.set(self.b.fma(x, weight, loop.values[0]))
        return loop.results[0]


def store_by_channels(
    call: KernelCall, block: TapBlock, step: int, start: Index, target: Index, channels: Index
) -> None:
    """
    As `store_blended`, for all points of a block, `step` elements of the result apart: one channel after the other.

    For images whose channels are not neighbours: neighbouring points have neighbouring elements in a channel.
    """
    b, source, result = call.b, block.source, call.result
    moves = source.strides[-1], result.strides[-1]
    with b.loop(0, channels) as channel:
        first, into = channel * moves[0] + start, channel * moves[1] + target
        for point in range(block.lanes):
            value = block.total(b.index(point), first, 1)
            if block.moves_bits:
                result.pointer.at(into + point * step, block.type).store(value)
            else:
                store(b, result, into + point * step, value)


def _combined(values: Sequence[Value], combine: Callable[[Value, Value], Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = combine(total, value)
    return total


def store_blended(call: KernelCall, block: TapBlock, lane: Index, start: Index, target: Index, channels: Index) -> None:
    """Store `channels` channels of one point: those of the image from `start` on, to `target` in the result."""
    b, source, result = call.b, block.source, call.result
    moves = source.strides[-1], result.strides[-1]

    def channel(i: Index, lanes: int) -> None:
        value = block.total(lane, i * moves[0] + start, lanes)
        into = i * moves[1] + target
        if block.moves_bits:
            result.pointer.at(into, block.type).store(value)
        else:
            store(b, result, into, value)

    vector_loop(b, channels, lanes_for(call.target, block.type, moves), channel)

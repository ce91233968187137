"""
Where the samples of a batch lie in tensors: along which axes elements may be of different samples.

`HighOp.result_samples` says it of results, operator by operator, and `analysis.samples` asks it, so that no algorithm
lets one sample round, or spoil, another. What operators have in common is here. Whatever is not known is apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass

Factor = tuple[int, bool]
"""A size, and whether elements that differ along it may be of different samples."""

Axis = tuple[Factor, ...]
"""An axis as factors of its size, outermost first: that of a flattened [8, 128] may be ((8, True), (128, False))."""


def apart_axis(size: int) -> Axis:
    """An axis along which each element may be of another sample."""
    return ((size, True),) if size != 1 else ()


def one_axis(size: int) -> Axis:
    """An axis along which all elements are of one sample."""
    return ((size, False),) if size != 1 else ()


def is_apart(axis: Axis) -> bool:
    """Whether samples differ along any part of an axis."""
    return any(apart for _, apart in axis)


def resized(axis: Axis, size: int) -> Axis:
    """An axis whose elements come from all over another one: of one sample only if those are."""
    return apart_axis(size) if is_apart(axis) else one_axis(size)


@dataclass(frozen=True)
class Samples:
    """The axes of a tensor; and whether it may be `partial`: other tensors have the other samples of its batch."""

    axes: tuple[Axis, ...]
    partial: bool = False

    @staticmethod
    def one(shape: Shape) -> Samples:
        """A tensor of one sample, or of none."""
        return Samples(tuple(map(one_axis, shape)))

    @staticmethod
    def apart(shape: Shape, partial: bool = True) -> Samples:
        """A tensor each of whose elements may be of another sample."""
        return Samples(tuple(map(apart_axis, shape)), partial)

    @property
    def is_one(self) -> bool:
        """Whether all elements are of the same sample, which is the only one."""
        return not self.partial and not any(map(is_apart, self.axes))

    def with_axes(self, axes: Sequence[Axis]) -> Samples:
        """The same samples in a tensor of other axes."""
        return Samples(tuple(axes), self.partial)

    def runs(self, axes: int) -> int:
        """Into how many runs of equal length the first so many axes split, in their order, each of one sample."""
        factors = list(chain.from_iterable(self.axes[:axes]))
        while factors and not factors[-1][1]:
            factors.pop()
        return math.prod(size for size, _ in factors)


def unknown(operands: Sequence[Samples], shape: Shape) -> Samples:
    """The result of an operator about which nothing is known: of one sample only if all operands are."""
    return Samples.one(shape) if all(operand.is_one for operand in operands) else Samples.apart(shape)


def broadcast_samples(operands: Sequence[Samples], shape: Shape) -> Samples:
    """The result, of that shape, of an operator on elements that have the same place in operands that broadcast."""
    if sum(operand.partial for operand in operands) > 1:
        # Masks may take neighbours from different operands, which may have different samples.
        return unknown(operands, shape)
    axes = [one_axis(size) for size in shape]
    for operand in operands:
        leading = len(shape) - len(operand.axes)
        for number, axis in enumerate(operand.axes, start=leading):
            axes[number] = _met(axes[number], axis, shape[number])
    return Samples(tuple(axes), any(operand.partial for operand in operands))


def _met(one: Axis, other: Axis, size: int) -> Axis:
    """The common axis, of that size, of two operands; one may be broadcast."""
    if not is_apart(other) or one == other:
        return one
    return apart_axis(size) if is_apart(one) else other


def reshaped_samples(operand: Samples, shape: Shape) -> Samples:
    """The same elements in the same order under another shape."""
    waiting = [factor for axis in operand.axes for factor in axis][::-1]
    axes: list[Axis] = []
    for size in shape:
        axis: list[Factor] = []
        while size > 1 and waiting:
            whole, apart = waiting.pop()
            taken = math.gcd(whole, size)
            if taken != min(whole, size):  # Neither divides the other: the factor would straddle two axes.
                apart = any(map(is_apart, operand.axes))
                return operand.with_axes([apart_axis(extent) if apart else one_axis(extent) for extent in shape])
            axis.append((taken, apart))
            size //= taken
            if whole > taken:
                waiting.append((whole // taken, apart))
        axes.append(_joined(axis))
    return operand.with_axes(axes)


def _joined(axis: Sequence[Factor]) -> Axis:
    """An axis with neighbouring factors of a kind made one."""
    joined: list[Factor] = []
    for size, apart in axis:
        if joined and joined[-1][1] == apart:
            size *= joined.pop()[0]
        joined.append((size, apart))
    return tuple(joined)


def assembled_axis(operands: Sequence[Samples], axis: Axis, size: int) -> Axis:
    """An axis of that size along which what operands have there is put side by side, or beside something else."""
    return apart_axis(size) if is_apart(axis) or any(operand.partial for operand in operands) else one_axis(size)


def like_first(operands: Sequence[Samples], shape: Shape) -> Samples:
    """The result of an operator that meets samples as its first operand has them, if the others are parameters."""
    first, *others = operands
    return first if all(other.is_one for other in others) else unknown(operands, shape)


def without_axes(operand: Samples, axes: Sequence[int], keepdims: bool) -> Samples:
    """The result of what takes all elements along some axes, counted from the front, together."""
    if any(is_apart(operand.axes[axis]) for axis in axes):
        # Samples may have been masked, so that each element is of another one.
        operand = Samples.apart(tuple(math.prod(size for size, _ in axis) for axis in operand.axes))
    kept = [() if axis in axes else factors for axis, factors in enumerate(operand.axes)]
    return operand.with_axes(kept if keepdims else [kept[axis] for axis in range(len(kept)) if axis not in axes])


def windowed_samples(operand: Samples, shape: Shape, channel_axis: int, mixes_channels: bool) -> Samples:
    """The result of windows that slide over all axes but the first and that of the channels."""
    if mixes_channels and is_apart(operand.axes[channel_axis]):
        return Samples.apart(shape)
    axes = [resized(axis, size) for axis, size in zip(operand.axes, shape, strict=True)]
    axes[0] = operand.axes[0]
    axes[channel_axis] = one_axis(shape[channel_axis]) if mixes_channels else operand.axes[channel_axis]
    return operand.with_axes(axes)

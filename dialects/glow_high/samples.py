"""
The samples of a batch in tensors: the axes along which elements may belong to different samples.

They follow from access maps, unless an operator that moves elements knows more. `analysis.samples` uses them, so that
no algorithm lets one sample affect the rounding, or the NaNs, of another. Unknown elements count as different samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from glow_mlir.dialects.glow_high.access import AccessMap, is_starred, plain
from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass

Factor = tuple[int, bool]
"""A size, and whether elements that differ along it may be of different samples."""

Axis = tuple[Factor, ...]
"""An axis as factors of its size, outermost first: that of a flattened [8, 128] may be ((8, True), (128, False))."""


def apart_axis(size: int) -> Axis:
    """An axis along which each element may belong to another sample."""
    return ((size, True),) if size != 1 else ()


def one_axis(size: int) -> Axis:
    """An axis along which all elements belong to one sample."""
    return ((size, False),) if size != 1 else ()


def is_apart(axis: Axis) -> bool:
    """Whether samples differ along any part of an axis."""
    return any(apart for _, apart in axis)


def resized(axis: Axis, size: int) -> Axis:
    """An axis with elements from anywhere on another one: of one sample only if the other axis is."""
    return apart_axis(size) if is_apart(axis) else one_axis(size)


@dataclass(frozen=True)
class Samples:
    """The axes of a tensor, and whether it may be `partial`: its batch has other samples in other tensors."""

    axes: tuple[Axis, ...]
    partial: bool = False

    @staticmethod
    def one(shape: Shape) -> Samples:
        """A tensor of one sample, or of none."""
        return Samples(tuple(map(one_axis, shape)))

    @staticmethod
    def apart(shape: Shape, partial: bool = True) -> Samples:
        """A tensor each of whose elements may belong to another sample."""
        return Samples(tuple(map(apart_axis, shape)), partial)

    @property
    def is_one(self) -> bool:
        """Whether all elements are of the same sample, which is the only one."""
        return not self.partial and not any(map(is_apart, self.axes))

    def with_axes(self, axes: Sequence[Axis]) -> Samples:
        """The same samples in a tensor of other axes."""
        return Samples(tuple(axes), self.partial)

    def runs(self, axes: int) -> int:
        """The number of runs of equal length, each of one sample, into which the first `axes` axes split, in order."""
        factors = list(chain.from_iterable(self.axes[:axes]))
        while factors and not factors[-1][1]:
            factors.pop()
        return math.prod(size for size, _ in factors)


def unknown(operands: Sequence[Samples], shape: Shape) -> Samples:
    """The result of an unknown operator: of one sample only if all operands are."""
    return Samples.one(shape) if all(operand.is_one for operand in operands) else Samples.apart(shape)


def broadcast_samples(operands: Sequence[Samples], shape: Shape) -> Samples:
    """The result, of that shape, of an elementwise operator whose operands broadcast."""
    if sum(operand.partial for operand in operands) > 1:
        # Masks may select neighbouring elements from different operands, which may have different samples.
        return unknown(operands, shape)
    axes = [one_axis(size) for size in shape]
    for operand in operands:
        leading = len(shape) - len(operand.axes)
        for number, axis in enumerate(operand.axes, start=leading):
            axes[number] = _met(axes[number], axis, shape[number])
    return Samples(tuple(axes), any(operand.partial for operand in operands))


def mapped_samples(found: AccessMap, operands: Sequence[Samples], shapes: Sequence[Shape]) -> list[Samples]:
    """
    The results, of those shapes, of an operator with that access map.

    If samples differ along an axis that is read as a whole, masks may select single samples: the result is unknown.
    """
    pairs = zip(found.operands, operands, strict=True)
    apart = [pair for names, own in pairs for pair in zip(names, own.axes, strict=True) if is_apart(pair[1])]
    dimensions = {name for name, _ in apart}
    mixed = any(map(is_starred, dimensions)) or sum(operand.partial for operand in operands) > 1
    results: list[Samples] = []
    for names, shape in zip(found.results, shapes, strict=True):
        positions = {plain(name): position for position, name in enumerate(names)}
        if mixed or not dimensions <= positions.keys():
            results.append(unknown(operands, shape))
            continue
        axes = [one_axis(size) for size in shape]
        for name, axis in apart:
            position = positions[name]
            axes[position] = _met(axes[position], axis, shape[position])
        results.append(Samples(tuple(axes), any(operand.partial for operand in operands)))
    return results


def _met(one: Axis, other: Axis, size: int) -> Axis:
    """The common axis, of that size, of two operands; one may be broadcast."""
    if not is_apart(other) or one == other:
        return one
    is_whole = math.prod(factor for factor, _ in other) == size
    return other if is_whole and not is_apart(one) else apart_axis(size)


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
    """An axis with adjacent factors of the same kind merged."""
    joined: list[Factor] = []
    for size, apart in axis:
        if joined and joined[-1][1] == apart:
            size *= joined.pop()[0]
        joined.append((size, apart))
    return tuple(joined)


def assembled_axis(operands: Sequence[Samples], axis: Axis, size: int) -> Axis:
    """The axis of that size along which the operands are concatenated, or padded."""
    return apart_axis(size) if is_apart(axis) or any(operand.partial for operand in operands) else one_axis(size)

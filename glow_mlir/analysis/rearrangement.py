"""Compositions of reshapes and transposes: the factors of the origin's axes in each axis of the result."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Factor:
    """A factor of an axis of the origin: `size` elements at a distance of `stride` elements."""

    axis: int
    size: int
    stride: int


Arrangement = tuple[tuple[Factor, ...], ...]
"""The factors of each axis of a tensor, outermost first; none for an axis of size one."""


def arrangement_of(shape: Shape) -> Arrangement:
    """The arrangement of the tensor itself: each axis is its own factor."""
    return tuple((Factor(axis, size, 1),) if size != 1 else () for axis, size in enumerate(shape))


def transposed(axes: Arrangement, permutation: Shape) -> Arrangement:
    """The axes in another order."""
    return tuple(axes[axis] for axis in permutation)


def reshaped(axes: Arrangement, shape: Shape) -> Arrangement | None:
    """Reshape to a shape without zeros; `None` if an axis of it would split a factor unevenly."""
    pending = [factor for axis in axes for factor in axis][::-1]
    result: list[tuple[Factor, ...]] = []
    for size in shape:
        taken: list[Factor] = []
        left = size
        while left > 1:
            factor = pending.pop()
            if factor.size % left == 0 and factor.size > left:
                inner = factor.size // left
                pending.append(Factor(factor.axis, inner, factor.stride))
                factor = Factor(factor.axis, left, factor.stride * inner)
            if left % factor.size:
                return None
            taken.append(factor)
            left //= factor.size
        result.append(_joined(taken))
    return tuple(result)


def _joined(factors: Sequence[Factor]) -> tuple[Factor, ...]:
    """The factors of one axis, with contiguous ones merged."""
    result: list[Factor] = []
    for factor in factors:
        if result and result[-1].axis == factor.axis and result[-1].stride == factor.size * factor.stride:
            factor = Factor(factor.axis, result.pop().size * factor.size, factor.stride)
        result.append(factor)
    return tuple(result)


def whole_axes(axes: Arrangement, shape: Shape) -> Shape | None:
    """The axes of the origin, of that shape, in their order in the result, if each is whole; without unit axes."""
    order: list[int] = []
    for factors in axes:
        if len(factors) > 1 or any(factor.size != shape[factor.axis] for factor in factors):
            return None
        order += [factor.axis for factor in factors]
    return tuple(order)

"""What reshapes and transposes do together: which parts of the origin's axes each axis of the result consists of."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Factor:
    """A part of an axis of the origin: `size` places that lie `stride` places of the axis apart."""

    axis: int
    size: int
    stride: int


Arrangement = tuple[tuple[Factor, ...], ...]
"""For each axis of a tensor the factors it runs through, the outermost first; none for an axis of size one."""


def arrangement_of(shape: Shape) -> Arrangement:
    """The tensor itself: each axis is one of its own."""
    return tuple((Factor(axis, size, 1),) if size != 1 else () for axis, size in enumerate(shape))


def transposed(axes: Arrangement, permutation: Shape) -> Arrangement:
    """The axes in another order."""
    return tuple(axes[axis] for axis in permutation)


def reshaped(axes: Arrangement, shape: Shape) -> Arrangement | None:
    """The same elements under another shape without zeros; `None` where an axis of it would begin within a factor."""
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
    """The factors of one axis, those that continue each other as one."""
    result: list[Factor] = []
    for factor in factors:
        if result and result[-1].axis == factor.axis and result[-1].stride == factor.size * factor.stride:
            factor = Factor(factor.axis, result.pop().size * factor.size, factor.stride)
        result.append(factor)
    return tuple(result)


def whole_axes(axes: Arrangement, shape: Shape) -> Shape | None:
    """The axes of the origin, of that shape, in their order in the result, if it has each as a whole; without units."""
    order: list[int] = []
    for factors in axes:
        if len(factors) > 1 or any(factor.size != shape[factor.axis] for factor in factors):
            return None
        order += [factor.axis for factor in factors]
    return tuple(order)

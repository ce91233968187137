"""Where the elements of PyTorch's tensors lie: in which order of axes they are without gaps."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """
    The axes in the order in which elements follow one another in memory, the last of which are neighbours.

    `None` for a tensor with gaps, or whose elements share places. Axes of one element are where they are in the tensor
    itself, as far as the others allow that.
    """
    if 0 in sizes:
        return tuple(range(len(sizes)))
    wide = [axis for axis, size in enumerate(sizes) if size != 1]
    ordered = sorted(wide, key=lambda axis: -strides[axis])
    expected = 1
    for axis in reversed(ordered):
        if strides[axis] != expected:
            return None
        expected *= sizes[axis]
    if ordered == wide:
        return tuple(range(len(sizes)))
    # An axis of one element stays behind the one before it.
    order: list[int] = list(ordered)
    for axis, size in enumerate(sizes):
        if size == 1:
            order.insert(order.index(axis - 1) + 1 if axis else 0, axis)
    return tuple(order)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another one."""
    found = [0] * len(order)
    for position, axis in enumerate(order):
        found[axis] = position
    return tuple(found)

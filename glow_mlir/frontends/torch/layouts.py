"""Memory layouts of PyTorch's tensors: the order of axes in which elements are contiguous."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """
    The axes in memory order; the elements of the last one are adjacent.

    `None` for a tensor with gaps or overlapping elements. Axes of size 1 keep their position, as far as the other axes
    allow it.
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
    # An axis of size 1 stays after its predecessor.
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

"""Loop nests over index spaces: collapse of dimensions, and vectorised loops with a scalar tail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.shapes import Shape

Index = Value | int


def collapse(extents: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """
    The same iteration with fewer dimensions: drop those of size one, merge neighbours that every operand walks evenly.

    `strides` has one tuple an operand, in elements, 0 where the operand does not move.
    """
    dims = [(size, [s[axis] for s in strides]) for axis, size in enumerate(extents) if size != 1]
    merged: list[tuple[int, list[int]]] = []
    for size, steps in dims:
        if merged:
            outer, outer_steps = merged[-1]
            if all(a == b * size for a, b in zip(outer_steps, steps, strict=True)):
                merged[-1] = (outer * size, steps)
                continue
        merged.append((size, steps))
    if not merged:
        merged.append((1, [0] * len(strides)))
    return (
        tuple(size for size, _ in merged),
        [tuple(steps[operand] for _, steps in merged) for operand in range(len(strides))],
    )


def nest(b: Builder, extents: Shape, body: Callable[[list[Index]], None]) -> None:
    """Loops over `extents`, the last innermost; `body` gets the indices."""
    with ExitStack() as stack:
        body([stack.enter_context(b.loop(0, size, 1)) for size in extents])


def vector_loop(b: Builder, extent: int, width: int, body: Callable[[Index, int], None]) -> None:
    """A loop over `extent` elements in vectors of `width`, then one by one; `body` gets first element and lanes."""
    whole = extent // width * width
    if whole:
        with b.loop(0, whole, width) as i:
            body(i, width)
    if whole < extent:
        with b.loop(whole, extent, 1) as i:
            body(i, 1)


def linear(indices: Sequence[Index], strides: Sequence[int]) -> Index:
    """The element offset of a multi-dimensional index."""
    total: Index = 0
    for index, stride in zip(indices, strides, strict=True):
        if stride:
            total = index * stride + total
    return total

"""Loop nests over index spaces: collapse of dimensions, and vectorised loops with shorter vectors at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.value import Value
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


def nest(b: Builder, extents: Shape, body: Callable[[list[Index]], None], share: Partition = ALL) -> None:
    """
    Loops over `extents`, the last innermost; `body` gets the indices.

    The share is one of the steps of the outermost axes, as many as it takes to have some for each part.
    """
    cut = 0
    while not share.is_all and cut < len(extents) and math.prod(extents[:cut]) < share.parts:
        cut += 1
    with ExitStack() as stack:
        outer: list[Index] = []
        if not share.is_all:
            begin, end = share.of(math.prod(extents[:cut]))
            outer = unraveled(stack.enter_context(b.loop(begin, end)), extents[:cut])
        body([*outer, *(stack.enter_context(b.loop(0, size, 1)) for size in extents[cut:])])


def unraveled(step: Index, extents: Shape) -> list[Index]:
    """The indices along axes of these sizes at a step of the loops over all of them."""
    indices: list[Index] = []
    for size in reversed(extents[1:]):
        indices.append(step % size)
        step = step // size
    return [step, *reversed(indices)] if extents else []


def chunks(extent: int, width: int, rest: int | None = None) -> list[tuple[int, int, int]]:
    """
    A cover of `extent` elements by vectors of at most `width` (a power of two): start, stop and lanes of each piece.

    Whole vectors come first, then what remains in vectors of `rest` lanes (half the width by default), of half of
    them, and so on.
    """
    pieces: list[tuple[int, int, int]] = []
    position, lanes = 0, width
    while position < extent:
        count = (extent - position) // lanes * lanes
        if count:
            pieces.append((position, position + count, lanes))
            position += count
        lanes = rest if lanes == width and rest is not None and rest < width else lanes // 2
    return pieces


def vector_loop(
    b: Builder,
    extent: int,
    width: int,
    body: Callable[[Index, int], None],
    share: Partition = ALL,
    rest: int | None = None,
) -> None:
    """
    Loops over `extent` elements in vectors of `width` and what remains; `body` gets first element and lanes.

    The share is one of the vectors; what remains belongs to the last of them, and is cut as `chunks` does with `rest`.
    """
    vectors = -(-extent // width)
    for start, stop, lanes in chunks(extent, width, rest):
        if lanes == width and not share.is_all:
            begin, end = share.within(vectors, 0, stop // width)
            with b.loop(begin * width, end * width, width) as i:
                body(i, width)
            continue
        # What remains is never longer than a vector, and belongs to the share with the last one.
        begin, end = share.within(vectors, vectors - 1, 1) if not share.is_all else (0, 1)
        with b.loop(begin, end), b.loop(start, stop, lanes) as i:
            body(i, lanes)


def vector_nest(
    b: Builder,
    extents: Shape,
    width: int,
    body: Callable[[list[Index], Index, int], None],
    share: Partition = ALL,
    rest: int | None = None,
) -> None:
    """
    Loops over `extents`, the last innermost and in vectors of `width`; what remains as in `vector_loop`.

    `body` gets the outer indices, the first element and the lanes. The share is one of the steps of the outer loops, or
    of the vectors where there are more of these.
    """
    lines, vectors = math.prod(extents[:-1]), -(-extents[-1] // width)
    by_lines = lines >= share.parts or lines >= vectors

    def line(outer: list[Index]) -> None:
        vector_loop(b, extents[-1], width, lambda i, lanes: body(outer, i, lanes), ALL if by_lines else share, rest)

    nest(b, extents[:-1], line, share if by_lines else ALL)


def nest_steps(extents: Shape, width: int) -> int:
    """Into how many parts `vector_nest` can be cut."""
    return max(math.prod(extents[:-1]), -(-extents[-1] // width))


def linear(indices: Sequence[Index], strides: Sequence[int]) -> Index:
    """The element offset of a multi-dimensional index."""
    total: Index = 0
    for index, stride in zip(indices, strides, strict=True):
        if stride:
            total = index * stride + total
    return total

"""Loop nests over index spaces: collapsed dimensions, and vectorized loops that end with shorter vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TypeVar, cast, overload

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.symbols import Size, Sizes, are_numbers, numbers_in

Index = Value | int

Extent = TypeVar("Extent", int, Index)
"""The number of steps along an axis, which Python may know or not."""

Extents = Sequence[Index]
"""The numbers of steps along axes: Python numbers where they are known, else values of the function."""


ExtentsT = TypeVar("ExtentsT", Shape, Sizes, Extents)
"""Extents as numbers, as sizes of which some are known only at run time, or with values of the function."""


def collapse(extents: ExtentsT, strides: Sequence[Shape]) -> tuple[ExtentsT, list[Shape]]:
    """
    The same iteration with fewer dimensions: axes of size 1 are dropped, and neighbours are merged.

    Two neighbours are merged if every operand moves evenly over both, and the size of the inner one is a number.
    `strides` has one tuple per operand, in elements, 0 where the operand does not move.
    """
    dims = [(size, [s[axis] for s in strides]) for axis, size in enumerate(extents) if size != 1]
    merged: list[tuple[Size | Value, list[int]]] = []
    for size, steps in dims:
        if merged and isinstance(size, int):
            outer, outer_steps = merged[-1]
            if all(a == b * size for a, b in zip(outer_steps, steps, strict=True)):
                merged[-1] = (outer * size, steps)
                continue
        merged.append((size, steps))
    if not merged:
        merged.append((1, [0] * len(strides)))
    return (
        cast("ExtentsT", tuple(size for size, _ in merged)),
        [tuple(steps[operand] for _, steps in merged) for operand in range(len(strides))],
    )


def nest(b: Builder, extents: Extents, body: Callable[[list[Index]], None], share: Partition = ALL) -> None:
    """
    Loop over `extents`, the last one innermost; `body` gets the indices.

    `share` selects a slice of the steps of the outermost axes: of as many axes as give each part a step.
    """
    cut = 0
    with ExitStack() as stack:
        outer: list[Index] = []
        if not share.is_all:
            while cut < len(extents) and known_steps(extents[:cut]) < share.parts:
                cut += 1
            outer = unraveled(stack.enter_context(b.loop(*share.of(product(extents[:cut])))), extents[:cut])
        body([*outer, *(stack.enter_context(b.loop(0, size, 1)) for size in extents[cut:])])


def known_steps(extents: Extents) -> int:
    """The minimum number of steps along some axes: a size that is known only at run time may be 1."""
    return math.prod(numbers_in(extents))


def unraveled(step: Index, extents: Extents) -> list[Index]:
    """The indices, along axes of these sizes, at a step of the loops over all of them."""
    indices: list[Index] = []
    for size in reversed(extents[1:]):
        indices.append(step % size)
        step = step // size
    return [step, *reversed(indices)] if extents else []


def numbers(extents: Extents) -> Shape:
    """Extents that all have to be Python numbers."""
    known = tuple(numbers_in(extents))
    assert len(known) == len(extents), "work is not shared along extents that are known at run time only"
    return known


@overload
def steps_of(extent: int, width: int) -> int: ...
@overload
def steps_of(extent: Index, width: Index) -> Index: ...
def steps_of(extent: Index, width: Index) -> Index:
    """The number of steps of `width` that cover an extent."""
    return (extent + (width - 1)) // width


def smaller(b: Builder, one: Index, other: Index) -> Index:
    """The smaller of two numbers."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else b.min(one, other)


def larger(b: Builder, one: Index, other: Index) -> Index:
    """The larger of two numbers."""
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else b.max(one, other)


def product(extents: Iterable[Index]) -> Index:
    """The number of steps along all axes together."""
    total: Index = 1
    for extent in extents:
        total = extent * total
    return total


def chunks(extent: Extent, width: int, rest: int | None = None) -> list[tuple[Extent, Extent, int]]:
    """
    Cover `extent` elements by vectors of at most `width` lanes (a power of two): start, stop and lanes of each piece.

    Whole vectors come first, then the rest in vectors of `rest` lanes (half the width by default), of half as many, and
    so on. If Python does not know the extent, there is a piece of each kind, which may be empty.
    """
    pieces: list[tuple[Index, Index, int]] = []
    position: Index = 0
    lanes = width
    while lanes and position != extent:
        count = (extent - position) // lanes * lanes
        if count != 0:
            pieces.append((position, position + count, lanes))
            position += count
        lanes = rest if lanes == width and rest is not None and rest < width else lanes // 2
    return cast("list[tuple[Extent, Extent, int]]", pieces)


def vector_loop(
    b: Builder,
    extent: Index,
    width: int,
    body: Callable[[Index, int], None],
    share: Partition = ALL,
    rest: int | None = None,
) -> None:
    """
    Loop over `extent` elements in vectors of `width`, then over the rest; `body` gets the first element and the lanes.

    `share` selects a slice of the vectors. The rest, divided as in `chunks`, belongs to the slice with the last vector.
    """
    for start, stop, lanes in chunks(extent, width, rest):
        if share.is_all:
            with b.loop(start, stop, lanes) as i:
                body(i, lanes)
            continue
        vectors = steps_of(extent, width)
        if lanes == width:
            begin, end = share.within(vectors, 0, stop // width)
            with b.loop(begin * width, end * width, width) as i:
                body(i, width)
            continue
        # The rest is shorter than a vector, and belongs to the slice with the last vector.
        begin, end = share.within(vectors, vectors - 1, 1)
        with b.loop(begin, end), b.loop(start, stop, lanes) as i:
            body(i, lanes)


def vector_nest(
    b: Builder,
    extents: Extents,
    width: int,
    body: Callable[[list[Index], Index, int], None],
    share: Partition = ALL,
    rest: int | None = None,
) -> None:
    """
    Loop over `extents`, the last one innermost and in vectors of `width`; the rest is handled as in `vector_loop`.

    `body` gets the outer indices, the first element and the lanes. `share` selects a slice of the steps of the outer
    loops, or of the vectors if there are more of these.
    """
    by_lines = share.is_all
    if not share.is_all:
        *outermost, innermost = extents
        if not are_numbers(outermost):
            _shared_lines(b, extents, width, body, share, rest)
            return
        lines, vectors = known_steps(outermost), steps_of(innermost, width)
        by_lines = lines >= share.parts or (isinstance(vectors, int) and lines >= vectors)

    def line(outer: list[Index]) -> None:
        vector_loop(b, extents[-1], width, lambda i, lanes: body(outer, i, lanes), ALL if by_lines else share, rest)

    nest(b, extents[:-1], line, share if by_lines else ALL)


def _shared_lines(
    b: Builder,
    extents: Extents,
    width: int,
    body: Callable[[list[Index], Index, int], None],
    share: Partition,
    rest: int | None,
) -> None:
    """The loops of `vector_nest` over a slice of all vectors, if it is unknown whether there are enough lines."""
    *outermost, innermost = extents
    vectors = b.max(b.index(steps_of(innermost, width)), 1)
    total = product(outermost) * vectors
    begin, end = map(b.index, share.of(total))
    with b.loop(begin // vectors, b.select(begin < end, steps_of(end, vectors), 0)) as number:
        first, last = share.within(total, number * vectors, vectors)
        start, behind = first * width, b.min(last * width, innermost)
        outer = unraveled(number, outermost)
        for piece, until, lanes in chunks(behind - start, width, rest):
            with b.loop(piece, until, lanes) as i:
                body(outer, i + start, lanes)


def nest_steps(extents: Shape, width: int) -> int:
    """The maximum number of parts into which `vector_nest` can be partitioned."""
    return max(math.prod(extents[:-1]), -(-extents[-1] // width))


def linear(indices: Sequence[Index], strides: Sequence[Index]) -> Index:
    """The element offset of a multi-dimensional index."""
    total: Index = 0
    for index, stride in zip(indices, strides, strict=True):
        if isinstance(stride, Value) or stride:
            total = index * stride + total
    return total

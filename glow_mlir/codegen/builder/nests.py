"""Loop nests over index spaces: collapse of dimensions, and vectorised loops with shorter vectors at the end."""

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
"""How many steps there are along an axis: a number that Python knows, or perhaps does not."""

Extents = Sequence[Index]
"""How many steps there are along axes: numbers of Python where they are known, else values of the function."""


ExtentsT = TypeVar("ExtentsT", Shape, Sizes, Extents)
"""Extents as numbers, with sizes that are known at run time only, or with values of the function."""


def collapse(extents: ExtentsT, strides: Sequence[Shape]) -> tuple[ExtentsT, list[Shape]]:
    """
    The same iteration with fewer dimensions: drop those of size one, merge neighbours that every operand walks evenly,
    as it does over an inner one whose size is a number.

    `strides` has one tuple an operand, in elements, 0 where the operand does not move.
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
    Loops over `extents`, the last innermost; `body` gets the indices.

    The share is one of the steps of the outermost axes, as many as it takes to have some for each part.
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
    """How many steps there are along some axes for sure: a size that is known at run time only may be one."""
    return math.prod(numbers_in(extents))


def unraveled(step: Index, extents: Extents) -> list[Index]:
    """The indices along axes of these sizes at a step of the loops over all of them."""
    indices: list[Index] = []
    for size in reversed(extents[1:]):
        indices.append(step % size)
        step = step // size
    return [step, *reversed(indices)] if extents else []


def numbers(extents: Extents) -> Shape:
    """Extents that are all numbers of Python."""
    known = tuple(numbers_in(extents))
    assert len(known) == len(extents), "work is not shared along extents that are known at run time only"
    return known


@overload
def steps_of(extent: int, width: int) -> int: ...
@overload
def steps_of(extent: Index, width: Index) -> Index: ...
def steps_of(extent: Index, width: Index) -> Index:
    """How many steps of `width` cover an extent."""
    return (extent + (width - 1)) // width


def least(b: Builder, one: Index, other: Index) -> Index:
    """The smaller of two numbers."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else b.min(one, other)


def most(b: Builder, one: Index, other: Index) -> Index:
    """The larger of two numbers."""
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else b.max(one, other)


def product(extents: Iterable[Index]) -> Index:
    """How many steps there are along all of some axes."""
    total: Index = 1
    for extent in extents:
        total = extent * total
    return total


def chunks(extent: Extent, width: int, rest: int | None = None) -> list[tuple[Extent, Extent, int]]:
    """
    A cover of `extent` elements by vectors of at most `width` (a power of two): start, stop and lanes of each piece.

    Whole vectors come first, then what remains in vectors of `rest` lanes (half the width by default), of half of
    them, and so on. Where Python does not know the extent, there is a piece of each kind, which may be empty.
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
    Loops over `extent` elements in vectors of `width` and what remains; `body` gets first element and lanes.

    The share is one of the vectors; what remains belongs to the last of them, and is cut as `chunks` does with `rest`.
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
        # What remains is never longer than a vector, and belongs to the share with the last one.
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
    Loops over `extents`, the last innermost and in vectors of `width`; what remains as in `vector_loop`.

    `body` gets the outer indices, the first element and the lanes. The share is one of the steps of the outer loops, or
    of the vectors where there are more of these.
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
    """The loops of `vector_nest` over a share of all vectors, where it is not known whether there are enough lines."""
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
    """Into how many parts `vector_nest` can be cut."""
    return max(math.prod(extents[:-1]), -(-extents[-1] // width))


def linear(indices: Sequence[Index], strides: Sequence[Index]) -> Index:
    """The element offset of a multi-dimensional index."""
    total: Index = 0
    for index, stride in zip(indices, strides, strict=True):
        if isinstance(stride, Value) or stride:
            total = index * stride + total
    return total

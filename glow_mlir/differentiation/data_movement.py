"""Gradients of data movement: each element of a cotangent returns to its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import normalize_axis, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest, static
from glow_mlir.differentiation.contributions import Contributions, reduced_to, reshaped, transposed
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import NUMBERS_INSTEAD, Size, Sizes, are_numbers


@gradient(ReshapeOp)
def reshape(op: ReshapeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent with the sizes of the operand."""
    return {"input": lambda: reshaped(cotangent, sizes_of(op.input), emit)}


@gradient(TransposeOp)
def transpose(op: TransposeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent with the operand's order of axes."""
    permutation = ints(op.permutation)
    return {"input": lambda: transposed(cotangent, [permutation.index(i) for i in range(len(permutation))], emit)}


@gradient(ExpandOp)
def expand(op: ExpandOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The sum along the repeated axes."""
    return {"input": lambda: reduced_to(cotangent, op.input, emit)}


@gradient(TileOp)
def tile(op: TileOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The sum of the repetitions, after splitting each axis into two."""

    def contribution() -> SSAValue:
        split: list[Size] = []
        summed: list[int] = []
        for size, count in zip(sizes_of(op.input), ints(op.repeats), strict=True):
            if count != 1:
                summed.append(len(split))
                split.append(count)
            split.append(size)
        return emit(ReduceSumOp, reshaped(cotangent, tuple(split), emit), axes=tuple(summed), keepdims=False)

    return {"input": contribution}


@gradient(ConcatOp)
def concat(op: ConcatOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The slice of the cotangent at the position of each operand."""
    axis = normalize_axis(integer(op.axis), rank_of(op.result))

    def contribution(part: SSAValue, start: Size) -> SSAValue:
        return part_along(cotangent, axis, start, sizes_of(part)[axis], emit)

    start: Size = 0
    found: list[partial[SSAValue]] = []
    for part in op.parts:
        found.append(partial(contribution, part, start))
        start = start + sizes_of(part)[axis]
    return {"parts": found}


@gradient(SliceOp)
def slice_(op: SliceOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent padded with zeros around it, and between elements that steps skipped."""

    def contribution() -> SSAValue | None:
        sizes, starts, value = sizes_of(op.input), list[Size](), cotangent
        for axis, (start, _, step) in enumerate(op.bounds()):
            count = sizes_of(cotangent)[axis]
            if largest(count) == 0:
                return None
            if step < 0:
                value, start = reversed_along(value, axis, emit), start + (count - 1) * step
            value = _spread(value, axis, abs(step), emit)
            starts.append(start)
        return placed(value, starts, sizes, emit)

    return {"input": contribution}


def _spread(value: SSAValue, axis: int, step: int, emit: Emitter) -> SSAValue:
    """The elements along an axis with `step` - 1 zeros between neighbours."""
    sizes = sizes_of(value)
    count = sizes[axis]
    if step == 1 or count == 1:
        return value
    if smallest(count) == 0:
        reason = f"slice has no gradient where it takes every {step}-th element of an axis, or none"
        raise UnsupportedError(reason, hint=NUMBERS_INSTEAD)
    before, after = sizes[:axis], sizes[axis + 1 :]
    rows = reshaped(value, (*before, count, 1, *after), emit)
    pads = [0] * (2 * rank_of(rows))
    pads[len(sizes) + 1 + axis + 1] = step - 1
    filled = emit(PadOp, rows, pads=pads)
    return part_along(reshaped(filled, (*before, count * step, *after), emit), axis, 0, (count - 1) * step + 1, emit)


def placed(value: SSAValue, starts: Sequence[Size], sizes: Sizes, emit: Emitter) -> SSAValue:
    """Zeros in these sizes, except for a value that begins at `starts`."""
    own = sizes_of(value)
    ends = [size - start - count for start, count, size in zip(starts, own, sizes, strict=True)]
    pads = [width if isinstance(width, int) else 0 for width in (*starts, *ends)]
    result = emit(PadOp, value, pads=pads) if any(pads) else value
    for axis, widths in enumerate(zip(starts, ends, strict=True)):
        if are_numbers(widths):
            continue
        around = sizes_of(result)
        before, after = (
            [] if isinstance(width, int) else [emit.splat(0, value, (*around[:axis], width, *around[axis + 1 :]))]
            for width in widths
        )
        result = emit(ConcatOp, [*before, result, *after], axis=axis)
    return result


def part_along(value: SSAValue, axis: int, start: Size, count: Size, emit: Emitter) -> SSAValue:
    """`count` elements along an axis from `start` on."""
    sizes = sizes_of(value)
    if sizes[axis] == count:
        return value
    starts: Sizes = (*(0,) * axis, start, *(0,) * (len(sizes) - axis - 1))
    return emit(SliceOp, value, starts=starts, ends=(*sizes[:axis], start + count, *sizes[axis + 1 :]))


def reversed_along(value: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """A value with its elements along an axis in reverse order."""
    sizes = sizes_of(value)
    if sizes[axis] == 1:
        return value
    steps = [-1 if other == axis else 1 for other in range(len(sizes))]
    starts: Sizes = (*(0,) * axis, sizes[axis] - 1, *(0,) * (len(sizes) - axis - 1))
    return emit(SliceOp, value, starts=starts, ends=(*sizes[:axis], -1, *sizes[axis + 1 :]), steps=steps)


@gradient(PadOp)
def pad(op: PadOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The interior, plus the border elements that repeat elements of the operand."""
    if text(op.mode) == "constant":
        return {"input": lambda: _inside(op, cotangent, emit), "value": lambda: _border(op, cotangent, emit)}

    def contribution() -> SSAValue:
        value = cotangent
        for axis, (before, after) in enumerate(op.widths()):
            if before or after:
                size = sizes_of(op.input)[axis]
                runs = list(_runs(text(op.mode), before, after, size))
                value = _folded(value, axis, size, runs, emit)
        return value

    return {"input": contribution}


def _inside(op: PadOp, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """The interior without the border."""
    value = cotangent
    for axis, (before, _) in enumerate(op.widths()):
        value = part_along(value, axis, before, sizes_of(op.input)[axis], emit)
    return value


def _border(op: PadOp, cotangent: SSAValue, emit: Emitter) -> SSAValue | None:
    """The sum of the border: along each axis, the parts before and after the interior of the earlier axes."""
    total: SSAValue | None = None
    inner = cotangent
    for axis, (before, after) in enumerate(op.widths()):
        size = sizes_of(op.input)[axis]
        for start, width in ((0, before), (before + size, after)):
            if width:
                outer = part_along(inner, axis, start, width, emit)
                share = over_all(ReduceSumOp, outer, emit)
                total = share if total is None else emit(AddOp, total, share)
        inner = part_along(inner, axis, before, size, emit)
    return total


@dataclass(frozen=True)
class _Run:
    """
    `count` neighbours of a padded axis from `start` on, which copy those from `origin` on, in steps of -1, 0 or 1.
    """

    start: Size
    count: Size
    origin: Size
    step: int


def _runs(mode: str, before: int, after: int, size: Size) -> Iterator[_Run]:
    """The runs of copied elements along a padded axis."""
    yield _Run(before, size, 0, 1)
    if mode == "edge" or size == 1:
        if before:
            yield _Run(0, before, 0, 0)
        if after:
            yield _Run(before + size, after, size - 1, 0)
        return
    is_mirror = mode == "reflect"
    period = size - 1 if is_mirror else size
    for position, width in _pieces(before, period):
        if is_mirror and position % 2 == 0:
            yield _Run(before - _distance(position, period) - width, width, width, -1)
        else:
            yield _Run(before - _distance(position, period) - width, width, period - width, 1)
    for position, width in _pieces(after, period):
        start = before + size + _distance(position, period)
        if is_mirror and position % 2 == 0:
            yield _Run(start, width, size - 2, -1)
        else:
            yield _Run(start, width, 1 if is_mirror else 0, 1)


def _distance(position: int, period: Size) -> Size:
    return period * position if position else 0


def _pieces(width: int, period: Size) -> Iterator[tuple[int, int]]:
    """Split a width into pieces of at most a period; raises `RunTimeSizeError` if they are known only at run time."""
    if width <= smallest(period):
        if width:
            yield 0, width
        return
    (length,) = static((period,))
    for position in range((width + length - 1) // length):
        yield position, min(length, width - position * length)


def _folded(value: SSAValue, axis: int, size: Size, runs: Sequence[_Run], emit: Emitter) -> SSAValue:
    """The sum of runs along an axis, each at its position among `size` elements."""
    total: SSAValue | None = None
    for run in runs:
        part = part_along(value, axis, run.start, run.count, emit)
        origin = run.origin
        if run.step == 0:
            part = emit(ReduceSumOp, part, axes=(axis,))
        elif run.step < 0:
            part = reversed_along(part, axis, emit)
            origin = origin - run.count + 1
        sizes = sizes_of(part)
        starts: Sizes = (*(0,) * axis, origin, *(0,) * (len(sizes) - axis - 1))
        share = placed(part, starts, (*sizes[:axis], size, *sizes[axis + 1 :]), emit)
        total = share if total is None else emit(AddOp, total, share)
    assert total is not None
    return total

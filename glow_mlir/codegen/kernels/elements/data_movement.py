"""Kernels of data movement that is not a copy between two views: reversed, repeated, mirrored, padded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from glow_mlir.codegen.access import raw
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest
from glow_mlir.codegen.copies import Box, box_steps, broadcast_strides, copy_box, fill_box
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high import data_movement as ops
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import normalize_axis, shape_of, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


def cuts_of_box(self: Kernel, op: HighOp, target: Target) -> Mapping[str, int]:
    """`Kernel.cuts` of copies to a result."""
    return {"lines": box_steps(shape_of(op.outputs()[0]), target)}


@kernel("slice")
class SliceKernel(Kernel[ops.SliceOp]):
    """A copy from a strided part of the source; strides may be negative."""

    name = "slice"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ops.SliceOp]) -> None:
        source, result = call.one("input"), call.result
        starts, _, steps = zip(*call.op.bounds(), strict=True)
        strides = tuple(step * stride for step, stride in zip(steps, source.strides, strict=True))
        offset = linear(call.extents(starts), source.strides)
        copy_box(call.b, result.extents, Box.all_of(result), Box(source, strides, offset), call.share("lines"))


@kernel("concat")
class ConcatKernel(Kernel[ops.ConcatOp]):
    """
    A copy of each part after the previous one, for parts whose sizes are only known at run time.

    A first part that already lies in the memory of the result is not copied.
    """

    name = "concat"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ops.ConcatOp]) -> None:
        result = call.result
        axis = normalize_axis(integer(call.op.axis), len(result.sizes))
        start: Index = 0
        for number, part in enumerate(call.many("parts")):
            into = Box(result, result.strides, start * result.strides[axis])
            with ExitStack() as stack:
                if number == 0 and part.strides == result.strides:
                    apart = call.b.address(part.pointer).ne(call.b.address(result.pointer))
                    stack.enter_context(call.b.when(apart))
                copy_box(call.b, part.extents, into, Box.all_of(part), call.share("lines"))
            start = part.extents[axis] + start


@kernel("expand")
class ExpandKernel(Kernel[ops.ExpandOp]):
    """A copy of a source with stride 0 along the repeated axes."""

    name = "expand"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ops.ExpandOp]) -> None:
        source, result = call.one("input"), call.result
        strides = broadcast_strides(source, len(result.sizes))
        copy_box(call.b, result.extents, Box.all_of(result), Box(source, strides), call.share("lines"))


@kernel("tile")
class TileKernel(Kernel[ops.TileOp]):
    """A copy over twice as many axes: the repetitions, along which the source has stride 0, and its own axes."""

    name = "tile"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ops.TileOp]) -> None:
        source, result = call.one("input"), call.result
        shape: list[Index] = []
        into: list[int] = []
        out_of: list[int] = []
        apart: list[tuple[int, Index, int]] = []
        repeats = ints(call.op.repeats)
        for count, size, target, step in zip(repeats, source.extents, result.strides, source.strides, strict=True):
            if isinstance(size, int):
                shape += [count, size]
                into += [size * target, target]
                out_of += [0, step]
            else:  # The distance between copies is only known at run time.
                apart.append((count, size, target))
                shape.append(size)
                into.append(target)
                out_of.append(step)

        def copies(numbers: list[Index]) -> None:
            offset: Index = 0
            for number, (_, size, target) in zip(numbers, apart, strict=True):
                offset = number * size * target + offset
            boxes = Box(result, tuple(into), offset), Box(source, tuple(out_of))
            copy_box(call.b, tuple(shape), *boxes, call.share("lines"))

        nest(call.b, tuple(count for count, _, _ in apart), copies)


@dataclass(frozen=True)
class EvenSteps:
    """A run of indices along an axis of the target, and the evenly spaced source indices that are copied there."""

    target: Index
    count: Index
    source: Index
    step: int


def runs(indices: Sequence[int]) -> list[EvenSteps]:
    """Split source indices into evenly spaced runs."""
    found: list[EvenSteps] = []
    start = 0
    while start < len(indices):
        stop = start + 1
        step = indices[stop] - indices[start] if stop < len(indices) else 1
        while stop < len(indices) and indices[stop] - indices[stop - 1] == step:
            stop += 1
        found.append(EvenSteps(start, stop - start, indices[start], step))
        start = stop
    return found


@kernel("pad")
class PadKernel(Kernel[ops.PadOp]):
    """
    A copy of the interior, and a fill or copy for each box of the border.

    A mirrored or repeated border is copied in runs that are evenly spaced in the source; most are wider than a vector.
    """

    name = "pad"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def accepts(self, op: ops.PadOp) -> bool:
        needed = {"constant": 0, "edge": 0, "reflect": 1, "wrap": 0}[text(op.mode)]
        is_near = text(op.mode) in ("constant", "edge")
        axes = zip(sizes_of(op.input), op.widths(), strict=True)
        # A border that is wider than the source repeats it several times: the number has to be known.
        return all(isinstance(size, int) or is_near or max(width) + needed <= smallest(size) for size, width in axes)

    def emit(self, call: KernelCall[ops.PadOp]) -> None:
        op = call.op
        source, result = call.one("input"), call.result
        widths = op.widths()
        mode = text(op.mode)
        if mode == "constant":
            interior = sum(before * stride for (before, _), stride in zip(widths, result.strides, strict=True))
            into = Box(result, result.strides, interior)
            copy_box(call.b, source.extents, into, Box.all_of(source), call.share("lines"))
            self._fill_border(call, widths)
            return
        axes = [_runs_along(size, width, mode) for size, width in zip(source.extents, widths, strict=True)]
        for box in itertools.product(*axes):
            copy_runs(call, box, result, source)

    def _fill_border(self, call: KernelCall, widths: Sequence[tuple[int, int]]) -> None:
        b, result, given = call.b, call.result, call.maybe("value")
        element = raw(result.element)
        value = b.constant(0, element) if given is None else given.pointer.load(element)
        for start, shape in _border(result.extents, widths):
            offset = linear(start, result.strides)
            fill_box(b, shape, Box(result, result.strides, offset), value, call.share("lines"))


def _runs_along(size: Index, width: tuple[int, int], mode: str) -> list[EvenSteps]:
    """Return the runs of a padded axis; if its size is only known at run time, the border is no wider than it."""
    if isinstance(size, int):
        return runs(_source_indices(size, width, mode))
    before, after = width
    starts: dict[str, tuple[Index, Index, int]] = {
        "edge": (0, size - 1, 0),
        "reflect": (before, size - 2, -1),
        "wrap": (size - before, 0, 1),
    }
    front, back, step = starts[mode]
    found = [
        EvenSteps(0, before, front, step),
        EvenSteps(before, size, 0, 1),
        EvenSteps(size + before, after, back, step),
    ]
    return [run for run in found if run.count != 0]


def _source_indices(size: int, width: tuple[int, int], mode: str) -> list[int]:
    """Return the source index of each index of a padded axis."""
    pad: Any = np.pad
    return [int(index) for index in pad(np.arange(size), width, mode=mode)]


def copy_runs(call: KernelCall, box: Sequence[EvenSteps], result: Operand, source: Operand) -> None:
    """Copy one run along each axis."""
    into = linear([run.target for run in box], result.strides)
    out_of = linear([run.source for run in box], source.strides)
    steps = tuple(run.step * stride for run, stride in zip(box, source.strides, strict=True))
    shape = tuple(run.count for run in box)
    copy_box(call.b, shape, Box(result, result.strides, into), Box(source, steps, out_of), call.share("lines"))


def _border(shape: Extents, widths: Sequence[tuple[int, int]]) -> Iterator[tuple[Extents, Extents]]:
    """Yield start and shape of the boxes that make up the border; none overlap."""
    for axis, (before, after) in enumerate(widths):
        inner = [(w, size - w - v) for (w, v), size in zip(widths[:axis], shape, strict=False)]
        outer = [(0, size) for size in shape[axis + 1 :]]
        ends: tuple[tuple[Index, int], ...] = ((0, before), (shape[axis] - after, after))
        for start, count in ends:
            if count:
                parts = [*inner, (start, count), *outer]
                yield tuple(first for first, _ in parts), tuple(size for _, size in parts)

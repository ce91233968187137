"""
Kernels with operands that select at run time which elements to take or replace.

No index reaches beyond an operand: if one is out of range, the instruction fails, and the first element is taken, or
nothing is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from glow_mlir.codegen.access import lanes_for, load, load_raw, read_index, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, collapse, linear, nest, vector_nest
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.elements.folds import combined
from glow_mlir.codegen.kernels.elements.index_checks import as_i64, from_front
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high import indexing as ops
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import normalize_axis, shape_of, size_along
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

T = TypeVar("T")


def depth_of(indices: Operand) -> int:
    """Return the number of indices of a row."""
    return size_along(indices.value, -1)


def read_row(b: Builder, indices: Operand, position: Sequence[Index]) -> list[Value]:
    """Load the tuple of indices at a position along all axes but the last."""
    count, step = depth_of(indices), indices.strides[-1]
    start = linear(position, indices.strides[:-1])
    return [read_index(b, indices, start + column * step) for column in range(count)]


def start_from(call: KernelCall, name: str, slices: tuple[Index, Index] | None = None) -> None:
    """Copy an operand, or some slices along its first axis, to the result, unless it is there."""
    b, source, result = call.b, call.one(name), call.result
    extents, boxes = result.extents, [Box.all_of(operand) for operand in (result, source)]
    if slices is not None:
        begin, end = slices
        extents = (end - begin, *extents[1:])
        boxes = [box.moved([begin], box.strides[:1]) for box in boxes]
    with b.when(b.address(source.pointer).ne(b.address(result.pointer))):
        copy_box(b, extents, boxes[0], boxes[1])


@dataclass(frozen=True)
class Slices:
    """The range of the first axis of the result that one task of a scatter writes."""

    call: KernelCall
    begin: Index
    end: Index

    @staticmethod
    def of(call: KernelCall) -> Slices:
        """Return the range of a call's share; a result without axes counts as one slice."""
        sizes = call.result.extents
        return Slices(call, *call.share("slices").of(sizes[0] if sizes else 1))

    @property
    def are_all(self) -> bool:
        """Whether there is a single task."""
        return self.call.share("slices").is_all

    def start_from_input(self) -> None:
        """Copy the input to the result, unless they are one buffer."""
        start_from(self.call, "input", None if self.are_all else (self.begin, self.end))

    def updated(self, index: Index, update: Callable[[], None]) -> None:
        """Emit an update at an index of the first axis, if this task writes there."""
        if self.are_all:
            update()
            return
        b = self.call.b
        position = b.index(index)
        with b.when(b.compare("ge", position, self.begin) & b.compare("lt", position, self.end)):
            update()


MIN_MOVED = 64
"""The smallest number of elements per index for which a scatter is divided; each task reads all indices."""


def update_element(call: KernelCall[ops.Scatter], into: Index, out_of: Index) -> None:
    """Apply one element of the updates to one element of the result."""
    b, result, updates = call.b, call.result, call.one("updates")
    reduction = text(call.op.reduction)
    if reduction == "none":
        value = load_raw(b, updates, out_of, 1, 1)
        result.pointer.at(into, value.type).store(value)
    else:
        before, update = load(b, result, into, 1, 1), load(b, updates, out_of, 1, 1)
        store(b, result, into, combined(reduction, result.element).combine(b, before, update))


def combine_slice(call: KernelCall[ops.Scatter], sizes: Extents, into: Box, out_of: Box) -> None:
    """Combine a slice of the result with a slice of the updates, in vectors where both have neighbours in a row."""
    b, result, updates = call.b, call.result, call.one("updates")
    fold = combined(text(call.op.reduction), result.element)
    extents, (targets, sources) = collapse(sizes or (1,), [into.strides or (1,), out_of.strides or (1,)])
    lanes = lanes_for(b.target, result.element, (sources[-1],)) if targets[-1] == 1 else 1
    if isinstance(extents[-1], int):
        lanes = min(lanes, 1 << (extents[-1].bit_length() - 1))

    def run(outer: list[Index], i: Index, width: int) -> None:
        position = into.offset + linear([*outer, i], targets)
        before = load(b, result, position, 1, width)
        update = load(b, updates, out_of.offset + linear([*outer, i], sources), sources[-1], width)
        store(b, result, position, fold.combine(b, before, update))

    vector_nest(b, extents, lanes, run)


def if_inside(
    call: KernelCall[ops.Scatter], indices: Sequence[Value], sizes: Extents, update: Callable[[], None]
) -> None:
    """Emit an update if all indices are in range; otherwise the instruction fails, if it can."""
    b = call.b
    fits, *rest = (b.compare("ult", index, as_i64(b, size)) for index, size in zip(indices, sizes, strict=True))
    for check in rest:
        fits = fits & check

    def updated() -> Sequence[Value]:
        update()
        return ()

    def failed() -> Sequence[Value]:
        call.fail()
        return ()

    if not text(call.op.failure):
        with b.when(fits):
            update()
        return
    b.either(fits, updated, failed)


@kernel("scatter-elements")
class ScatterElementsKernel(Kernel[ops.ScatterElementsOp]):
    """A copy of the input, then the updates in order; tasks divide the first axis, unless it is the indexed axis."""

    name = "scatter-elements"
    AXES = ("slices",)
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ops.ScatterElementsOp]) -> None:
        b, result, indices = call.b, call.result, call.one("indices")
        axis = normalize_axis(integer(call.op.axis), len(result.sizes))
        slices = Slices.of(call)
        slices.start_from_input()
        if slices.are_all:
            nest(b, indices.extents, lambda position: self._update(call, axis, position))
            return
        with b.loop(slices.begin, b.min(b.index(slices.end), indices.extents[0])) as first:
            nest(b, indices.extents[1:], lambda position: self._update(call, axis, [first, *position]))

    def cuts(self, op: ops.ScatterElementsOp, target: Target) -> Mapping[str, int]:
        shape = shape_of(op.outputs()[0])
        axis = normalize_axis(integer(op.axis), len(shape))
        return {"slices": shape[0]} if axis else {}

    def _update(self, call: KernelCall[ops.ScatterElementsOp], axis: int, position: Sequence[Index]) -> None:
        """Apply the update at a position of the indices."""
        b, result, indices = call.b, call.result, call.one("indices")
        size = result.extents[axis]
        index = from_front(b, read_index(b, indices, linear(position, indices.strides)), size)
        into = linear([*position[:axis], b.index(index), *position[axis + 1 :]], result.strides)
        out_of = linear(position, call.one("updates").strides)
        if_inside(call, [index], (size,), lambda: update_element(call, into, out_of))


@kernel("scatter-nd")
class ScatterNDKernel(Kernel[ops.ScatterNDOp]):
    """
    A copy of the input, then the updates in order, slice by slice.

    Tasks divide the first axis of the result. Each task reads all indices and applies its own updates, so that the
    updates of an element keep their order. This pays if each index moves many elements.
    """

    name = "scatter-nd"
    AXES = ("slices",)
    RUN_TIME_SIZES = True

    def cuts(self, op: ops.ScatterNDOp, target: Target) -> Mapping[str, int]:
        shape, depth = shape_of(op.outputs()[0]), size_along(op.indices, -1)
        is_much = depth > 0 and math.prod(shape[depth:]) >= MIN_MOVED
        return {"slices": min(shape[0], target.policy.threads)} if is_much else {}

    def emit(self, call: KernelCall[ops.ScatterNDOp]) -> None:
        b, result, indices, updates = call.b, call.result, call.one("indices"), call.one("updates")
        depth, outer = depth_of(indices), len(indices.sizes) - 1
        inner, sizes = result.extents[depth:], result.extents
        overwrites = text(call.op.reduction) == "none"
        slices = Slices.of(call)
        slices.start_from_input()

        def update(position: list[Index]) -> None:
            row = [from_front(b, i, size) for i, size in zip(read_row(b, indices, position), sizes, strict=False)]
            into = Box(result, result.strides[depth:]).moved([b.index(i) for i in row], result.strides[:depth])
            out_of = Box(updates, updates.strides[outer:]).moved(position, updates.strides[:outer])

            def replace() -> None:
                if overwrites:
                    copy_box(b, inner, into, out_of)
                else:
                    combine_slice(call, inner, into, out_of)

            first = row[0] if row else 0
            if_inside(call, row, sizes[:depth], lambda: slices.updated(first, replace))

        nest(b, indices.extents[:-1], update)


@kernel("reverse-sequence")
class ReverseSequenceKernel(Kernel[ops.ReverseSequenceOp]):
    """One copy for each time step of each sequence."""

    name = "reverse-sequence"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ops.ReverseSequenceOp]) -> None:
        b, source, lengths, result = call.b, call.one("input"), call.one("lengths"), call.result
        op = call.op
        rank = len(source.sizes)
        batch, time = (normalize_axis(integer(axis), rank) for axis in (op.batch_axis, op.time_axis))
        rest = [axis for axis in range(rank) if axis not in (batch, time)]
        steps = as_i64(b, source.extents[time])

        def pick(values: Sequence[T], axes: Sequence[int]) -> tuple[T, ...]:
            return tuple(values[axis] for axis in axes)

        moving = (batch, time)
        into, out_of = (Box(operand, pick(operand.strides, rest)) for operand in (result, source))

        def take(position: list[Index]) -> None:
            sequence, step = position
            length = read_index(b, lengths, linear([sequence], lengths.strides))
            length = b.index(b.min(b.max(length, 0), steps))
            step = b.index(step)
            origin = b.select(step < length, length - 1 - step, step)
            target = into.moved([sequence, step], pick(result.strides, moving))
            start = out_of.moved([sequence, origin], pick(source.strides, moving))
            copy_box(b, pick(source.extents, rest), target, start)

        nest(b, pick(source.extents, moving), take)

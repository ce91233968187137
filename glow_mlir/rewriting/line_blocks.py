"""Code of the pass `tile-lines`: the instructions of a chain on blocks of lines."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from glow_mlir.analysis.line_blocks import Block as LineBlock
from glow_mlir.analysis.line_blocks import Schedule
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    Buffer,
    CopyOp,
    DeallocOp,
    FillOp,
    ViewOp,
    buffer_type,
    offset_of,
    root_of,
    strides_of,
)
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Link:
    """A buffer that one instruction writes and only one other reads, as its first operand."""

    root: SSAValue
    writer: DerivedInstruction
    reader: DerivedInstruction
    fills: tuple[Operation, ...]
    """The instructions that fill the border."""
    top: int
    left: int
    value: Attribute | None
    """The value of the border."""


def write_chain(ops: Sequence[DerivedInstruction], links: Sequence[Link], schedule: Schedule) -> None:
    """Compute the chain of `ops` block by block, in front of the last of them."""
    ChainWriter(ops, links, schedule).run()


@dataclass(frozen=True)
class Lines:
    """A range of lines: first line, count, and the step of the first line per trip of the loop over blocks."""

    first: int
    count: int
    step: int


@dataclass
class ChainWriter:
    """Writes the blocks of one chain: into the block of its last instruction, or into loops in front of it."""

    ops: Sequence[DerivedInstruction]
    links: Sequence[Link]
    schedule: Schedule
    buffers: list[SSAValue] = field(default_factory=list[SSAValue])
    """The buffers of lines."""
    image: SSAValue | None = None
    """The index of the image, inside the loop over images, if there are several."""
    trip: SSAValue | None = None
    """The index of the block, inside the loop over blocks."""
    inside: Block | None = None
    """The body of the loop under construction, `None` outside of loops."""

    @cached_property
    def location(self) -> LocationAttr:
        """The fused location of the chain."""
        return fuse_locations(op.location for op in self.ops)

    def run(self) -> None:
        """Write everything."""
        for link, height in zip(self.links, self.schedule.heights(), strict=True):
            _, _, width, channels = shape_of(link.reader.inputs()[0])
            type_ = buffer_type((1, height, width, channels), element_of(link.root))
            allocation = AllocOp.of(type_, link.writer.location)
            allocation.result.name_hint = link.root.name_hint
            self._add(allocation)
            self.buffers.append(allocation.result)
        batch = shape_of(self.ops[0].outputs()[0])[0]
        if batch > 1:
            with self._loop(batch) as self.image:
                self._blocks()
        else:
            self._blocks()
        for buffer in self.buffers:
            self._add(DeallocOp.of(buffer, location=self.location))

    def _add(self, op: Operation) -> None:
        if self.inside is not None:
            self.inside.add_op(op)
            return
        block = self.ops[-1].parent_block()
        assert block is not None
        block.insert_op_before(op, self.ops[-1])

    @contextmanager
    def _loop(self, trips: int) -> Generator[SSAValue]:
        """Write a loop; yields its induction variable."""
        loop = LoopOp.of(trips, self.location)
        self._add(loop)
        outside, self.inside = self.inside, loop.block
        yield loop.index
        self.inside = outside

    def _blocks(self) -> None:
        """All blocks of one image."""
        schedule, tail = self.schedule, self.schedule.tail()
        head, inner = schedule.head(), schedule.inner()
        self._sides()
        for i, link in enumerate(self.links):
            self._border(i, (0, link.top))
        self._stages(head, moving=False)
        if schedule.blocks > 1 or tail is not None:
            self._keep(head)
        if schedule.blocks > 1:
            with self._loop(schedule.blocks - 1) as self.trip:
                self._stages(inner, moving=True)
                self._keep(inner)
        if tail is not None:
            for i in range(len(self.links)):
                end = schedule.place(tail, i) + tail.ranges[i][1] - tail.ranges[i][0]
                self._border(i, (end, schedule.needed(tail, i) - end))
            self._stages(tail, moving=False)

    def _sides(self) -> None:
        """Fill the border left and right of the lines."""
        for link, buffer in zip(self.links, self.buffers, strict=True):
            _, height, width, _ = shape_of(buffer)
            inner = shape_of(link.writer.outputs()[0])[2]
            right = width - link.left - inner
            columns = [(0, link.left), (link.left + inner, right)]
            self._fill(link, [self._part(buffer, (0, height), part) for part in columns if part[1]])

    def _border(self, i: int, lines: tuple[int, int]) -> None:
        """Fill a range of lines of a buffer, first line and count, with the border value."""
        if lines[1] > 0:
            self._fill(self.links[i], [self._part(self.buffers[i], lines)])

    def _fill(self, link: Link, targets: Sequence[SSAValue]) -> None:
        if targets and link.value is not None:
            self._add(FillOp.of(targets, properties={"value": link.value}, location=link.reader.location))

    def _keep(self, block: LineBlock) -> None:
        """Move the lines that the next block reads again to the front of their buffers."""
        for i, buffer in enumerate(self.buffers):
            first, last = block.ranges[i + 1]
            used, kept = (last - first) * self.schedule.stages[i + 1].stride, self.schedule.kept[i]
            if kept:
                target, source = self._part(buffer, (0, kept)), self._part(buffer, (used, kept))
                self._add(CopyOp.of(target, source, location=self.links[i].reader.location))

    def _part(
        self,
        buffer: SSAValue,
        lines: tuple[int, int],
        columns: tuple[int, int] | None = None,
        element: Attribute | None = None,
    ) -> SSAValue:
        """A slice of lines and columns of a buffer: each given as first index and count."""
        _, _, width, channels = shape_of(buffer)
        first, count = columns or (0, width)
        strides = strides_of(buffer)
        offset = lines[0] * strides[1] + first * strides[2]
        type_ = buffer_type((1, lines[1], count, channels), element or element_of(buffer), strides, offset)
        return self._view(buffer, type_)

    def _stages(self, block: LineBlock, moving: bool) -> None:
        """Write the instructions of the chain for the lines of a block; `moving`: inside the loop over blocks."""
        for i, op in enumerate(self.ops):
            first, last = block.ranges[i]
            if first < last:
                piece = op.clone()
                piece.operands = list(self._operands(i, block, moving))
                images, lines = shape_of(op.outputs()[0])[:2]
                piece.image_lines = IntegerAttr(lines, i64)
                if piece.samples is not None:
                    # Lines of one image belong to one sample, unless images do not either.
                    piece.samples = IntegerAttr(1, i64) if images % integer(piece.samples) == 0 else None
                self._add(piece)

    def _operands(self, i: int, block: LineBlock, moving: bool) -> Iterator[SSAValue]:
        """The operands of instruction `i` for the lines of a block."""
        op, schedule = self.ops[i], self.schedule
        (first, last), stage = block.ranges[i], schedule.stages[i]
        step = schedule.steps[i] if moving else 0
        made = Lines(first, last - first, step)
        read = Lines(first * stage.stride, (made.count - 1) * stage.stride + stage.extent, step * stage.stride)
        axes = _axes(op)
        for position, (name, _, value) in enumerate(op.named_uses()):
            if name in op.OPERATOR_RESULTS and i < len(self.links):
                columns = (self.links[i].left, shape_of(value)[2])
                yield self._part(self.buffers[i], (schedule.place(block, i), made.count), columns, element_of(value))
            elif name == op.FIRST_INPUT and i:
                # Quantized values are read as their stored integers.
                yield self._part(self.buffers[i - 1], (0, read.count), element=element_of(value))
            elif name == op.FIRST_INPUT:
                yield self._lines(value, (0, 1), read)
            else:
                # All lines share filter and bias.
                yield self._lines(value, axes.get(position, (None, None)), made)

    def _lines(self, value: SSAValue, axes: tuple[int | None, int | None], lines: Lines) -> SSAValue:
        """The given lines of the current image of a buffer; `axes` are its axes of images and lines, if any."""
        shape, strides = list(shape_of(value)), strides_of(value)
        offset, moves = offset_of(value), list[tuple[SSAValue, int]]()
        images, height = axes
        if images is not None and self.image is not None:
            shape[images] = 1
            moves.append((self.image, strides[images]))
        if height is not None:
            shape[height] = lines.count
            offset += lines.first * strides[height]
            if lines.step and self.trip is not None:
                moves.append((self.trip, lines.step * strides[height]))
        type_ = buffer_type(tuple(shape), element_of(value), strides, offset)
        if not moves:
            return self._view(value, type_)
        window = WindowOp.of(root_of(value), moves, type_, self.location)
        window.result.name_hint = value.name_hint
        self._add(window)
        return window.result

    def _view(self, value: SSAValue, type_: Buffer) -> SSAValue:
        """A view of the memory of a buffer; the buffer itself if it has this type already."""
        if type_ == value.type:
            return value
        view = ViewOp.of(root_of(value), type_, self.location)
        view.result.name_hint = value.name_hint
        self._add(view)
        return view.result


def _axes(op: DerivedInstruction) -> dict[int, tuple[int | None, int | None]]:
    """Axes of images and lines of the result and of the epilogue operands, by operand number."""
    names = [name for name, _, _ in op.named_uses()]
    found: dict[int, tuple[int | None, int | None]] = {}
    maps = iter(op.epilogue.maps if op.epilogue is not None else ())
    for position, name in enumerate(names):
        if name in op.OPERATOR_RESULTS:
            found[position] = (0, 1)
        elif name in ("epilogue_targets", "epilogue_sources"):
            results = next(maps).results
            axes = {e.position: axis for axis, e in enumerate(results) if isinstance(e, AffineDimExpr)}
            found[position] = (axes.get(0), axes.get(1))
    return found

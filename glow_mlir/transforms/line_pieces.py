"""What the pass `tile-lines` writes: the instructions of a chain on blocks of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from glow_mlir.analysis.line_blocks import Block as LineBlock
from glow_mlir.analysis.line_blocks import Schedule
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    CopyOp,
    DeallocOp,
    FillOp,
    ViewOp,
    buffer_type,
    offset_of,
    root_of,
    strides_of,
)
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.transforms.rewriting import fuse_locations


@dataclass(frozen=True)
class Link:
    """A buffer that one instruction writes and another alone reads, as its first operand."""

    root: SSAValue
    writer: DerivedInstruction
    reader: DerivedInstruction
    fills: tuple[Operation, ...]
    """What writes the border."""
    top: int
    left: int
    value: Attribute | None
    """What the border holds."""


def write_chain(ops: Sequence[DerivedInstruction], links: Sequence[Link], schedule: Schedule) -> None:
    """Compute the chain of `ops` block by block, in front of the last of them."""
    ChainWriter(ops, links, schedule).run()


@dataclass
class ChainWriter:
    """Writes the blocks of one chain: into the block of the last instruction, or into loops in front of it."""

    ops: Sequence[DerivedInstruction]
    links: Sequence[Link]
    schedule: Schedule
    buffers: list[SSAValue] = field(default_factory=list[SSAValue])
    """The buffers of lines."""
    indices: list[SSAValue] = field(default_factory=list[SSAValue])
    """The numbers of the trips of the loops around: of images, if there are several, and of blocks."""
    images: bool = False
    inside: Block | None = None
    """The body of the loop that is written, `None` outside of loops."""

    @property
    def location(self) -> LocationAttr:
        """That of the whole chain."""
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
            loop = LoopOp.of(batch, self.location)
            self.images = True
            self._within(loop, self._blocks)
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

    def _within(self, loop: LoopOp, write: object) -> None:
        """Add a loop, and write its body."""
        assert callable(write)
        self._add(loop)
        outside, self.inside = self.inside, loop.block
        self.indices.append(loop.index)
        write()
        self.indices.pop()
        self.inside = outside

    def _blocks(self) -> None:
        """All blocks of one image."""
        schedule, tail = self.schedule, self.schedule.tail()
        self._sides()
        head = schedule.head()
        self._border(head, range(len(self.links)), top=True)
        self._stages(head, 0)
        if schedule.blocks > 1 or tail is not None:
            self._keep(head)
        if schedule.blocks > 1:
            inner = schedule.inner()

            def body() -> None:
                self._stages(inner, 1)
                self._keep(inner)

            self._within(LoopOp.of(schedule.blocks - 1, self.location), body)
        if tail is not None:
            self._border(tail, range(len(self.links)), top=False)
            self._stages(tail, 0)

    def _sides(self) -> None:
        """Fill the border to the left and to the right."""
        for link, buffer in zip(self.links, self.buffers, strict=True):
            _, height, width, _ = shape_of(buffer)
            inner = shape_of(link.writer.outputs()[0])[2]
            right = width - link.left - inner
            columns = [(0, link.left), (link.left + inner, right)]
            self._fill(link, [self._part(buffer, (0, height), part) for part in columns if part[1]])

    def _border(self, block: LineBlock, which: Sequence[int], *, top: bool) -> None:
        """Fill the lines of the border that lie above or below the new lines of a block."""
        for i in which:
            end = self.schedule.place(block, i) + block.ranges[i][1] - block.ranges[i][0]
            place = (0, self.links[i].top) if top else (end, self.schedule.needed(block, i) - end)
            if place[1] > 0:
                self._fill(self.links[i], [self._part(self.buffers[i], place)])

    def _fill(self, link: Link, targets: Sequence[SSAValue]) -> None:
        if targets and link.value is not None:
            assert isinstance(link.value, FloatAttr | IntegerAttr)
            self._add(FillOp.of(targets, properties={"value": link.value}, location=link.reader.location))

    def _keep(self, block: LineBlock) -> None:
        """Move the lines that the next block needs to the front of their buffers."""
        for i, buffer in enumerate(self.buffers):
            first, last = block.ranges[i + 1]
            used, kept = (last - first) * self.schedule.stages[i + 1].stride, self.schedule.kept[i]
            if kept:
                target, source = self._part(buffer, (0, kept)), self._part(buffer, (used, kept))
                self._add(CopyOp.of(target, source, location=self.links[i].reader.location))

    def _part(self, buffer: SSAValue, lines: tuple[int, int], columns: tuple[int, int] | None = None) -> SSAValue:
        """Some lines, and of these some columns, of a buffer: first and number."""
        _, _, width, channels = shape_of(buffer)
        first, count = columns or (0, width)
        strides = strides_of(buffer)
        type_ = buffer_type(
            (1, lines[1], count, channels),
            element_of(buffer),
            strides,
            lines[0] * strides[1] + first * strides[2],
        )
        if type_ == buffer.type:
            return buffer
        view = ViewOp.of(buffer, type_, self.location)
        view.result.name_hint = buffer.name_hint
        self._add(view)
        return view.result

    def _stages(self, block: LineBlock, moving: int) -> None:
        """The instructions of the chain on the lines of a block; with `moving`, in the trips of a loop over blocks."""
        for i, op in enumerate(self.ops):
            first, last = block.ranges[i]
            if first < last:
                self._stage(i, op, block, moving)

    def _stage(self, i: int, op: DerivedInstruction, block: LineBlock, moving: int) -> None:
        schedule = self.schedule
        (first, last), stage = block.ranges[i], schedule.stages[i]
        step = schedule.steps[i] * moving
        maps = _maps(op)
        operands: list[SSAValue] = []
        for position, (name, _, value) in enumerate(op.named_uses()):
            if name in op.OPERATOR_RESULTS and i < len(self.links):
                place = (schedule.place(block, i), last - first)
                inner = shape_of(value)[2]
                operands.append(self._part(self.buffers[i], place, (self.links[i].left, inner)))
            elif name in op.OPERATOR_RESULTS:
                operands.append(self._lines(value, 0, 1, first, last - first, step))
            elif value is op.inputs()[0] and name == op.FIRST_INPUT:
                count = (last - first - 1) * stage.stride + stage.extent
                if i:
                    operands.append(self._part(self.buffers[i - 1], (0, count)))
                else:
                    operands.append(self._lines(value, 0, 1, first * stage.stride, count, step * stage.stride))
            elif position in maps:
                axes = _axes(maps[position])
                operands.append(self._lines(value, axes[0], axes[1], first, last - first, step))
            else:
                operands.append(value)
        piece = op.clone()
        piece.operands = operands
        self._add(piece)

    def _lines(
        self, value: SSAValue, batch: int | None, axis: int | None, first: int, count: int, step: int
    ) -> SSAValue:
        """Lines `first` and on of the present image of a buffer, `step` lines further with each trip over blocks."""
        shape, strides = list(shape_of(value)), strides_of(value)
        offset, steps = offset_of(value), [0] * len(self.indices)
        if batch is not None and self.images:
            shape[batch] = 1
            steps[0] = strides[batch]
        if axis is not None:
            shape[axis] = count
            offset += first * strides[axis]
            if step:
                steps[-1] = step * strides[axis]
        type_ = buffer_type(tuple(shape), element_of(value), strides, offset)
        moved = [(index, step) for index, step in zip(self.indices, steps, strict=True) if step]
        if not moved and type_ == value.type:
            return value
        root = root_of(value)
        if moved:
            found = WindowOp.of(root, *zip(*moved, strict=True), type_, self.location)  # pyright: ignore[reportCallIssue]
        else:
            found = ViewOp.of(root, type_, self.location)
        found.result.name_hint = value.name_hint
        self._add(found)
        return found.result


def _maps(op: DerivedInstruction) -> dict[int, AffineMap]:
    """The map of each operand that the epilogue has of its own, by its number."""
    body = op.epilogue
    if body is None:
        return {}
    names = [name for name, _, _ in op.named_uses()]
    places = [position for position, name in enumerate(names) if name in ("epilogue_targets", "epilogue_sources")]
    return dict(zip(places, body.maps, strict=True))


def _axes(affine: AffineMap) -> Shape:
    """The axes of an operand along which images and lines lie, `None` where all share its elements."""
    found = {e.position: axis for axis, e in enumerate(affine.results) if isinstance(e, AffineDimExpr)}
    return found.get(0), found.get(1)  # pyright: ignore[reportReturnType]

"""`tile-lines`: compute chains of convolutions block by block, so that intermediate lines stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.analysis.cost import is_profitable
from glow_mlir.analysis.line_blocks import LineBuffer, LineStage, Schedule, best_schedule, possible_schedules
from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    DeallocOp,
    FillOp,
    FuncOp,
    ViewOp,
    WeightOp,
    byte_size,
    is_contiguous,
    offset_of,
    root_of,
    strides_of,
)
from glow_mlir.dialects.shapes import element_of, has_static_shape, shape_of, size_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.rewriting.line_blocks import Link, write_chain
from glow_mlir.rewriting.line_limits import LinePlan, Piece, spans_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.memory.allocate import capacity_of


@dataclass(frozen=True)
class TileLinesPass(ModulePass):
    """
    Tile chains of convolutions by lines: in each trip of a loop, every instruction of the chain computes the lines that
    the next one needs, in buffers of a few lines instead of whole images.

    Applies to results that only the next instruction reads, and that exceed the target's second-level cache, if it has
    one: they are then read from the cache and not from memory (Alwani et al., Fused-layer CNN accelerators, MICRO
    2016). Each line is computed once; lines that the next block reads again move to the front of the buffer, which must
    cost less than tiling saves. Results are bit-identical: instructions record the number of lines of their images
    (`image_lines`).

    Not applied with several threads: a block has few lines for each, and threads would read each other's lines.

    A function whose target has `ram_bytes` is tiled for memory only: chains of any results, in blocks small enough that
    live bytes respect that limit, or come nearer to it.
    """

    name = "tile-lines"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in low_functions(op):
            for chain in chains_of(function, storage):
                chain.tile()
                statistics.count("chains tiled")
                statistics.count("instructions tiled", len(chain.ops))


def chains_of(function: FuncOp, storage: Storage) -> Iterator[Chain]:
    """The chains of a function to tile: for its memory limit if it has one, else for the cache."""
    target = function.target
    backend = get_backend(target.backend)
    if target.limits.ram_bytes:
        yield from ChainSearch(function.block, backend, storage, target, least=0, must_be_best=False).fitting(function)
    elif target.l2_bytes and target.policy.threads == 1:
        for block in blocks(function):
            yield from ChainSearch(block, backend, storage, target, target.l2_bytes).chains()


def stage_of(op: Operation) -> LineStage | None:
    """The lines that an instruction reads per output line; `None` if it does not compute by lines."""
    if not isinstance(op, DerivedInstruction) or op.prologue is not None:
        return None
    window = op.line_window()
    if window is None or not all(map(has_static_shape, op.operands)) or any(map(moves_of, op.operands)):
        return None
    if not size_of(op.inputs()[0]):
        return None
    return LineStage(window.extent, window.stride, shape_of(op.outputs()[0])[1])


@dataclass(frozen=True)
class Chain:
    """A chain of instructions, each the only reader of the previous one, with its schedule."""

    ops: Sequence[DerivedInstruction]
    links: Sequence[Link]
    schedule: Schedule

    def tile(self) -> None:
        """Replace the instructions by blocks of lines."""
        first, last = self.ops[0], self.ops[-1]
        block = last.parent_block()
        assert block is not None
        gone = {link.root for link in self.links}
        for op in _between(first, last):
            if isinstance(op, DeallocOp) and op.buffer not in gone:
                # The last block still reads the inputs of the first instruction.
                op.detach()
                block.insert_op_after(op, last)
        write_chain(self.ops, self.links, self.schedule)
        for op in (*self.ops, *(fill for link in self.links for fill in link.fills)):
            op.detach()
            op.erase()
        for link in self.links:
            _erase_buffer(link.root)


def _erase_buffer(root: SSAValue) -> None:
    """Erase an allocation with its views and deallocations."""
    for use in list(root.uses):
        if isinstance(use.operation, ViewOp):
            _erase_buffer(use.operation.result)
        else:
            use.operation.detach()
            use.operation.erase()
    assert isinstance(root.owner, Operation)
    root.owner.detach()
    root.owner.erase()


def _between(first: Operation, last: Operation) -> list[Operation]:
    """The ops strictly between two ops."""
    found: list[Operation] = []
    op = first.next_op
    while op is not None and op is not last:
        found.append(op)
        op = op.next_op
    return found


@dataclass(frozen=True)
class ChainSearch:
    """The search for chains in one block."""

    block: Block
    backend: Backend
    storage: Storage
    target: Target
    least: int
    """Images larger than this many bytes are tiled."""
    must_be_best: bool = True
    """Whether tiles must be computed as fast as the whole."""
    known: dict[Operation, bool] = field(default_factory=dict[Operation, bool])
    """Cached answers of the backend."""

    @cached_property
    def accesses(self) -> Accesses:
        """All accesses of the block."""
        return Accesses.of(self.block)

    def chains(self) -> list[Chain]:
        """The chains worth tiling, the longest from each first instruction on."""
        chains: list[Chain] = []
        taken: set[Operation] = set()
        for run in self.runs():
            if run[0].writer in taken:
                continue
            tried = (self.chain(run[:count]) for count in range(len(run), 0, -1))
            if (chain := next((chain for chain in tried if chain is not None), None)) is not None:
                chains.append(chain)
                taken.update(chain.ops)
        return chains

    def runs(self) -> Iterator[list[Link]]:
        """For each link, the longest sequence of links that it starts."""
        links = {link.writer: link for op in own_operations(self.block) if (link := self.link(op)) is not None}
        for link in links.values():
            run = [link]
            while (following := links.get(run[-1].reader)) is not None:
                run.append(following)
            yield run

    def fitting(self, function: FuncOp) -> list[Chain]:
        """
        The chains to tile so that a function, whose body is the block, respects its memory limit; none if it does
        already.
        """
        plan = LinePlan(spans_of(self.accesses), len(self.accesses.positions), capacity_of(function))
        if plan.peak <= plan.limit:
            return []
        pieces = [
            piece for run in self.runs() for count in range(1, len(run) + 1) for piece in self.pieces(run[:count])
        ]
        plan.grow(pieces)
        return [Chain(piece.ops, piece.links, schedule) for piece, schedule in plan.chosen.items()]

    def pieces(self, links: Sequence[Link]) -> Iterator[Piece]:
        """The chain of these links, if it can be tiled."""
        stages = self.stages(links)
        schedules = possible_schedules(stages, [_line_buffer(link) for link in links]) if stages else []
        if schedules:
            ops = _ops_of(links)
            gone = frozenset(link.root for link in links)
            used = frozenset(root_of(value) for op in ops for value in op.operands)
            positions = self.accesses.positions
            yield Piece(ops, links, positions[ops[0]], positions[ops[-1]], gone, used - gone, schedules)

    def link(self, op: Operation) -> Link | None:
        """The link from an instruction to the only reader of its result, if that exceeds the cache."""
        if stage_of(op) is None:
            return None
        assert isinstance(op, DerivedInstruction)
        result = op.outputs()[0]
        root = root_of(result)
        if not isinstance(root.owner, AllocOp) or root.owner.parent is not self.block:
            return None
        if byte_size(root) <= self.least * shape_of(result)[0]:
            return None
        uses = self.accesses.to(root)
        fills = [access.op for access in uses if isinstance(access.op, FillOp)]
        others = [access for access in uses if not isinstance(access.op, FillOp)]
        if len(others) != 2 or others[0].op is not op or not others[0].writes:
            return None
        reader = others[1].op
        whole = others[1].value
        if not isinstance(reader, DerivedInstruction) or not reader.inputs() or reader.inputs()[0] is not whole:
            return None
        if reader not in self.accesses.positions:  # It is inside a loop already.
            return None
        if stage_of(reader) is None or size_of(whole.type) != size_of(root.type):
            return None
        return self._fitting(root, op, reader, tuple(dict.fromkeys(fills)))

    def _fitting(
        self, root: SSAValue, writer: DerivedInstruction, reader: DerivedInstruction, fills: tuple[Operation, ...]
    ) -> Link | None:
        """The link, if the image is the interior of its buffer and the fills are the border."""
        result, whole = writer.outputs()[0], reader.inputs()[0]
        shape, inner = shape_of(whole), shape_of(result)
        strides = strides_of(whole)
        axes = zip(inner, strides_of(result), strides, strict=True)
        even = is_contiguous(whole) and not offset_of(whole) and all(size == 1 or a == b for size, a, b in axes)
        if not even or shape[0] != inner[0] or shape[-1] != inner[-1]:
            return None
        top, rest = divmod(offset_of(result), strides[1])
        left = rest // strides[2]
        targets = [value for fill in fills for value in fill.operands]
        border = size_of(whole.type) - size_of(result.type)
        filled = sum(size_of(value.type) for value in targets if root_of(value) is root)
        values = {fill.value for fill in fills if isinstance(fill, FillOp)}
        if filled != border or len(values) > 1 or any(root_of(value) is not root for value in targets):
            return None
        return Link(root, writer, reader, fills, top, left, next(iter(values), None))

    def chain(self, links: Sequence[Link]) -> Chain | None:
        """The chain of these links, if it can be tiled and that is profitable."""
        stages, buffers, ops = self.stages(links), [_line_buffer(link) for link in links], _ops_of(links)
        schedule = best_schedule(stages, buffers, self.target.l2_bytes // 2) if stages else None
        if schedule is None:
            return None
        batch = shape_of(ops[0].outputs()[0])[0]
        saved = sum(2 * byte_size(link.root) for link in links)
        return Chain(ops, links, schedule) if is_profitable(saved - batch * schedule.moved_bytes()) else None

    def stages(self, links: Sequence[Link]) -> list[LineStage]:
        """The line stages of the instructions of a chain; none if another instruction prevents tiling."""
        ops = _ops_of(links)
        parts: set[Operation] = {*ops, *(fill for link in links for fill in link.fills)}
        passive = (AllocOp, DeallocOp, ViewOp, WeightOp)
        if not all(op in parts or isinstance(op, passive) for op in _between(ops[0], ops[-1])):
            return []
        if not all(self.tiles(op) for op in ops):
            return []
        return [stage for op in ops if (stage := stage_of(op)) is not None]

    def tiles(self, op: DerivedInstruction) -> bool:
        """Whether the backend computes a few lines of an instruction exactly as it does among all."""
        if op not in self.known:
            self.known[op] = self.backend.supports_row_tiling(op, self.storage, self.target, self.must_be_best)
        return self.known[op]


def _ops_of(links: Sequence[Link]) -> list[DerivedInstruction]:
    """The instructions that the links connect."""
    return [links[0].writer, *(link.reader for link in links)]


def _line_buffer(link: Link) -> LineBuffer:
    """The line buffer of a link."""
    _, _, width, channels = shape_of(link.reader.inputs()[0])
    return LineBuffer(link.top, width * channels * byte_width(element_of(link.root)))

"""Stages along rows, one row per block: threads process neighbouring elements, and fold their results together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.block_kernels.tables import kernel
from glow_mlir.codegen.blocks import Block, Private
from glow_mlir.codegen.builder.nests import linear, unraveled
from glow_mlir.codegen.builder.types import type_info, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.folds import fold_for
from glow_mlir.codegen.kernels.expressions.generic import Emission, GenericKernel, RowOperand
from glow_mlir.codegen.kernels.expressions.generic_program import Program, has_positions, initial_of
from glow_mlir.codegen.lines import Line, Lines, lane_range, moved_by
from glow_mlir.codegen.math.narrow import to_memory
from glow_mlir.codegen.matrix_instructions import WARP
from glow_mlir.codegen.scalar_body import emit_scalar_ops
from glow_mlir.codegen.selection.kernel import Buffer, Choice, KernelCall, Tiles
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.stages import IndicesOp, RowType, StageOp, element_at, stages_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir.traversal import own_operations

MAX_THREADS = 128
"""The maximum number of threads of a block."""

MIN_ELEMENTS = 64
"""The minimum number of elements of a row that keeps a warp busy."""

WORD_BITS = 32
"""Bits of a value that threads exchange."""


class BlockRow:
    """The layout of an instruction's rows, and how threads divide a row: `width` neighbours each, in turns."""

    def __init__(self, lines: Lines, target: Target, element: Attribute) -> None:
        self.lines = lines
        extent = lines.along[-1]
        self.extent = extent if isinstance(extent, int) else 0
        width = target.vector_width(element)
        self.width = width if lines.width_limit is None and self.extent % width == 0 else 1
        wanted = max(WARP, min(MAX_THREADS, self.extent // self.width))
        self.threads = 1 << wanted.bit_length() - 1

    @staticmethod
    def of(program: Program, target: Target) -> BlockRow:
        """The rows of a program's instruction."""
        return BlockRow(program.planned_lines(), target, program.element)

    @property
    def turns(self) -> int:
        """How often each thread processes `width` neighbours."""
        return -(-self.extent // (self.width * self.threads))

    @property
    def suits(self) -> bool:
        """Whether rows are long and their elements are neighbours in memory."""
        return len(self.lines.along) == 1 and not self.lines.across and self.extent >= MIN_ELEMENTS


@kernel("block-rows")
class BlockRowsKernel(GenericKernel):
    """Stages of `generic` that all run along rows, some of which fold them: softmax, normalizations."""

    name = "block-rows"
    RUN_TIME_SIZES = False
    SUMMING = ()

    def candidates(self, op: GenericOp | Expressed, storage: Storage, target: Target) -> Sequence[Tiles]:
        if not isinstance(op, Instruction):
            return ({},)
        program = Program.of(op)
        stages = list(stages_of(program.block))
        folds = [element for stage in stages for part in initial_of(stage) for _, element in part]
        able = program.runs_along_lines and folds and not program.runs and not any(map(has_positions, stages))
        able = able and all(type_info(element).bits == WORD_BITS for element in folds)
        return ({},) if able and BlockRow.of(program, target).suits else ()

    def choices(self, op: GenericOp | Expressed, target: Target) -> dict[str, Choice]:
        return {}

    def scratch(self, op: GenericOp | Expressed, target: Target) -> Sequence[Buffer]:
        program = Program.of(op)
        return [((program.kept_size(value),), element_at(value.type)) for value in program.kept]

    def threads(self, op: GenericOp | Expressed, axis: str, target: Target) -> int:
        return BlockRow.of(Program.of(op), target).threads

    def emit(self, call: KernelCall) -> None:
        InBlocks.of(call, Program.of(call.op)).emit()


class InBlocks(Emission):
    """Stages along rows, one row per block."""

    def has_lanes(self, line: Line, row: RowOperand) -> bool:
        return False

    def jump(self, line: Line, row: RowOperand) -> int:
        return 0

    def emit(self) -> None:
        call, program = self.call, self.program
        lines = program.lines(call.extents(program.space), self.strides)
        row = BlockRow(lines, call.target, program.element)
        block = Block.of(self.b, row.threads)
        count = 1
        for extent in lines.outer:
            assert isinstance(extent, int)
            count *= extent
        run = RowRun(self, row, block)
        with self.b.loop(*call.share("lines").of(count)) as number:
            indices = unraveled(number, lines.outer)
            starts = [self.b.index(linear(indices, steps)) for steps in lines.outer_steps]
            run.run(Line(self.b, lines, list(starts), 1, row.width))


class RowRun:
    """The stages of one row. Each thread recomputes scalars where it needs them."""

    def __init__(self, emission: InBlocks, row: BlockRow, block: Block) -> None:
        self.emission, self.row, self.block, self.b = emission, row, block, emission.b
        self.folds: dict[SSAValue, Private] = {}
        """Result of a stage → the memory that holds it for each thread."""
        self.memory = block.shared(16 * row.threads // WARP, WORD_BITS // 8) if row.threads > WARP else None

    def run(self, line: Line) -> None:
        """Run the stages along a row, and store the result if it is a single element."""
        emission, result = self.emission, self.emission.program.result
        for op in own_operations(emission.program.block):
            if isinstance(op, StageOp):
                self._stage(line, op)
        if isinstance(result.type, RowType):
            return
        with self.block.each_thread() as thread, self.b.when(thread.eq(0)):
            stored = to_memory(self.b, self._scalars(line, thread)[result], result.type)
            line.store(emission.sink_numbers, emission.sink, line.starts, stored)

    def _scalars(self, line: Line, thread: Value, before: StageOp | None = None) -> dict[SSAValue, Value]:
        """The scalars that a thread knows before a stage; by default, after all stages."""
        found: dict[SSAValue, Value] = {}
        self.emission.read_scalars(line, found)
        for op in own_operations(self.emission.program.block):
            if op is before:
                break
            if isinstance(op, StageOp):
                found |= {value: self.folds[value].load(thread) for value in op.results if value in self.folds}
            elif op.results and not isinstance(op, IndicesOp):
                emit_scalar_ops(self.b, [op], found, 1)
        return found

    def _stage(self, line: Line, stage: StageOp) -> None:
        """Run a stage: each thread processes its elements of the row, then the results of all threads are folded."""
        b, row, block = self.b, self.row, self.block
        initial = [first for (first,) in initial_of(stage)]
        partial = [block.private(vector(element, row.width), 1) for _, element in initial]
        results = [block.private(element, 1) for _, element in initial]
        steps = [operand[-1] for operand in line.lines.along_steps]
        with block.each_thread() as thread:
            for memory, (number, _) in zip(partial, initial, strict=True):
                memory.store(thread, number)
            step = self.emission.step(line, stage, self._scalars(line, thread, stage))
            with b.loop(0, row.turns) as turn:
                position = (turn * row.threads + b.index(thread)) * row.width
                with b.when(position < row.extent):
                    offsets = [moved_by(start, position, s) for start, s in zip(line.starts, steps, strict=True)]
                    values = step(position, offsets, row.width, [memory.load(thread) for memory in partial])
                    for memory, value in zip(partial, values, strict=True):
                        memory.store(thread, value)
            for word, memory, result in zip(stage.words, partial, results, strict=True):
                result.store(thread, self._lanes_folded(word, memory.load(thread)))
        for word, value, result in zip(stage.words, stage.results, results, strict=False):
            self._fold(word, result)
            self.folds[value] = result

    def _lanes_folded(self, word: str, value: Value) -> Value:
        """Fold the lanes of a vector into one, by halves."""
        while value.lanes > 1:
            half = value.lanes // 2
            parts = [lane_range(self.b, value, first, half) for first in (0, half)]
            (value,) = fold_for(word, value.info.element).join(self.b, *([part] for part in parts))
        return value

    def _fold(self, word: str, result: Private) -> None:
        """
        Fold the results of all threads, so that each thread has the total: by halves in each warp, then across warps.
        """
        b, block, fold = self.b, self.block, fold_for(word, result.element)
        other = block.private(result.element, 1)
        distance = WARP // 2
        while distance:
            block.exchange(result, other, distance)
            with block.each_thread() as thread:
                result.store(thread, *fold.join(b, [result.load(thread)], [other.load(thread)]))
            distance //= 2
        if self.memory is None:
            return
        with block.each_thread() as thread, b.when((thread % WARP).eq(0)):
            self.memory.store(thread, thread // WARP * 4, result.load(thread))
        block.barrier()
        with block.each_thread() as thread:
            warps = [self.memory.load(thread, 4 * warp, result.element) for warp in range(block.threads // WARP)]
            total = warps[0]
            for value in warps[1:]:
                (total,) = fold.join(b, [total], [value])
            result.store(thread, total)
        block.barrier()

"""
One tile of a product in a block of 128 threads: 64 rows and 64 columns, with 64 bytes of the depth per stage.

Both sides lie in shared memory as rows along the depth, 80 bytes apart, so that neither matrix fragments nor vectors of
16 bytes conflict in a bank. There are two stages: one is read while the other one is filled. The accumulators pass
through shared memory at the end, so that each store is 16 bytes of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

from xdsl.ir import Attribute

from glow_mlir.codegen.block_kernels.product_view import ACCESS, ProductView
from glow_mlir.codegen.blocks import Block, Private, Shared
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import linear, unraveled
from glow_mlir.codegen.builder.types import i32, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.math.half import loaded_as, to_accumulators
from glow_mlir.codegen.matrix_instructions import WARP, MatrixInstruction
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.element_types import is_float, signless
from glow_mlir.support.dataclass import dataclass

THREADS = 128
"""Threads of a block."""

BLOCK_ROWS = BLOCK_COLUMNS = 64
"""The size of the tile that a block computes."""

WARP_ROWS = WARP_COLUMNS = 32
"""The part of the tile that a warp computes by matrix instructions; the four warps form a grid of 2 x 2."""

DEPTH_BYTES = 64
"""Bytes along the depth in a stage."""

PITCH = DEPTH_BYTES + ACCESS
"""Bytes from row to row in shared memory."""

SIDE = BLOCK_ROWS * PITCH
"""Bytes of one side of a stage."""

STAGE = 2 * SIDE

WORD = 4

ACCUMULATORS_PITCH = WORD * (BLOCK_COLUMNS + 4)
"""Bytes from row to row of the accumulators in shared memory."""

UNROLLED = 8
"""The maximum number of iterations of a thread that are unrolled."""

ROWS_A_THREAD, COLUMNS_A_THREAD = 8, 4
"""The accumulators of a thread that multiplies without matrix instructions."""


@dataclass(frozen=True)
class BlockProduct:
    """The emission of one product."""

    call: KernelCall
    view: ProductView
    instruction: MatrixInstruction | None
    """The matrix instruction; `None` if threads multiply without one."""
    copies: bool
    """Whether global memory is copied to shared memory without registers in between."""
    splits: int = 1
    """The number of splits of the depth; if there are several, a later phase adds up their accumulators."""

    @staticmethod
    def tiles(view: ProductView) -> int:
        """The number of tiles."""
        return math.prod(view.batch) * -(-view.row_count // BLOCK_ROWS) * -(-view.columns // BLOCK_COLUMNS)

    @staticmethod
    def stages(view: ProductView) -> int:
        """The number of stages along the depth."""
        return -(-view.depth * view.element_bytes // DEPTH_BYTES)

    @staticmethod
    def quads(view: ProductView) -> int:
        """The number of groups of four neighbours in a row; the last group of a row may be smaller."""
        return math.prod(view.batch) * view.row_count * -(-view.columns // 4)

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    @cached_property
    def block(self) -> Block:
        """The threads."""
        return Block.of(self.b, THREADS)

    @cached_property
    def memory(self) -> Shared:
        """Both stages; later the accumulators."""
        return self.block.shared(max(2 * STAGE, BLOCK_ROWS * ACCUMULATORS_PITCH), self.view.element_bytes)

    @property
    def total(self) -> Attribute:
        """The element type of the accumulators."""
        return signless(self.view.signature.accumulator)

    @cached_property
    def accumulators(self) -> Private:
        """The accumulators of each thread."""
        return self.block.private(self.total, ROWS_A_THREAD * COLUMNS_A_THREAD)

    def emit(self) -> None:
        """Compute this task's slice of the tiles."""
        view, b = self.view, self.b
        down, across = -(-view.row_count // BLOCK_ROWS), -(-view.columns // BLOCK_COLUMNS)
        loads = Loads(self)
        _ = self.accumulators, self.memory
        tiles, each = self.tiles(view), -(-self.stages(view) // self.splits)
        with b.loop(*self.call.share("tiles").of(tiles * self.splits)) as number:
            tile, split = number % tiles, number // tiles
            column = b.cast(tile % across * BLOCK_COLUMNS, i32)
            row = b.cast(tile // across % down * BLOCK_ROWS, i32)
            batch = [b.cast(b.index(index), i32) for index in unraveled(tile // (across * down), view.batch)]
            loads.begin(batch, row, column)
            first = split * each
            self._multiply(loads, first, b.min(first + each, self.stages(view)))
            self._store(batch, row, column, split)
            self.block.barrier()

    def emit_accumulators(self) -> None:
        """Add up the accumulators of all splits; each thread handles four neighbours of a row."""
        b, view = self.b, self.view
        across = -(-view.columns // 4)
        with b.loop(*self.call.share("sums").of(self.quads(view))) as number:
            column, row = b.cast(number % across * 4, i32), b.cast(number // across % view.row_count, i32)
            outer = unraveled(number // (across * view.row_count), view.batch)
            batch = [b.cast(b.index(index), i32) for index in outer]
            total = self._partial(batch, row, column, b.constant(0, i32))
            for split in range(1, self.splits):
                total = total + self._partial(batch, row, column, b.constant(split, i32))
            self._store_quad(batch, row, column, total)

    def _partial_address(self, batch: Sequence[Value], row: Value, column: Value, split: Value) -> Value:
        """The address of accumulators of one split, whose rows are padded to a multiple of four."""
        view, across = self.view, -(-self.view.columns // 4) * 4
        steps = [math.prod(view.batch[axis + 1 :]) for axis in range(len(view.batch))]
        outer = split * math.prod(view.batch) + linear(batch, steps)
        offset = (outer * view.row_count + row) * across + column
        return self.call.many("scratch")[0].pointer.at(self.b.index(offset), self.total)

    def _partial(self, batch: Sequence[Value], row: Value, column: Value, split: Value) -> Value:
        """Load four accumulators of one split."""
        return self._partial_address(batch, row, column, split).load(vector(self.total, 4))

    def _multiply(self, loads: Loads, first: Value, last: Value) -> None:
        """Multiply the stages from `first` to before `last` along the depth."""
        b, block, elements = self.b, self.block, DEPTH_BYTES // self.view.element_bytes
        with block.each_thread() as thread:
            self.accumulators.fill(thread, 0)
        loads.fill(b.cast(first, i32) % 2 * STAGE, b.cast(first, i32) * elements)
        loads.finish()
        with b.loop(first, last) as step:
            number = b.cast(step, i32)
            stage, other = number % 2 * STAGE, (number + 1) % 2 * STAGE
            loads.fill(other, (number + 1) * elements)
            self._by_instructions(stage) if self.instruction else self._by_threads(stage)
            loads.finish()

    def _by_threads(self, stage: Value) -> None:
        """Multiply a stage without matrix instructions: each thread handles rows 8 apart and columns 16 apart."""
        b, view, memory, accumulators = self.b, self.view, self.memory, self.accumulators
        across = BLOCK_COLUMNS // COLUMNS_A_THREAD
        down = BLOCK_ROWS // ROWS_A_THREAD
        with self.block.each_thread() as thread:
            row, column = thread // across, thread % across

            def read(index: Index, side: int, element: Attribute, part: Value) -> list[Value]:
                type_ = vector(loaded_as(element), ACCESS // view.element_bytes)
                loaded = memory.load(thread, stage + (part * ACCESS + (index * PITCH + side)), type_)
                wide = to_accumulators(b, loaded, element, self.total)
                return [b.extract(wide, lane) for lane in range(wide.lanes)]

            with b.loop(0, DEPTH_BYTES // ACCESS) as chunk:
                part = b.cast(chunk, i32)
                left = [read(row + down * i, 0, view.signature.left, part) for i in range(ROWS_A_THREAD)]
                for j in range(COLUMNS_A_THREAD):
                    right = read(column + across * j, SIDE, view.signature.right, part)
                    for i, factors in enumerate(left):
                        number = i * COLUMNS_A_THREAD + j
                        total = accumulators.load(thread, number)
                        for x, y in zip(factors, right, strict=True):
                            total = b.fma(x, y, total) if is_float(self.total) else total + x * y
                        accumulators.store(thread, total, number)

    def _by_instructions(self, stage: Value) -> None:
        """Multiply a stage by matrix instructions: each warp multiplies fragments."""
        instruction, block, memory = self.instruction, self.block, self.memory
        assert instruction is not None
        down, across = WARP_ROWS // instruction.rows, WARP_COLUMNS // 8
        left = block.private(i32, down * instruction.left_words)
        right = block.private(i32, across * instruction.right_words)
        for first in range(0, DEPTH_BYTES // WORD, instruction.words):
            with block.each_thread() as thread:
                position = ThreadPosition.of(thread)
                for i in range(down):
                    for number in range(instruction.left_words):
                        half, part = number % (instruction.rows // 8), number // (instruction.rows // 8)
                        row = position.warp_row + (position.group + (i * instruction.rows + 8 * half))
                        offset = row * PITCH + (position.lane * WORD + (first + 4 * part) * WORD)
                        word = memory.load(thread, stage + offset, i32)
                        left.store(thread, word, i * instruction.left_words + number)
                for j in range(across):
                    for part in range(instruction.right_words):
                        row = position.warp_column + (position.group + 8 * j)
                        offset = row * PITCH + (position.lane * WORD + ((first + 4 * part) * WORD + SIDE))
                        word = memory.load(thread, stage + offset, i32)
                        right.store(thread, word, j * instruction.right_words + part)
            for i in range(down):
                for j in range(across):
                    block.multiply_add(
                        instruction,
                        (self.accumulators, (i * across + j) * instruction.accumulators),
                        (left, i * instruction.left_words),
                        (right, j * instruction.right_words),
                    )

    def _accumulator_positions(self, thread: Value) -> list[tuple[Value, Value]]:
        """Row and column in the tile of each accumulator of a thread."""
        instruction = self.instruction
        if instruction is None:
            across, down = BLOCK_COLUMNS // COLUMNS_A_THREAD, BLOCK_ROWS // ROWS_A_THREAD
            row, column = thread // across, thread % across
            return [
                (row + down * i, column + across * j) for i in range(ROWS_A_THREAD) for j in range(COLUMNS_A_THREAD)
            ]
        position = ThreadPosition.of(thread)
        return [
            (
                position.warp_row + (position.group + (i * instruction.rows + 8 * (number // 2))),
                position.warp_column + (position.lane * 2 + (8 * j + number % 2)),
            )
            for i in range(WARP_ROWS // instruction.rows)
            for j in range(WARP_COLUMNS // 8)
            for number in range(instruction.accumulators)
        ]

    def _store(self, batch: Sequence[Value], row: Value, column: Value, split: Value) -> None:
        """
        Move the accumulators through shared memory, then store them: through the epilogue to the result, or to the
        scratch buffer if the depth is split.
        """
        b, block, memory = self.b, self.block, self.memory
        with block.each_thread() as thread:
            for number, (i, j) in enumerate(self._accumulator_positions(thread)):
                memory.store(thread, i * ACCUMULATORS_PITCH + j * WORD, self.accumulators.load(thread, number))
        block.barrier()
        quads = BLOCK_COLUMNS // 4
        with block.each_thread() as thread, b.loop(0, BLOCK_ROWS * quads // THREADS) as turn:
            number = thread + b.cast(turn, i32) * THREADS
            i, j = number // quads, number % quads * 4
            accumulators = memory.load(thread, i * ACCUMULATORS_PITCH + j * WORD, vector(self.total, 4))
            with b.when((row + i < self.view.row_count) & (column + j < self.view.columns)):
                if self.splits == 1:
                    self._store_quad(batch, row + i, column + j, accumulators)
                else:
                    self._partial_address(batch, row + i, column + j, b.cast(split, i32)).store(accumulators)

    def _store_quad(self, batch: Sequence[Value], row: Value, column: Value, accumulators: Value) -> None:
        """Store four neighbours of a row, as far as they exist; the first one always does."""
        b, view, sink = self.b, self.view, Sink.of(self.call)
        outer = [*batch, *unraveled(row, view.rows)]
        starts = [linear(outer, strides[:-1]) for strides in sink.strides]
        steps = [strides[-1] for strides in sink.strides]
        bias = self.call.maybe("bias")

        def store(first: Value, value: Value) -> None:
            if bias is not None:
                value = value + bias.pointer.at(first, self.total).load(value.type)
            sink.store(
                b, [b.index(start + first * step) for start, step in zip(starts, steps, strict=True)], steps, value
            )

        if view.columns % 4 == 0 and all(step in (0, 1) for step in steps):
            store(column, accumulators)
            return
        for lane in range(4):
            with b.when(column + lane < view.columns):
                store(column + lane, b.extract(accumulators, lane))


@dataclass(frozen=True)
class ThreadPosition:
    """
    Where a thread is in the tile of its block: its warp, its group of four within the warp, its lane in the group.
    """

    warp_row: Value
    warp_column: Value
    group: Value
    lane: Value

    @staticmethod
    def of(thread: Value) -> ThreadPosition:
        """The position of a thread."""
        warp = thread // WARP
        return ThreadPosition(warp % 2 * WARP_ROWS, warp // 2 * WARP_COLUMNS, thread % WARP // 4, thread % 4)


class Loads:
    """Fills the stages of a tile."""

    def __init__(self, product: BlockProduct) -> None:
        self._product, self._view, self._b, self._block = product, product.view, product.b, product.block
        view = self._view
        self._along = DEPTH_BYTES // view.left_access
        self._apart = THREADS // self._along
        self._rows = BLOCK_ROWS // self._apart
        self._starts = self._block.private(i32, self._rows) if self._rows <= UNROLLED else None
        self._batch: Sequence[Value] = ()
        self._first: tuple[Value, Value] | None = None

    def begin(self, batch: Sequence[Value], row: Value, column: Value) -> None:
        """Begin a tile, at a row and a column of a batch."""
        self._batch, self._first = batch, (row, column)
        if self._starts is not None:
            with self._block.each_thread() as thread:
                for number in range(self._rows):
                    self._starts.store(thread, self._start(thread, number), number)

    def _start(self, thread: Value, number: Index) -> Value:
        """The offset at which a row begins in the left operand; -1 for a row that does not exist."""
        b, view = self._b, self._view
        assert self._first is not None
        index = self._first[0] + (thread // self._along + number * self._apart)
        start = linear(unraveled(index, view.rows), view.row_left) + linear(self._batch, view.batch_left)
        return b.select(index < view.row_count, b.as_value(start, i32), -1)

    def fill(self, stage: Value, depth: Value) -> None:
        """Fill a stage from a depth on, with zeros beyond the end of the depth."""
        operands, view = self._product.call.operands, self._view
        names = ("input", "filter") if view.is_convolution else ("left", "right")
        left, right = (operands[name][0].pointer for name in names)
        self._fill_left(stage, depth, left)
        fill = self._fill_by_depth if view.right_depth == 1 else self._fill_by_columns
        fill(stage, depth, right, linear(self._batch, view.batch_right))

    def finish(self) -> None:
        """Wait until one stage is filled and the other one has been read."""
        if self._product.copies:
            self._block.wait_for_copies()
        self._block.barrier()

    def _each(self, count: int, body: Callable[[Index], None]) -> None:
        """Emit `count` iterations: unrolled if they are few, else as a loop."""
        if count <= UNROLLED:
            for number in range(count):
                body(number)
            return
        with self._b.loop(0, count) as turn:
            body(self._b.cast(turn, i32))

    def _fill_left(self, stage: Value, depth: Value, left: Value) -> None:
        view, access = self._view, self._view.left_access
        width = access // view.element_bytes
        with self._block.each_thread() as thread:
            at = depth + thread % self._along * width
            taps = unraveled(at // view.run, view.taps) if view.taps else []
            moved = linear(taps, view.tap_left) + at % view.run * view.run_left if view.taps else at * view.run_left

            def row(number: Index) -> None:
                start = self._start(thread, number) if self._starts is None else self._starts.load(thread, number)
                target = (thread // self._along + number * self._apart) * PITCH + thread % self._along * access
                self._move(thread, stage + target, (left, start + moved), (start >= 0) & (at < view.depth), access)

            self._each(self._rows, row)

    def _fill_by_depth(self, stage: Value, depth: Value, right: Value, outer: Index) -> None:
        """Fill the right side: neighbouring threads read neighbours along the depth."""
        view, access = self._view, self._view.right_access
        along = DEPTH_BYTES // access
        assert self._first is not None
        first = self._first[1]
        with self._block.each_thread() as thread:
            at = depth + thread % along * (access // view.element_bytes)

            def row(number: Index) -> None:
                line = thread // along + number * (THREADS // along)
                exists = (first + line < view.columns) & (at < view.depth)
                source = right, (first + line) * view.right_column + at + outer
                self._move(thread, stage + (line * PITCH + (thread % along * access + SIDE)), source, exists, access)

            self._each(BLOCK_COLUMNS * along // THREADS, row)

    def _fill_by_columns(self, stage: Value, depth: Value, right: Value, outer: Index) -> None:
        """
        Fill the right side: neighbouring threads read neighbours along the columns, which belong to separate rows.
        """
        b, view = self._b, self._view
        width = view.right_access // view.element_bytes
        across, elements = BLOCK_COLUMNS // width, DEPTH_BYTES // view.element_bytes
        element = loaded_as(view.signature.right)
        assert self._first is not None
        column = self._first[1]
        with self._block.each_thread() as thread:
            first = thread % across * width

            def row(number: Index) -> None:
                line = thread // across + number * (THREADS // across)
                start = (depth + line) * view.right_depth + (column + first) * view.right_column + outer
                exists = (column + first < view.columns) & (depth + line < view.depth)
                loaded = self._read(right.at(b.index(start), element), vector(element, width), exists)
                for lane in range(width):
                    offset = stage + ((first + lane) * PITCH + (line * view.element_bytes + SIDE))
                    self._product.memory.store(thread, offset, b.extract(loaded, lane))

            self._each(elements * across // THREADS, row)

    def _move(self, thread: Value, offset: Value, source: tuple[Value, Value], exists: Value, access: int) -> None:
        """Copy `access` bytes to shared memory; zeros if the source does not exist."""
        b, element = self._b, loaded_as(self._view.element)
        pointer, start = source
        if access == ACCESS and self._product.copies:
            address = pointer.at(b.index(b.select(exists, start, 0)), element)
            self._block.copy(thread, (self._product.memory, offset), address, exists)
            return
        type_ = vector(element, access // self._view.element_bytes)
        self._product.memory.store(thread, offset, self._read(pointer.at(b.index(start), element), type_, exists))

    def _read(self, address: Value, type_: Attribute, exists: Value) -> Value:
        """Load from an address, which is a multiple of the size; zeros if it does not exist."""
        b, info = self._b, type_info(type_)
        align = info.lanes * info.bytes_in_memory
        (value,) = b.either(exists, lambda: [address.load(type_, align)], lambda: [b.constant(0, type_)])
        return value

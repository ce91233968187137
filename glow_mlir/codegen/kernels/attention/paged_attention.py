"""
The kernel of attention to pages: keys and values are read in place, in any type of cache, and computed in f32.

    for each head of keys, for each run of rows { for each chunk of tokens { scores; exponentials; sums of values } }

A run is some neighbouring rows whose tokens are neighbours in one sequence, such as those of a prompt: they share what
is loaded. Each number of a row is computed by the same operations, in the same order, however rows form runs, and
chunks begin at multiples of their size: results of a row do not depend on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f32

from glow_mlir.codegen.access import load, read_index
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, chunks, vector_loop
from glow_mlir.codegen.builder.types import i8, i32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.attention.page_tables import FoundPages, PageTables
from glow_mlir.codegen.kernels.attention.score_lines import soften
from glow_mlir.codegen.kernels.products.tiles import line_elements
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.pages import PagedAttentionOp
from glow_mlir.dialects.glow_low.memory import has_unit_stride
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import is_empty, shape_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

UNROLLED = 4
"""Elements of a key whose products are one step of a loop."""


def power_below(number: int) -> int:
    """Return the largest power of two that is not above a number, at least 1."""
    return 1 << max(0, number.bit_length() - 1)


@dataclass(frozen=True)
class Plan:
    """Sizes and choices for one instruction on a target; none of them depends on the number of rows."""

    heads: int
    """The number of heads of keys."""
    group: int
    """The number of heads of queries that share one of keys."""
    depth: int
    width: int
    """The number of elements of a value."""
    block: int
    """The number of tokens of a page."""
    lanes: int
    """The lanes of whole vectors."""
    key_lanes: int
    """The lanes of vectors of keys, which lie within pages."""
    accumulators: int
    """Vectors of sums in registers."""
    rows: int
    """The largest number of rows of a run."""
    chunk: int
    """The number of tokens of a chunk, a power of two: their scores fit in half of the L1 cache."""
    window: int
    scale: float
    softcap: float

    @staticmethod
    def of(op: PagedAttentionOp, target: Target) -> Plan:
        """Return the plan for an operator or its instruction."""
        _, queries, depth = sizes_of(op.query)
        _, heads, _, block = shape_of(op.keys)
        queries, depth, width = static((queries, depth, sizes_of(op.values)[3]))
        group, lanes, registers = queries // heads, target.vector_width(f32), target.vector_registers
        rows = max(1, kernel_costs(target).paged_queries // group)
        key_lanes = min(lanes, block & -block)
        scores = target.l1_bytes // 2 // 4 // (rows * group)
        plan = Plan(
            heads,
            group,
            depth,
            width,
            block,
            lanes,
            key_lanes,
            accumulators=power_below(registers // 2),
            rows=rows,
            chunk=power_below(scores),
            window=integer(op.window),
            scale=float(number(op.scale)),
            softcap=float(number(op.softcap)),
        )
        return replace(plan, chunk=max(plan.chunk, lanes * plan.vectors(1)))

    @property
    def lines(self) -> int:
        """The largest number of queries whose sums are in registers: two vectors of each."""
        return min(8, max(1, self.accumulators // 2))

    def vectors(self, lines: int) -> int:
        """The largest number of vectors of sums of each of so many queries."""
        return min(4, max(1, self.accumulators // max(lines, 4)))

    @property
    def scratch(self) -> Mapping[str, Buffer]:
        """The scratch buffers of a worker, by name."""
        lines = self.rows * self.group
        return {
            "queries": ((lines, max(1, self.depth)), f32),
            "scores": ((lines, self.chunk), f32),
            "sums": ((lines, max(1, self.width)), f32),
            "peaks": ((lines,), f32),
            "totals": ((lines,), f32),
            "pages": ((self.chunk // self.block + 2,), i32),
        }


@kernel("paged-attention")
class PagedAttentionKernel(Kernel[PagedAttentionOp]):
    """Attention to keys and values in pages; parts have some of the rows of some heads of keys."""

    name = "paged-attention"
    AXES = ("rows",)
    RUN_TIME_SIZES = True

    def accepts(self, op: PagedAttentionOp) -> bool:
        scales = [value for value in (op.key_scales, op.value_scales) if value is not None]
        return all(map(has_unit_stride, (op.query, op.keys, op.values, op.result, *scales))) and not is_empty(op.keys)

    def scratch(self, op: PagedAttentionOp, target: Target) -> Sequence[Buffer]:
        return [*Plan.of(op, target).scratch.values()]

    def private(self, op: PagedAttentionOp) -> Sequence[int]:
        return range(6)

    def cuts(self, op: PagedAttentionOp, target: Target) -> Mapping[str, int]:
        return {"rows": shape_of(op.query)[0] * shape_of(op.keys)[1]}

    def emit(self, call: KernelCall[PagedAttentionOp]) -> None:
        b, plan = call.b, Plan.of(call.op, call.target)
        rows = b.index(call.one("query").extents[0])
        begin, end = map(b.index, call.share("rows").of(rows * plan.heads))
        tables = PageTables(call, call.one("keys").extents[0], plan.block)
        scratch = dict(zip(plan.scratch, call.many("scratch"), strict=True))

        def run(step: Value) -> Sequence[Value]:
            head, first = step // rows, step % rows
            position = tables.position_of(first)
            limit = b.min(b.min(rows - first, end - step), b.min(tables.tokens - position, plan.rows))
            count = _neighbours(call, first, limit)
            length = None if call.maybe("lengths") is None else tables.length_of(first, position)
            _Run(call, plan, tables, scratch, head, first, count, position, length).emit()
            return [step + count]

        def is_left(step: Value) -> Value:
            return step < end

        b.repeat([begin], run, is_left)


def _neighbours(call: KernelCall[PagedAttentionOp], first: Value, limit: Value) -> Value:
    """Return how many rows from `first` on, at most `limit`, have neighbouring tokens of one sequence."""
    b = call.b
    sequences, positions = call.one("sequences"), call.one("positions")

    def at(operand: Operand, row: Value) -> Value:
        return read_index(b, operand, row * operand.strides[0])

    sequence, position = at(sequences, first), at(positions, first)
    with b.loop(1, limit, carried=[b.index(1)]) as loop:
        row, so_far = first + loop.index, loop.values[0]
        is_next = at(positions, row).eq(position + b.cast(loop.index, position.type))
        is_next = is_next & at(sequences, row).eq(sequence) & so_far.eq(loop.index)
        loop.set(b.select(is_next, so_far + 1, so_far))
    # Padding has no tokens.
    return b.select(position < 0, 1, loop.results[0])


@dataclass(frozen=True)
class _Run:
    """Emits the code of `count` rows from `first` on, whose tokens are neighbours, for one head of keys."""

    call: KernelCall[PagedAttentionOp]
    plan: Plan
    tables: PageTables
    scratch: Mapping[str, Operand]
    head: Value
    first: Value
    count: Value
    position: Value
    """The position of the first row; negative for padding."""
    length: Value | None
    """The number of tokens of the sequence, if rows see those behind them."""

    @property
    def b(self) -> Builder:
        return self.call.b

    def _line(self, name: str, line: Index, offset: Index = 0) -> Value:
        """Return the address of an element of a scratch buffer, in a line of it."""
        buffer = self.scratch[name]
        return buffer.pointer.at(line * buffer.strides[0] + offset, buffer.element)

    def _address(self, operand: Operand, line: Index) -> Value:
        """Return the address of the elements of a line in the query or the result."""
        row, head = self.first + line // self.plan.group, self.head * self.plan.group + line % self.plan.group
        return operand.pointer.at(row * operand.strides[0] + head * operand.strides[1], f32)

    def emit(self) -> None:
        """Compute the results: 0 for padding."""
        self.b.either(self.position < 0, self._pad, self._attend)

    def _pad(self) -> Sequence[Value]:
        def clear(line: Value, column: Index, lanes: int) -> None:
            zeros = self.b.constant(0.0, vector(f32, lanes))
            self._address(self.call.result, line).at(column, f32).store(zeros)

        self._over_lines(self.plan.width, clear)
        return ()

    def _over_lines(self, columns: int, body: Callable[[Value, Index, int], None]) -> None:
        """Run `body(line, column, lanes)` for vectors of all lines."""
        b = self.b
        with b.loop(0, self.count * self.plan.group) as line:
            vector_loop(b, columns, self.plan.lanes, lambda column, lanes: body(line, column, lanes))

    def _attend(self) -> Sequence[Value]:
        b, plan = self.b, self.plan
        self._begin()
        first = b.max(self.position + (1 - plan.window), 0) if plan.window else b.index(0)
        end = self._end(self.count - 1)
        with b.loop(first // plan.chunk * plan.chunk, end, plan.chunk) as start:
            from_, until = b.max(start, first), b.min(start + plan.chunk, end)
            found = self.tables.found(self._line("pages", 0), self.first, start, (from_, until))
            self._scores(found, from_ - start, until - start)
            self._soften(start)
            self._sum(found)

        def finish(line: Value, column: Index, lanes: int) -> None:
            total = self._line("totals", line).load(f32)
            sums = self._line("sums", line, column).load(vector(f32, lanes))
            self._address(self.call.result, line).at(column, f32).store(sums * (1.0 / total))

        self._over_lines(plan.width, finish)
        return ()

    def _begin(self) -> None:
        """Copy the scaled queries, and start peaks, totals and sums: a sink is a score from the beginning."""
        b, sinks = self.b, self.call.maybe("sinks")

        def copy(line: Value, column: Index, lanes: int) -> None:
            x = self._address(self.call.one("query"), line).at(column, f32).load(vector(f32, lanes))
            self._line("queries", line, column).store(x * self.plan.scale)

        def clear(line: Value, column: Index, lanes: int) -> None:
            self._line("sums", line, column).store(b.constant(0.0, vector(f32, lanes)))

        self._over_lines(self.plan.depth, copy)
        self._over_lines(self.plan.width, clear)
        with b.loop(0, self.count * self.plan.group) as line:
            peak, total = b.constant(-math.inf, f32), b.constant(0.0, f32)
            if sinks is not None:
                head = self.head * self.plan.group + line % self.plan.group
                peak, total = load(b, sinks, head * sinks.strides[0], 1, 1), b.constant(1.0, f32)
            self._line("peaks", line).store(peak)
            self._line("totals", line).store(total)

    def _end(self, row: Index) -> Value:
        """Return the position behind the last token that a row sees."""
        if self.length is None:
            return self.position + row + 1
        return self.b.min(self.position + row + self.plan.window, self.length) if self.plan.window else self.length

    def _seen(self, start: Value, row: Index) -> tuple[Value, Value]:
        """Return the tokens of the chunk at `start` that a row sees, counted from there: maybe none."""
        b, window = self.b, self.plan.window
        end = b.min(self._end(row) - start, self.plan.chunk)
        return (b.max(self.position + row + 1 - window - start, 0) if window else b.index(0)), end

    # ---- scores

    def _scores(self, found: FoundPages, begin: Value, end: Value) -> None:
        """Compute the products of all queries with the keys of the tokens of a chunk, in whole vectors."""
        b, plan = self.b, self.plan
        for first, behind, count in chunks(self.count * plan.group, plan.lines):
            step = plan.vectors(count) * plan.key_lanes
            with b.loop(first, behind, count) as line, b.loop(begin // step * step, end, step) as token:
                operand = self.call.one("keys")
                tokens = [token + v * plan.key_lanes for v in range(plan.vectors(count))]
                keys = [self._from(operand, found, first_token) for first_token in tokens]
                lines = range(step, 2 * step, line_elements(b.target, operand.element))
                ahead = [self._from(operand, found, token + line_start) for line_start in lines]
                scales = self.call.maybe("key_scales")
                factors = None
                if scales is not None:
                    type_ = vector(f32, plan.key_lanes)
                    factors = [self._from(scales, found, first_token).load(type_) for first_token in tokens]
                self._products(keys, factors, ahead, line, count, token)

    def _from(self, operand: Operand, found: FoundPages, token: Value) -> Value:
        """Return the address of the keys, or of their scales, from a token on."""
        page, slot = found.slot_of(token)
        offset = page * operand.strides[0] + self.head * operand.strides[1] + slot
        return operand.pointer.at(offset, operand.element)

    def _products(
        self,
        keys: Sequence[Value],
        factors: Sequence[Value] | None,
        ahead: Sequence[Value],
        line: Value,
        count: int,
        token: Value,
    ) -> None:
        """
        Store the products of `count` queries with some vectors of keys, times their factors if there are any.

        Those `ahead`, which come next, are fetched.
        """
        b, plan, operand = self.b, self.plan, self.call.one("keys")
        type_ = vector(f32, plan.key_lanes)
        sums = [b.constant(0.0, type_) for _ in range(count * len(keys))]
        query = self._line("queries", line)
        for start, stop, width in chunks(plan.depth, UNROLLED):
            with b.loop(start, stop, width, carried=sums) as loop:
                found = list(loop.values)
                for d in range(width):
                    for address in ahead:
                        b.prefetch(address.at((loop.index + d) * operand.strides[2], operand.element))
                    found = self._added(found, keys, query, loop.index + d)
                loop.set(*found)
            sums = loop.results
        for number_, total in enumerate(sums):
            own, v = divmod(number_, len(keys))
            score = total if factors is None else total * factors[v]
            self._line("scores", line + own, token + v * plan.key_lanes).store(score)

    def _added(self, sums: Sequence[Value], keys: Sequence[Value], query: Value, d: Value) -> list[Value]:
        """Return the sums with the products of one element of the keys added."""
        b, plan, operand = self.b, self.plan, self.call.one("keys")
        moved = [replace(operand, pointer=key) for key in keys]
        vectors = [b.cast(load(b, key, d * operand.strides[2], 1, plan.key_lanes), f32) for key in moved]
        added: list[Value] = []
        for own in range(len(sums) // len(keys)):
            factor = b.splat(query.at(d + own * plan.depth, f32).load(f32), plan.key_lanes)
            added += [b.fma(x, factor, sums[own * len(keys) + v]) for v, x in enumerate(vectors)]
        return added

    # ---- weights

    def _soften(self, start: Value) -> None:
        """Replace the scores of each line by weights, and make what is summed up so far fit to them."""
        b, plan = self.b, self.plan
        with b.loop(0, self.count) as row:
            begin, end = self._seen(start, row)
            with b.when(begin < end), b.loop(row * plan.group, (row + 1) * plan.group) as line:
                addresses = [self._line(name, line) for name in ("peaks", "totals")]
                before = [address.load(f32) for address in addresses]
                scores = self._line("scores", line)
                peak, total, factor = soften(b, scores, plan.lanes, (begin, end), before, plan.softcap)
                addresses[0].store(peak)
                addresses[1].store(total)

                def fit(column: Index, lanes: int, line: Value = line, factor: Value = factor) -> None:
                    address = self._line("sums", line, column)
                    address.store(address.load(vector(f32, lanes)) * factor)

                vector_loop(b, plan.width, plan.lanes, fit)

    # ---- sums of values

    def _sum(self, found: FoundPages) -> None:
        """
        Add the weighted values: those that all rows see together, those in front of and behind them row by row.

        Nothing is computed of values that a row does not see: they might be no numbers.
        """
        b, plan, start = self.b, self.plan, found.start
        low, _ = self._seen(start, self.count - 1)
        _, high = self._seen(start, 0)
        high = b.max(low, high)
        with b.loop(0, self.count * 2 + 1) as piece:
            is_front, is_shared = piece < self.count, piece.eq(self.count)
            row = b.select(is_front, piece, b.select(is_shared, 0, piece - self.count - 1))
            begin, end = self._seen(start, row)
            begin = b.select(is_front, begin, b.select(is_shared, low, high))
            end = b.select(is_front, b.min(low, end), b.select(is_shared, high, end))
            rows = b.select(is_shared, self.count, 1)
            with b.when(begin < end):
                lines = row * plan.group, (row + rows) * plan.group
                self._add_values(found, lines, begin, end)

    def _add_values(self, found: FoundPages, lines: tuple[Value, Value], begin: Value, end: Value) -> None:
        """Add the weighted values of the tokens from `begin` to `end` to the sums of some lines."""
        b, plan = self.b, self.plan
        first, behind = lines
        for line_start, line_end, count in chunks(behind - first, plan.lines):
            with b.loop(first + line_start, first + line_end, count) as line:
                for column, stop, lanes in chunks(plan.width, plan.lanes * plan.vectors(count)):
                    with b.loop(column, stop, lanes) as i:
                        self._add_columns(found, (line, count), (i, lanes), begin, end)

    def _add_columns(
        self, found: FoundPages, lines: tuple[Value, int], columns: tuple[Value, int], begin: Value, end: Value
    ) -> None:
        """The same for the columns of a few vectors, and a few lines: their sums are in registers."""
        b, plan, values, scales = self.b, self.plan, self.call.one("values"), self.call.maybe("value_scales")
        (line, count), (column, width) = lines, columns
        lanes = min(width, plan.lanes)
        vectors, fetched_bytes = range(0, width, lanes), kernel_costs(b.target).fetched_bytes
        addresses = [self._line("sums", line + own, column + v) for own in range(count) for v in vectors]
        sums = [address.load(vector(f32, lanes)) for address in addresses]
        with b.loop(begin, end, carried=sums) as loop:
            page, slot = found.slot_of(loop.index)
            offset = page * values.strides[0] + self.head * values.strides[1] + slot * values.strides[2] + column
            for line_start in range(0, width, line_elements(b.target, values.element)):
                b.prefetch(values.pointer.at(offset + line_start, values.element).at(fetched_bytes, i8))
            read = [b.cast(load(b, values, offset + v, 1, lanes), f32) for v in vectors]
            scale = None if scales is None else self._from(scales, found, loop.index).load(f32)
            added: list[Value] = []
            for own in range(count):
                weight = self._line("scores", line + own, loop.index).load(f32)
                weight = b.splat(weight if scale is None else weight * scale, lanes)
                added += [b.fma(x, weight, loop.values[own * len(vectors) + n]) for n, x in enumerate(read)]
            loop.set(*added)
        for address, total in zip(addresses, loop.results, strict=True):
            address.store(total)

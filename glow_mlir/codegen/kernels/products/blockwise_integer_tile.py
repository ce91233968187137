"""
The micro-kernel of products of rows and weights that are both quantized by blocks: one tile of the output.

The products of a block are summed as integers, by instructions for dot groups where a target has them. The sum is
converted once, and multiplied by the scales of the row's block and of the column's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, i8, i16, i32, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.blockwise_tile import BlockwiseEmission, BlockwiseTile, with_products
from glow_mlir.codegen.kernels.products.dot_products import (
    DOT_INSTRUCTIONS,
    DotInstruction,
    PairInstruction,
    Parts,
    ReducingInstruction,
)
from glow_mlir.codegen.kernels.products.packed_values import BYTE_BITS
from glow_mlir.codegen.kernels.products.tile_store import row_addresses
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.dialects.glow_high.blockwise import LARGEST, LOW_BITS
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


def dot_instruction(target: Target) -> DotInstruction | None:
    """The instruction by which a target multiplies the dot groups of several columns; `None` if it has none."""
    for instruction in DOT_INSTRUCTIONS:
        if instruction.element == i8 and instruction.is_available(target):
            return None if isinstance(instruction, ReducingInstruction) else instruction
    return None


@dataclass(frozen=True)
class BlockwiseIntegerTile(BlockwiseTile):
    """
    A variant of the kernel.

    Values of rows have two bytes if they are `wide`, a high and a low one. Dot groups are multiplied by an
    `instruction`, or in `pairs`; without either value by value.
    """

    wide: bool = False
    instruction: DotInstruction | None = None
    pairs: PairInstruction | None = None

    @property
    def planes(self) -> Sequence[str]:
        """The bytes of the values of a row, low bytes first."""
        return ("low", "input") if self.wide else ("input",)

    @property
    def row_operands(self) -> dict[str, Attribute]:
        """The operands that have a row for each row of the result: their names and element types."""
        return {**dict.fromkeys(self.planes, i8), "left_scales": f32, "left_sums": i32}

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        found = super().parameters
        for name in self.row_operands:
            if name != "input":
                found += [(name, ptr), (f"{name}_step", index_type)]
        return found

    @property
    def readable(self) -> str:
        plain, wide = super().readable, "wide" if self.wide else "narrow"
        name = "i32" if self.instruction is None else self.instruction.name
        return f"{plain}.{wide}.{name if self.pairs is None else 'pairs'}"

    @property
    def is_signed(self) -> bool:
        """Whether weights are multiplied as signed bytes: entries of tables, or less half of their range."""
        has_signs = self.bits == BYTE_BITS or bool(self.table)
        return has_signs and self.instruction is not None and self.instruction.is_left_signed

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        rows = {name: row_addresses(b, self, given, name, element) for name, element in self.row_operands.items()}
        BlockwiseIntegerEmission(b, self, given, rows).run()


@dataclass(frozen=True)
class BlockwiseIntegerEmission(BlockwiseEmission):
    """Multiplies rows of integers; `rows` are the addresses of the rows of each operand that has some."""

    kernel: BlockwiseIntegerTile
    rows: Mapping[str, Sequence[Value]]

    def block(self, number: Value, state: Sequence[Value], size: int) -> list[Value]:
        b, kernel, values = self.b, self.kernel, self.kernel.packed_values
        *totals, packed = state
        unrolled = max(1, kernel_costs(b.target).blockwise_groups // values.words)
        whole, rest = divmod(size // values.count, unrolled)
        sums = self.sums(number)
        accumulators = self._first(sums)
        first = number * kernel.block
        if whole > 1:
            with b.loop(0, whole, carried=[*accumulators, packed]) as loop:
                *inner, address = loop.values
                start = first + loop.index * (unrolled * values.count)
                loop.set(*self._units(start, inner, address, unrolled))
            *accumulators, packed = loop.results
            first, whole = first + whole * unrolled * values.count, 0
        *accumulators, packed = self._units(first, accumulators, packed, whole * unrolled + rest)
        return [*self.scaled(number, accumulators, sums, totals), packed]

    def sums(self, number: Value) -> list[Value]:
        """The sums of the values of a block of each row."""
        return [row.at(number, i32).load(i32) for row in self.rows["left_sums"]]

    def scaled(
        self, number: Value, accumulators: Sequence[Value], sums: Sequence[Value], totals: Sequence[Value]
    ) -> list[Value]:
        """Add to the totals what a block adds: its accumulators, plane by plane, and the sums of its rows."""
        b, kernel = self.b, self.kernel
        numbers, lanes = self._joined(accumulators), kernel.tile.lanes
        if kernel.zero_points is not None:
            shift = float((1 << kernel.bits - 1) - self._zero)
            offsets = [shift - point for point in self.parameters("zero_points", number)]
            numbers = with_products(b, self._spread_sums(sums), offsets, numbers)
        scales = self.parameters("scales", number)
        lefts = [b.splat(row.at(number, f32).load(f32), lanes) for row in self.rows["left_scales"]]
        factors = [left * scale for left in lefts for scale in scales]
        totals = [b.fma(*each) for each in zip(numbers, factors, totals, strict=True)]
        if kernel.minima is not None:
            spread = [total * left for total, left in zip(self._spread_sums(sums), lefts, strict=True)]
            totals = with_products(b, spread, self.parameters("minima", number), totals)
        return totals

    def _spread_sums(self, sums: Sequence[Value]) -> list[Value]:
        """Broadcast sums of rows as f32: converting vectors costs less than converting scalars and moving them."""
        return [self.b.cast(self.b.splat(total, self.kernel.tile.lanes), f32) for total in sums]

    @cached_property
    def _zero(self) -> int:
        """The value that stands for 0 in blocks without zero points, as it is multiplied."""
        return -self.kernel.packed_values.smallest(signed=self.kernel.is_signed)

    def _first(self, sums: Sequence[Value]) -> list[Value]:
        """Return the first accumulators of a block, plane by plane: the lowest ones have the zero point, if known."""
        kernel = self.kernel
        zero, lanes = self.b.constant(0, vector(i32, kernel.tile.lanes)), kernel.tile.lanes
        half = 1 << kernel.bits - 1
        offset = half - self._zero if kernel.minima is not None else -self._zero
        is_known = kernel.zero_points is None and offset
        lowest = [self.b.splat(total * offset, lanes) if is_known else zero for total in sums]
        others = [zero] * (len(self.kernel.planes) - 1) * kernel.rows
        return [start for start in (*lowest, *others) for _ in range(kernel.vectors)]

    def _units(self, start: Value, accumulators: Sequence[Value], address: Value, count: int) -> list[Value]:
        """Add some units of each column; return the accumulators, and the address of the next units."""
        found, pairs, values = list(accumulators), self.kernel.pairs, self.kernel.packed_values
        # As many products of pairs are added as words hold.
        quads = count * values.quads
        together = quads if pairs is None else pairs.most(LARGEST[BYTE_BITS], values.largest_byte)
        sums: list[Value | None] = [None for _ in found]
        words: list[list[Value]] = []
        for number in range(quads):
            place = number % values.quads
            if not place:
                words = self.loaded(address)
                words = words if self.kernel.is_signed else [values.unsigned(each) for each in words]
                address = address.at(values.words * self.kernel.tile.panel, i32)
            weights = [self._weights(each, place) for each in words]
            self._add(found, None if pairs is None else sums, weights, start + number * DOT_GROUP_BYTES)
            if pairs is not None and ((number + 1) % max(together, 1) == 0 or number + 1 == quads):
                found = [self._widened(total, pair, pairs) for total, pair in zip(found, sums, strict=True)]
                sums = [None for _ in found]
        return [*found, address]

    def _add(
        self, accumulators: list[Value], pairs: list[Value | None] | None, weights: Sequence[Parts], start: Value
    ) -> None:
        """Add the products of four values of each column and row to the accumulators, or to sums of pairs."""
        rows = [row for name in self.kernel.planes for row in self.rows[name]]
        for index, row in enumerate(rows):
            values = self._spread(row.at(start, i8))
            for v, weight in enumerate(weights):
                at = index * self.kernel.vectors + v
                if pairs is None:
                    accumulators[at] = self._multiplied(accumulators[at], weight, values)
                else:
                    pairs[at] = self._paired(pairs[at], weight, values)

    def _paired(self, total: Value | None, weights: Parts, values: Parts) -> Value:
        """Add products to the sums of pairs, words; the first ones are the sums."""
        assert self.kernel.pairs is not None
        type_ = vector(i16, 2 * self.kernel.tile.lanes)
        found = self.b.intrinsic(self.kernel.pairs.multiply, (*weights, *values), type_)
        return found if total is None else total + found

    def _widened(self, total: Value, pair: Value | None, instruction: PairInstruction) -> Value:
        """Add the sums of pairs to accumulators."""
        if pair is None:
            return total
        ones = self.b.constant(1, pair.type)
        return total + self.b.intrinsic(instruction.widen, (pair, ones), total.type)

    def _weights(self, words: Sequence[Value], number: int) -> Parts:
        """The factors of four values of each column."""
        b, values, signed = self.b, self.kernel.packed_values, self.kernel.is_signed
        alone = values.looked_up(b, values.quad(b, words, number), signed=signed)
        if self.kernel.pairs is not None:
            return (b.bitcast(alone, i8),)
        if self.kernel.instruction is not None:
            return self.kernel.instruction.parts(b, alone, signed=signed)
        bytes_ = [b.lshr(alone, BYTE_BITS * index) if index else alone for index in range(DOT_GROUP_BYTES)]
        return tuple(byte & 0xFF for byte in bytes_)

    def _spread(self, address: Value) -> Parts:
        """The factors of four values of a row."""
        b, lanes, instruction = self.b, self.kernel.tile.lanes, self.kernel.instruction
        if instruction is None:
            loaded = (address.at(index, i8).load(i8) for index in range(DOT_GROUP_BYTES))
            return tuple(b.splat(b.cast(value, i32), lanes) for value in loaded)
        dot_groups = b.splat(address.load(i32, align=1), lanes)
        if self.kernel.pairs is not None:
            return (b.bitcast(dot_groups, i8),)
        return instruction.parts(b, dot_groups, signed=True)

    def _multiplied(self, total: Value, weights: Parts, values: Parts) -> Value:
        """Add the products of factors to accumulators."""
        if self.kernel.instruction is not None:
            return self.kernel.instruction.emit(self.b, total, weights, values)
        for weight, value in zip(weights, values, strict=True):
            total = total + weight * value
        return total

    def _joined(self, accumulators: Sequence[Value]) -> list[Value]:
        """Return the sums of a block as f32: low planes plus high ones."""
        count = self.kernel.rows * self.kernel.vectors
        found = list(accumulators[:count])
        for high in range(count, len(accumulators), count):
            pairs = zip(found, accumulators[high : high + count], strict=True)
            found = [low + above * (1 << LOW_BITS) for low, above in pairs]
        return [self.b.cast(total, f32) for total in found]

"""
The micro-kernel of products with block-quantized weights: one tile of the output, from panels of dot groups.

Quantized values are decoded in registers. The products of a block are summed separately, and the sum is multiplied by
the scale of the block: once per accumulator, not once per weight.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import ReducedPrecisionFloatType
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import f32, i8, i32, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import permute_floats
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.packed_values import BYTE_BITS, PackedValues
from glow_mlir.codegen.kernels.products.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.math.float_bits import decoded
from glow_mlir.codegen.math.half import is_half, widen
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import byte_width, is_unsigned, signless
from glow_mlir.dialects.glow_high.blockwise import FACTORS, HALF_BITS, PARAMETERS, TABLE_BITS
from glow_mlir.dialects.narrow_floats import semantics_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class BlockwiseTile(StoredTile, SharedFunction):
    """
    A variant of a kernel, for any left operand.

    Quantized values have `bits` bits; a block has `block` values, and a last one of `rest` values if that is not 0.
    `scales`, `zero_points`, `minima` and the factors are the element types of the parameters of blocks, `None` for
    those that blocks lack; `spans` are the numbers of blocks that share a factor of scales, and of minima. Values stand
    for the entries of a `table`, if there is one. With `bias`, accumulators start at the bias.
    """

    bits: int = 8
    block: int = 32
    rest: int = 0
    scales: Attribute = f32
    zero_points: Attribute | None = None
    minima: Attribute | None = None
    scale_factors: Attribute | None = None
    minimum_factors: Attribute | None = None
    spans: tuple[int, ...] = (0, 0)
    table: tuple[int, ...] = ()
    bias: bool = False

    @property
    def packed_values(self) -> PackedValues:
        """How quantized values lie in a panel."""
        return PackedValues(self.bits, self.table)

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        names: list[tuple[str, Attribute]] = [(name, ptr) for name in ("output", "input", "packed")]
        names += [(name, ptr) for name in PARAMETERS if getattr(self, name) is not None]
        names += [("bias", ptr)] if self.bias else []
        names += [(name, index_type) for name in ("blocks", "input_step", "output_step")]
        names += [("columns", index_type)] if self.partial else []
        for index, extra in enumerate(self.extras):
            names += [(f"extra{index}", ptr), *([(f"extra_step{index}", index_type)] if extra.moves else [])]
        return names

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        flags = ("partial", "bias", "epilogue")
        words = ["blockwise", self.values, f"{self.block}", f"{self.rows}x{self.vectors}"]
        return ".".join([*words, *(flag for flag in flags if getattr(self, flag))])

    @property
    def values(self) -> str:
        """A readable name of the type of quantized values."""
        return f"i{self.bits}{'.table' if self.table else ''}"


@dataclass(frozen=True)
class BlockwiseFloatTile(BlockwiseTile):
    """A variant for rows of f32; weights are quantized integers, or floats of `value_type`."""

    value_type: Attribute | None = None

    @property
    def values(self) -> str:
        return super().values if self.value_type is None else str(self.value_type)

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        _Emission(b, self, given, row_addresses(b, self, given, "input", f32)).run()


@dataclass(frozen=True)
class BlockwiseEmission(ABC):
    """Emits the body of one variant."""

    b: Builder
    kernel: BlockwiseTile
    given: dict[str, Value]

    def run(self) -> None:
        """Emit all blocks, then the epilogue."""
        b, kernel, given = self.b, self.kernel, self.given
        masks = self._masks()
        state = [*self._start(masks), given["packed"]]
        with b.loop(0, given["blocks"], carried=state) as loop:
            loop.set(*self.block(loop.index, loop.values, kernel.block))
        state = loop.results
        if kernel.rest:
            state = self.block(given["blocks"], state, kernel.rest)
        TileStore(b, kernel, given, masks).run(state[:-1])

    @abstractmethod
    def block(self, number: Value, state: Sequence[Value], size: int) -> list[Value]:
        """Add a block of `size` values; return the accumulators and the address of the next packed values."""

    def _masks(self) -> list[Value | None]:
        """Return for each vector the mask of its existing columns, `None` if all exist."""
        kernel, lanes = self.kernel, self.kernel.tile.lanes
        if not kernel.partial:
            return [None] * kernel.vectors
        columns = self.given["columns"]
        if lanes == 1:
            return [columns > index for index in range(kernel.vectors)]
        return [self.b.mask(columns - index * lanes, lanes) for index in range(kernel.vectors)]

    def _start(self, masks: Sequence[Value | None]) -> list[Value]:
        """Return the initial accumulators, row by row."""
        b, kernel = self.b, self.kernel
        type_ = vector(f32, kernel.tile.lanes)
        if not kernel.bias:
            return [b.constant(0.0, type_)] * (kernel.rows * kernel.vectors)
        addresses = [self.given["bias"].at(v * kernel.tile.lanes, f32) for v in range(kernel.vectors)]
        found: list[Value] = []
        for address, mask in zip(addresses, masks, strict=True):
            if mask is None:
                found.append(address.load(type_))
            elif kernel.tile.lanes == 1:
                zero = b.constant(0.0, type_)
                found += b.either(mask, lambda address=address: [address.load(type_)], lambda zero=zero: [zero])
            else:
                found.append(b.load_masked(address, type_, mask))
        return found * kernel.rows

    def loaded(self, address: Value) -> list[list[Value]]:
        """Load the words of a unit of each column, as they are packed, and fetch later ones."""
        kernel, values = self.kernel, self.kernel.packed_values
        lanes, panel = kernel.tile.lanes, kernel.tile.panel
        words = [values.loaded(self.b, address.at(v * lanes, i32), lanes, panel) for v in range(kernel.vectors)]
        for index in range(values.words):
            self.fetch(address.at(index * panel, i32) if index else address)
        return words

    def fetch(self, address: Value) -> None:
        """Prefetch the cache lines of a later dot group of each column."""
        target = self.b.target
        in_bytes, ahead = (
            self.kernel.vectors * self.kernel.tile.lanes * DOT_GROUP_BYTES,
            kernel_costs(target).fetched_bytes,
        )
        for line in range(0, in_bytes, target.line_bytes):
            self.b.prefetch(address.at(ahead + line, i8))

    def parameters(self, name: str, number: Value) -> list[Value]:
        """Load the scale, zero point or minimum of each column for a block, as f32."""
        factors = FACTORS.get(name, "")
        if getattr(self.kernel, factors, None) is None:
            return self._loaded(name, number)
        span = self.kernel.spans[list(FACTORS).index(name)]
        pairs = zip(self._loaded(name, number), self._loaded(factors, number // span), strict=True)
        return [value * factor for value, factor in pairs]

    def _loaded(self, name: str, number: Value) -> list[Value]:
        """Load the number of each column for a block or, of factors, for some blocks; as f32."""
        kernel, lanes, given = self.kernel, self.kernel.tile.lanes, getattr(self.kernel, name)
        element = signless(given)
        start = self.given[name].at(number * kernel.tile.panel, element)
        type_, align = vector(element, lanes), byte_width(element) * lanes
        loaded = [start.at(v * lanes, element).load(type_, align=align) for v in range(kernel.vectors)]
        if is_half(element):
            return [widen(self.b, value) for value in loaded]
        return [self.b.cast(value, f32, signed=not is_unsigned(given)) for value in loaded]


def with_products(
    b: Builder, rows: Sequence[Value], columns: Sequence[Value], accumulators: Sequence[Value]
) -> list[Value]:
    """Add to accumulators, row by row, the products of a number of each row and one of each column."""
    pairs = [(row, column) for row in rows for column in columns]
    return [b.fma(row, column, total) for (row, column), total in zip(pairs, accumulators, strict=True)]


@dataclass(frozen=True)
class _Emission(BlockwiseEmission):
    """Multiplies rows of f32; `rows` are their addresses."""

    kernel: BlockwiseFloatTile
    rows: Sequence[Value]

    @cached_property
    def _table(self) -> Value | None:
        """The decoded number of each 4-bit value, for an instruction that looks it up in a register; else `None`."""
        b, kernel = self.b, self.kernel
        if kernel.bits != TABLE_BITS or kernel.tile.lanes != 1 << TABLE_BITS or not b.target.is_x86:
            return None
        half = 1 << TABLE_BITS - 1
        entries = kernel.table or range(-half, half)
        numbers = [float(entries[bits ^ half]) for bits in range(1 << TABLE_BITS)]
        if kernel.value_type is not None:
            kind = cast(ReducedPrecisionFloatType, kernel.value_type)
            numbers = [kind.decode_bits(bits ^ half) for bits in range(1 << TABLE_BITS)]
        return b.constant(numbers, vector(f32, 1 << TABLE_BITS))

    def block(self, number: Value, state: Sequence[Value], size: int) -> list[Value]:
        b, kernel, rows = self.b, self.kernel, self.rows
        *totals, packed = state
        first = number * kernel.block
        zero = b.constant(0.0, vector(f32, kernel.tile.lanes))
        start = [zero] * (kernel.rows * kernel.vectors)
        values = kernel.packed_values
        with b.loop(0, size // values.count, carried=[*start, packed]) as units:
            *accumulators, address = units.values
            start = first + units.index * values.count
            following = address.at(values.words * kernel.tile.panel, i32)
            units.set(*self._unit([row.at(start, f32) for row in rows], accumulators, address), following)
        *accumulators, packed = units.results
        scales, rows = self.parameters("scales", number), [row.at(first, f32) for row in rows]
        if kernel.zero_points is not None:
            half = float(1 << kernel.bits - 1)
            offsets = [half - point for point in self.parameters("zero_points", number)]
            accumulators = self._with_sums(rows, size, offsets, accumulators)
        scaled = zip(accumulators, scales * kernel.rows, totals, strict=True)
        totals = [b.fma(accumulator, scale, total) for accumulator, scale, total in scaled]
        if kernel.minima is not None:
            half = b.constant(float(1 << kernel.bits - 1), vector(f32, kernel.tile.lanes))
            minima = zip(scales, self.parameters("minima", number), strict=True)
            totals = self._with_sums(rows, size, [b.fma(scale, half, least) for scale, least in minima], totals)
        return [*totals, packed]

    def _unit(self, rows: Sequence[Value], accumulators: Sequence[Value], start: Value) -> list[Value]:
        """Add the products of a unit of each column."""
        b, kernel, lanes = self.b, self.kernel, self.kernel.tile.lanes
        found = list(accumulators)
        for index, numbers in enumerate(self._halves(start) if kernel.bits == HALF_BITS else self._numbers(start)):
            for row, address in enumerate(rows):
                spread = b.splat(address.at(index, f32).load(f32), lanes)
                for v, number in enumerate(numbers):
                    at = row * kernel.vectors + v
                    found[at] = b.fma(spread, number, found[at])
        return found

    def _halves(self, start: Value) -> Iterator[list[Value]]:
        """Load the 16-bit floats of a dot group of each column, one of each column at a time."""
        kernel, lanes = self.kernel, self.kernel.tile.lanes
        assert kernel.value_type is not None
        type_ = vector(kernel.value_type, lanes)
        self.fetch(start)
        for index in range(DOT_GROUP_BITS // HALF_BITS):
            row = start.at(index * kernel.tile.panel, kernel.value_type)
            loaded = [row.at(v * lanes, kernel.value_type).load(type_, align=2 * lanes) for v in range(kernel.vectors)]
            yield [widen(self.b, value) for value in loaded]

    def _numbers(self, start: Value) -> Iterator[list[Value]]:
        """Load a unit of each column, and decode one value of each column at a time."""
        b, kernel, values = self.b, self.kernel, self.kernel.packed_values
        units = self.loaded(start)
        if kernel.value_type is not None and self._table is None:
            units = [values.unsigned(words) for words in units]
        if values.words == 1 and (self._table is not None or not kernel.table):
            for index in range(values.count):
                byte, field = index % DOT_GROUP_BYTES, index // DOT_GROUP_BYTES
                yield [self._number(word, BYTE_BITS * byte + kernel.bits * field, kernel.bits) for (word,) in units]
            return
        bits = BYTE_BITS if kernel.table else kernel.bits
        for number in range(values.quads):
            quads = [values.looked_up(b, values.quad(b, words, number), signed=True) for words in units]
            for byte in range(DOT_GROUP_BYTES):
                yield [self._number(quad, BYTE_BITS * byte, bits) for quad in quads]

    def _number(self, word: Value, position: int, bits: int) -> Value:
        """
        Decode the value of some bits that begins at a bit of a word: an integer less half of its range, or a float.
        """
        low = self.b.lshr(word, position) if position else word
        if self._table is not None:
            return permute_floats(self.b, self._table, low)
        if self.kernel.value_type is not None:
            return decoded(self.b, low, semantics_of(self.kernel.value_type))
        above = DOT_GROUP_BITS - bits - position
        shifted = self.b.shl(word, above) if above else word
        return self.b.cast(self.b.ashr(shifted, DOT_GROUP_BITS - bits), f32)

    def _with_sums(
        self, rows: Sequence[Value], size: int, offsets: Sequence[Value], accumulators: Sequence[Value]
    ) -> list[Value]:
        """Add to accumulators the offsets of columns times the sum of the first `size` elements of each row."""
        totals = [self.b.splat(self._total(row, size), self.kernel.tile.lanes) for row in rows]
        return with_products(self.b, totals, offsets, accumulators)

    def _total(self, row: Value, size: int) -> Value:
        """Return the sum of `size` elements of a row."""
        b, lanes = self.b, math.gcd(size, self.kernel.tile.lanes)
        parts = [row.at(at, f32).load(vector(f32, lanes), align=4) for at in range(0, size, lanes)]
        while len(parts) > 1:
            halves = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
            parts = halves + parts[len(halves) * 2 :]
        return b.reduce(parts[0], b.add)

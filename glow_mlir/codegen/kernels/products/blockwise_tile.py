"""
The micro-kernel of products with block-quantized weights: one tile of the output, from panels of dot groups.

Quantized values are decoded in registers. The products of a block are summed separately, and the sum is multiplied by
the scale of the block: once per accumulator, not once per weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from glow_mlir.codegen.kernels.products.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.math.float_bits import decoded
from glow_mlir.codegen.math.half import is_half, widen
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.narrow_floats import semantics_of
from glow_mlir.support.dataclass import dataclass

TABLE_BITS = 4
"""The width of quantized values whose decoded numbers, as f32, fit in a register of 512 bits."""


@dataclass(frozen=True)
class BlockwiseTile(StoredTile, SharedFunction):
    """
    A variant of the kernel.

    Quantized values have `bits` bits; a block has `block` values, and a last one of `rest` values if that is not 0.
    Values are integers, or floats of `value_type`. `scale` and `zero_point` are the element types of scales and zero
    points; `zero_point` is `None` without zero points. With `bias`, accumulators start at the bias. Each accumulator is
    the sum of `ways` partial ones.
    """

    bits: int = 8
    block: int = 32
    rest: int = 0
    value_type: Attribute | None = None
    scale: Attribute = f32
    zero_point: Attribute | None = None
    bias: bool = False
    ways: int = 1

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        names: list[tuple[str, Attribute]] = [(name, ptr) for name in ("output", "input", "packed", "scales")]
        names += [("zero_points", ptr)] if self.zero_point is not None else []
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
        kind = f"i{self.bits}" if self.value_type is None else str(self.value_type)
        words = ["blockwise", kind, f"{self.block}", f"{self.rows}x{self.vectors}"]
        return ".".join([*words, *(flag for flag in flags if getattr(self, flag))])

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        _Emission(b, self, given).run()


@dataclass(frozen=True)
class _Emission:
    """Emits the body of one variant."""

    b: Builder
    kernel: BlockwiseTile
    given: dict[str, Value]

    def run(self) -> None:
        """Emit all blocks, then the epilogue."""
        b, kernel, given = self.b, self.kernel, self.given
        rows = row_addresses(b, kernel, given, "input", f32)
        masks = self._masks()
        state = [*self._start(masks), given["packed"]]
        with b.loop(0, given["blocks"], carried=state) as loop:
            loop.set(*self._block(rows, loop.index, loop.values, kernel.block))
        state = loop.results
        if kernel.rest:
            state = self._block(rows, given["blocks"], state, kernel.rest)
        TileStore(b, kernel, given, masks).run(state[:-1])

    @cached_property
    def _table(self) -> Value | None:
        """The decoded number of each 4-bit value, for an instruction that looks it up in a register; else `None`."""
        b, kernel = self.b, self.kernel
        if kernel.bits != TABLE_BITS or kernel.tile.lanes != 1 << TABLE_BITS or not b.target.is_x86:
            return None
        numbers = [*map(float, range(8)), *map(float, range(-8, 0))]
        if kernel.value_type is not None:
            kind = cast(ReducedPrecisionFloatType, kernel.value_type)
            numbers = [kind.decode_bits(bits ^ 1 << TABLE_BITS - 1) for bits in range(1 << TABLE_BITS)]
        return b.constant(numbers, vector(f32, 1 << TABLE_BITS))

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

    def _block(self, rows: Sequence[Value], number: Value, state: Sequence[Value], size: int) -> list[Value]:
        """Add a block of `size` values; return the accumulators and the address of the next packed values."""
        b, kernel = self.b, self.kernel
        *totals, packed = state
        first = number * kernel.block
        zero = b.constant(0.0, vector(f32, kernel.tile.lanes))
        count = kernel.rows * kernel.vectors
        with b.loop(
            0, size * kernel.bits // DOT_GROUP_BITS, carried=[*([zero] * (count * kernel.ways)), packed]
        ) as dot_groups:
            *accumulators, address = dot_groups.values
            start = first + dot_groups.index * (DOT_GROUP_BITS // kernel.bits)
            following = address.at(kernel.tile.panel, i32)
            dot_groups.set(*self._dot_group([row.at(start, f32) for row in rows], accumulators, address), following)
        *accumulators, packed = dot_groups.results
        for way in range(1, kernel.ways):
            accumulators = [
                total + accumulators[way * count + i] if i < count else total for i, total in enumerate(accumulators)
            ]
        scales = self._parameters("scales", kernel.scale, number)
        accumulators = self._without_zero_points(
            [row.at(first, f32) for row in rows], accumulators[:count], number, size
        )
        pairs = zip(accumulators, scales * kernel.rows, totals, strict=True)
        return [*(b.fma(total, scale, before) for total, scale, before in pairs), packed]

    def _dot_group(self, rows: Sequence[Value], accumulators: Sequence[Value], start: Value) -> list[Value]:
        """Add the products of a dot group of each column; its values take turns among the partial accumulators."""
        b, kernel, lanes = self.b, self.kernel, self.kernel.tile.lanes
        type_ = vector(i32, lanes)
        words = [start.at(v * lanes, i32).load(type_, align=4 * lanes) for v in range(kernel.vectors)]
        if kernel.value_type is not None and self._table is None:
            words = [word ^ self._halves for word in words]
        self._fetch(start)
        found, count = list(accumulators), kernel.rows * kernel.vectors
        for index in range(DOT_GROUP_BITS // kernel.bits):
            byte, field = index % DOT_GROUP_BYTES, index // DOT_GROUP_BYTES
            numbers = [self._number(word, 8 * byte + kernel.bits * field) for word in words]
            for row, address in enumerate(rows):
                spread = b.splat(address.at(index, f32).load(f32), lanes)
                for v, number in enumerate(numbers):
                    at = index % kernel.ways * count + row * kernel.vectors + v
                    found[at] = b.fma(spread, number, found[at])
        return found

    @cached_property
    def _halves(self) -> int:
        """A word with half of the range in the bits of each value of a dot group, which packed values lack."""
        half, positions = 1 << self.kernel.bits - 1, range(0, DOT_GROUP_BITS, self.kernel.bits)
        return sum(half << position for position in positions) - (1 << DOT_GROUP_BITS)

    def _fetch(self, address: Value) -> None:
        """Prefetch the cache lines of a later dot group of each column."""
        target = self.b.target
        in_bytes, ahead = (
            self.kernel.vectors * self.kernel.tile.lanes * DOT_GROUP_BYTES,
            kernel_costs(target).fetched_bytes,
        )
        for line in range(0, in_bytes, target.line_bytes):
            self.b.prefetch(address.at(ahead + line, i8))

    def _number(self, word: Value, position: int) -> Value:
        """
        Decode the value that begins at a bit of a dot group: an integer less half of its range, or a float.
        """
        low = self.b.lshr(word, position) if position else word
        if self._table is not None:
            return permute_floats(self.b, self._table, low)
        if self.kernel.value_type is not None:
            return decoded(self.b, low, semantics_of(self.kernel.value_type))
        above = DOT_GROUP_BITS - self.kernel.bits - position
        shifted = self.b.shl(word, above) if above else word
        return self.b.cast(self.b.ashr(shifted, DOT_GROUP_BITS - self.kernel.bits), f32)

    def _parameters(self, name: str, element: Attribute, number: Value) -> list[Value]:
        """Load the scale or zero point of each column for a block, as f32."""
        kernel, lanes = self.kernel, self.kernel.tile.lanes
        start = self.given[name].at(number * kernel.tile.panel, element)
        type_, align = vector(element, lanes), byte_width(element) * lanes
        loaded = [start.at(v * lanes, element).load(type_, align=align) for v in range(kernel.vectors)]
        if is_half(element):
            return [widen(self.b, value) for value in loaded]
        return [self.b.cast(value, f32, signed=False) for value in loaded]

    def _without_zero_points(
        self, rows: Sequence[Value], accumulators: Sequence[Value], number: Value, size: int
    ) -> Sequence[Value]:
        """Subtract from the sums of a block the zero points times the sum of the row's elements in the block."""
        b, kernel = self.b, self.kernel
        if kernel.zero_point is None:
            return accumulators
        half = float(1 << kernel.bits - 1)
        offsets = [half - value for value in self._parameters("zero_points", kernel.zero_point, number)]
        totals = [b.splat(self._total(row, size), kernel.tile.lanes) for row in rows]
        pairs = [(total, offset) for total in totals for offset in offsets]
        return [b.fma(total, offset, sum_) for (total, offset), sum_ in zip(pairs, accumulators, strict=True)]

    def _total(self, row: Value, size: int) -> Value:
        """Return the sum of `size` elements of a row."""
        b, lanes = self.b, math.gcd(size, self.kernel.tile.lanes)
        parts = [row.at(at, f32).load(vector(f32, lanes), align=4) for at in range(0, size, lanes)]
        while len(parts) > 1:
            halves = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
            parts = halves + parts[len(halves) * 2 :]
        return b.reduce(parts[0], b.add)

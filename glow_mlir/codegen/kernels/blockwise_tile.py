"""
The micro-kernel of products with weights in blocks of codes: one tile of the output, from panels of dot groups.

Codes become numbers in registers. The products of a block are summed on their own, and multiplied by the scale of the
block: once for each sum, not for each weight.
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
from glow_mlir.codegen.kernels.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.math.float_bits import decoded
from glow_mlir.codegen.math.half import is_half, widen
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.narrow_floats import semantics_of
from glow_mlir.support.dataclass import dataclass

TABLE_BITS = 4
"""Bits of the codes whose numbers fit into a register of 512 bits."""


@dataclass(frozen=True)
class BlockwiseTile(StoredTile, SharedFunction):
    """
    Which variant of the kernel.

    Codes have `bits` bits, blocks `block` of them, but for a last one of `rest`, where that is not 0. They are those of
    integers, or of the float type `code`. `scale` is the element type of the scales, `zero_point` that of zero points,
    where there are some. Sums start at a `bias`, where there is one; each is made of `ways` partial ones.
    """

    bits: int = 8
    block: int = 32
    rest: int = 0
    code: Attribute | None = None
    scale: Attribute = f32
    zero_point: Attribute | None = None
    bias: bool = False
    ways: int = 1

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        names: list[tuple[str, Attribute]] = [(name, ptr) for name in ("output", "input", "codes", "scales")]
        names += [("zero_points", ptr)] if self.zero_point is not None else []
        names += [("bias", ptr)] if self.bias else []
        names += [(name, index_type) for name in ("blocks", "input_step", "output_step")]
        names += [("columns", index_type)] if self.partial else []
        for index, extra in enumerate(self.extras):
            names += [(f"extra{index}", ptr), *([(f"extra_step{index}", index_type)] if extra.moves else [])]
        return names

    @property
    def readable(self) -> str:
        """What the function is called."""
        flags = ("partial", "bias", "epilogue")
        kind = f"i{self.bits}" if self.code is None else str(self.code)
        words = ["blockwise", kind, f"{self.block}", f"{self.rows}x{self.vectors}"]
        return ".".join([*words, *(flag for flag in flags if getattr(self, flag))])

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        _Emission(b, self, given).run()


@dataclass(frozen=True)
class _Emission:
    """The function of one variant under construction."""

    b: Builder
    kernel: BlockwiseTile
    given: dict[str, Value]

    def run(self) -> None:
        """All blocks, then the epilogue."""
        b, kernel, given = self.b, self.kernel, self.given
        rows = row_addresses(b, kernel, given, "input", f32)
        masks = self._masks()
        state = [*self._start(masks), given["codes"]]
        with b.loop(0, given["blocks"], carried=state) as loop:
            loop.set(*self._block(rows, loop.index, loop.values, kernel.block))
        state = loop.results
        if kernel.rest:
            state = self._block(rows, given["blocks"], state, kernel.rest)
        TileStore(b, kernel, given, masks).run(state[:-1])

    @cached_property
    def _table(self) -> Value | None:
        """The number of each code of four bits, where an instruction picks one by these bits alone; else `None`."""
        b, kernel = self.b, self.kernel
        if kernel.bits != TABLE_BITS or kernel.tile.lanes != 1 << TABLE_BITS or not b.target.is_x86:
            return None
        numbers = [*map(float, range(8)), *map(float, range(-8, 0))]
        if kernel.code is not None:
            kind = cast(ReducedPrecisionFloatType, kernel.code)
            numbers = [kind.decode_bits(code ^ 1 << TABLE_BITS - 1) for code in range(1 << TABLE_BITS)]
        return b.constant(numbers, vector(f32, 1 << TABLE_BITS))

    def _masks(self) -> list[Value | None]:
        """For each vector the mask of its columns that exist, `None` where all do."""
        kernel, lanes = self.kernel, self.kernel.tile.lanes
        if not kernel.partial:
            return [None] * kernel.vectors
        columns = self.given["columns"]
        if lanes == 1:
            return [columns > index for index in range(kernel.vectors)]
        return [self.b.mask(columns - index * lanes, lanes) for index in range(kernel.vectors)]

    def _start(self, masks: Sequence[Value | None]) -> list[Value]:
        """What the accumulators begin with, row by row."""
        b, kernel = self.b, self.kernel
        type_ = vector(f32, kernel.tile.lanes)
        if not kernel.bias:
            return [b.constant(0.0, type_)] * (kernel.rows * kernel.vectors)
        places = [self.given["bias"].at(v * kernel.tile.lanes, f32) for v in range(kernel.vectors)]
        found: list[Value] = []
        for place, mask in zip(places, masks, strict=True):
            if mask is None:
                found.append(place.load(type_))
            elif kernel.tile.lanes == 1:
                zero = b.constant(0.0, type_)
                found += b.either(mask, lambda place=place: [place.load(type_)], lambda zero=zero: [zero])
            else:
                found.append(b.load_masked(place, type_, mask))
        return found * kernel.rows

    def _block(self, rows: Sequence[Value], number: Value, state: Sequence[Value], size: int) -> list[Value]:
        """The accumulators, and where the next codes are, behind a block of some size."""
        b, kernel = self.b, self.kernel
        *totals, codes = state
        first = number * kernel.block
        zero = b.constant(0.0, vector(f32, kernel.tile.lanes))
        count = kernel.rows * kernel.vectors
        with b.loop(
            0, size * kernel.bits // DOT_GROUP_BITS, carried=[*([zero] * (count * kernel.ways)), codes]
        ) as dot_groups:
            *accumulators, place = dot_groups.values
            start = first + dot_groups.index * (DOT_GROUP_BITS // kernel.bits)
            following = place.at(kernel.tile.panel, i32)
            dot_groups.set(*self._dot_group([row.at(start, f32) for row in rows], accumulators, place), following)
        *accumulators, codes = dot_groups.results
        for way in range(1, kernel.ways):
            accumulators = [
                total + accumulators[way * count + i] if i < count else total for i, total in enumerate(accumulators)
            ]
        scales = self._parameters("scales", kernel.scale, number)
        accumulators = self._without_zero_points(
            [row.at(first, f32) for row in rows], accumulators[:count], number, size
        )
        pairs = zip(accumulators, scales * kernel.rows, totals, strict=True)
        return [*(b.fma(total, scale, before) for total, scale, before in pairs), codes]

    def _dot_group(self, rows: Sequence[Value], accumulators: Sequence[Value], place: Value) -> list[Value]:
        """Partial accumulators with the products of a dot group of each column added; each takes some of its codes."""
        b, kernel, lanes = self.b, self.kernel, self.kernel.tile.lanes
        type_ = vector(i32, lanes)
        words = [place.at(v * lanes, i32).load(type_, align=4 * lanes) for v in range(kernel.vectors)]
        if kernel.code is not None and self._table is None:
            words = [word ^ self._halves for word in words]
        self._fetch(place)
        found, count = list(accumulators), kernel.rows * kernel.vectors
        for code in range(DOT_GROUP_BITS // kernel.bits):
            byte, field = code % DOT_GROUP_BYTES, code // DOT_GROUP_BYTES
            numbers = [self._number(word, 8 * byte + kernel.bits * field) for word in words]
            for row, address in enumerate(rows):
                spread = b.splat(address.at(code, f32).load(f32), lanes)
                for v, number in enumerate(numbers):
                    at = code % kernel.ways * count + row * kernel.vectors + v
                    found[at] = b.fma(spread, number, found[at])
        return found

    @cached_property
    def _halves(self) -> int:
        """Half of the range in the place of each code of a dot group, which packed codes lost."""
        half, codes = 1 << self.kernel.bits - 1, range(0, DOT_GROUP_BITS, self.kernel.bits)
        return sum(half << position for position in codes) - (1 << DOT_GROUP_BITS)

    def _fetch(self, place: Value) -> None:
        """Fetch as many lines of the cache as a dot group of each column has, some way ahead."""
        target = self.b.target
        in_bytes, ahead = (
            self.kernel.vectors * self.kernel.tile.lanes * DOT_GROUP_BYTES,
            kernel_costs(target).fetched_bytes,
        )
        for line in range(0, in_bytes, target.line_bytes):
            self.b.prefetch(place.at(ahead + line, i8))

    def _number(self, word: Value, position: int) -> Value:
        """
        The number of the code from a bit of a dot group on, less half of its range; or of a float that has it back.
        """
        low = self.b.lshr(word, position) if position else word
        if self._table is not None:
            return permute_floats(self.b, self._table, low)
        if self.kernel.code is not None:
            return decoded(self.b, low, semantics_of(self.kernel.code))
        above = DOT_GROUP_BITS - self.kernel.bits - position
        shifted = self.b.shl(word, above) if above else word
        return self.b.cast(self.b.ashr(shifted, DOT_GROUP_BITS - self.kernel.bits), f32)

    def _parameters(self, name: str, element: Attribute, number: Value) -> list[Value]:
        """Scales or zero points of a block of each column, as f32."""
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
        """Sums of a block less the zero points times what the rows have in it."""
        b, kernel = self.b, self.kernel
        if kernel.zero_point is None:
            return accumulators
        half = float(1 << kernel.bits - 1)
        offsets = [half - value for value in self._parameters("zero_points", kernel.zero_point, number)]
        totals = [b.splat(self._total(row, size), kernel.tile.lanes) for row in rows]
        places = [(total, offset) for total in totals for offset in offsets]
        return [b.fma(total, offset, sum_) for (total, offset), sum_ in zip(places, accumulators, strict=True)]

    def _total(self, row: Value, size: int) -> Value:
        """The sum of so many elements of a row."""
        b, lanes = self.b, math.gcd(size, self.kernel.tile.lanes)
        parts = [row.at(at, f32).load(vector(f32, lanes), align=4) for at in range(0, size, lanes)]
        while len(parts) > 1:
            halves = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
            parts = halves + parts[len(halves) * 2 :]
        return b.reduce(parts[0], b.add)

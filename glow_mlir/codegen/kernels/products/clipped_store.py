"""
Storing accumulators clipped to [0, upper], on machines where comparisons of floats are slow.

Floats that are not negative are ordered as their bits. This would clip NaN as well. So all accumulators are added up;
each is checked on its own only if the total is NaN, which takes a NaN or infinities of both signs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import f32, i32, index_type, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.dialects.llvm_ops.intrinsics import SAddSatOp
from glow_mlir.support.dataclass import dataclass

_LARGEST = (1 << 31) - 1
"""The largest i32."""


def clips_numbers(b: Builder, values: Sequence[Value], upper: float) -> bool:
    """
    Whether accumulators are stored by `store_clipped`: scalars, enough of them that the check for NaN pays.

    Without an instruction for the larger of two floats, it does not pay if they are only clipped at 0.
    """
    is_scalar = all(value.type == f32 for value in values) and b.target.singles
    saves = b.target.maxima or math.isfinite(upper)
    return is_scalar and saves and kernel_costs(b.target).branched_operations <= len(values)


@dataclass(frozen=True)
class Grid:
    """The destination of a tile: rows and columns, with the steps between them in elements."""

    output: Value
    rows: int
    columns: int
    row_step: Value
    column_step: Index

    def addresses(self) -> Iterator[Value]:
        """Yield the address of each element, row by row."""
        for row in range(self.rows):
            address = self.output.at(self.row_step * row, f32)
            for _ in range(self.columns):
                yield address
                address = address.at(self.column_step, f32)


def store_clipped(b: Builder, values: Sequence[Value], grid: Grid, upper: float) -> None:
    """Store f32 values clipped to [0, `upper`], which may be infinity; NaN is kept."""
    total = functools.reduce(b.add, values)

    def one_by_one() -> list[Value]:
        tile = b.stack(f32, len(values))
        for index, value in enumerate(values):
            b.store(value, tile.at(index, f32))
        steps = {"row_step": grid.row_step, "column_step": grid.column_step}
        _ClippedTile(upper).call(b, tile=tile, output=grid.output, rows=grid.rows, columns=grid.columns, **steps)
        return []

    def numbers() -> list[Value]:
        for value, address in zip(values, grid.addresses(), strict=True):
            b.store(_clipped_number(b, value, upper), address)
        return []

    b.either(b.compare("uno", total, total), one_by_one, numbers)


def _clipped_number(b: Builder, value: Value, upper: float) -> Value:
    """Clip a number that is not NaN; the result is a float or its bits."""
    if b.target.maxima:
        found = b.largest_number(value, b.constant(0.0, f32))
        return found if math.isinf(upper) else b.smallest_number(found, b.constant(upper, f32))
    bits = b.max(b.bits_of(value), 0)
    if math.isinf(upper):
        return bits
    limit = b.bits_of(b.constant(upper, f32))
    if "dsp" not in b.target.enabled:
        return b.min(bits, limit)
    # Two instructions instead of three: a saturating addition clips at the upper end.
    distance = _LARGEST - limit
    return b.emit(SAddSatOp, (bits, distance), i32) - distance


@dataclass(frozen=True)
class _ClippedTile(SharedFunction):
    """The function that clips and stores a contiguous tile of f32 that may contain NaN."""

    upper: float

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        numbers = ("rows", "columns", "row_step", "column_step")
        return [("tile", ptr), ("output", ptr), *((name, index_type) for name in numbers)]

    @property
    def readable(self) -> str:
        return "clipped"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        with b.loop(0, given["rows"]) as row:
            line = given["output"].at(row * given["row_step"], f32)
            with b.loop(0, given["columns"]) as column:
                value = given["tile"].at(row * given["columns"] + column, f32).load(f32)
                clipped = b.min(b.max(value, 0.0), self.upper)
                kept = b.select(b.compare("uno", value, value), value, clipped)
                b.store(kept, line.at(column * given["column_step"], f32))

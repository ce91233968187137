"""Packing of narrow elements in dot groups at run time, as `glow_mlir/constants/layouts.py` has them."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import linear, nest
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import i32, integer_of_width, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.dot_products import DotGroupProduct
from glow_mlir.codegen.kernels.products.gemm import emit_panels
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.support.dataclass import dataclass

_ONES = 0x01010101
"""Four bytes of 1."""


@dataclass(frozen=True)
class Matrix:
    """
    A matrix of narrow elements in memory: a pointer to the first element, and columns `column_step` elements apart.

    The depth runs over `axes`, given as (size, stride); the last axis is one run.
    """

    pointer: Value
    columns: int
    column_step: int
    axes: Sequence[tuple[int, int]]


def emit_pack_dot_groups(
    b: Builder, packed: Value, matrix: Matrix, dot: DotGroupProduct, tile: Tile, share: Partition = ALL
) -> None:
    """
    Emit the packing of a matrix as `layouts.matrix_panels` has it, with the dot groups of `dot`.

    Columns after the last one are unspecified. Shares divide the panels.
    """
    runs = 1
    for size, _ in matrix.axes[:-1]:
        runs *= size
    rows = dot.panel_rows(runs * matrix.axes[-1][0], matrix.axes[-1][0])

    def panel(columns: Columns) -> None:
        if matrix.column_step == 1:
            for v in range(columns.vectors):
                left = b.index(columns.count) - v * tile.lanes
                mask = b.mask(left, tile.lanes, bit_width(dot.memory)) if columns.partial else None
                _pack(b, columns, v * tile.lanes, tile.lanes, mask, matrix, dot, tile.panel)
        else:
            with b.loop(0, columns.count) as column:
                _pack(b, columns, column, 1, None, matrix, dot, tile.panel)
        if dot.start:
            _start(b, columns, rows, dot, tile)

    emit_panels(b, packed, matrix.columns, rows, tile, dot.right_group, panel, share)


def _pack(
    b: Builder,
    columns: Columns,
    first: Index,
    lanes: int,
    mask: Value | None,
    matrix: Matrix,
    dot: DotGroupProduct,
    panel: int,
) -> None:
    """Pack `lanes` neighbouring columns of a panel, except those outside `mask`."""
    *outer, (run, step) = matrix.axes
    whole, rest = divmod(run, dot.group)
    row_strides = [stride * (whole + (rest > 0)) for stride in contiguous_strides(tuple(size for size, _ in outer))]
    target = columns.weights.at(first + (panel if dot.start else 0), dot.right_group)
    in_word = DOT_GROUP_BITS // bit_width(dot.memory)
    source = matrix.pointer.at((columns.start + first) * matrix.column_step, dot.memory)

    def pack_run(indices: list[Index]) -> None:
        begin, row = linear(indices, [stride for _, stride in outer]), linear(indices, row_strides)

        def dot_group(number: Index, positions: range) -> None:
            address = source.at(number * (dot.group * step) + begin, dot.memory)
            stored = target.at((number + row) * panel, dot.right_group)
            for word in range(dot.group // in_word):
                value = _word(b, address, step, positions, word * in_word, lanes, mask, dot)
                stored.at(word, i32).store(value)

        with b.loop(0, whole) as number:
            dot_group(number, range(dot.group))
        if rest:
            shared = dot.interleave(run).shared(run)
            dot_group(whole, range(shared, shared + rest))

    nest(b, [size for size, _ in outer], pack_run)


def _word(
    b: Builder,
    address: Value,
    step: int,
    positions: range,
    first: int,
    lanes: int,
    mask: Value | None,
    dot: DotGroupProduct,
) -> Value:
    """Return one word of a dot group for each column: elements at `positions` of the group, and zeros."""
    bits = bit_width(dot.memory)
    type_, held = vector(integer_of_width(bits), lanes), range(first, first + DOT_GROUP_BITS // bits)
    word: Value | None = None
    for number, position in enumerate(positions):
        if position not in held:
            continue
        element = address.at(number * step, dot.memory)
        part = element.load(type_) if mask is None else b.load_masked(element, type_, mask)
        wide = b.cast(part, i32, signed=False) << bits * (position - first)
        word = wide if word is None else word | wide
    return b.constant(0, vector(i32, lanes)) if word is None else word


def _start(b: Builder, columns: Columns, rows: Index, dot: DotGroupProduct, tile: Tile) -> None:
    """Write the first row of a panel, the multiples of the sums of its columns."""
    type_ = dot.instruction.columns(tile.lanes)
    ones = b.constant(_ONES if type_info(type_).bits == DOT_GROUP_BITS else 1, type_)
    left = dot.instruction.parts(b, ones, signed=False)
    for v in range(columns.vectors):
        first = columns.weights.at(v * tile.lanes, i32)
        zero = b.constant(0, vector(i32, tile.lanes))
        with b.loop(1, rows, carried=[zero]) as loop:
            dot_groups = dot.columns(
                b, columns.weights.at(loop.index * tile.panel + v * tile.lanes, dot.right_group), tile.lanes
            )
            loop.set(dot.multiply_add(b, left, dot_groups, loop.values[0]))
        first.store(loop.results[0] * abs(dot.start))

"""
Products in tile registers: the loops of matrix products and convolutions around their micro-kernel.

    for each block of strips { for each panel { for each two strips { for each 32 columns: multiply } finish them } }

The registers are configured around these loops, once per instruction or task.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.amx import configured
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_blocks, emit_panels, emit_row_tiles
from glow_mlir.codegen.kernels.products.micro_tiles import (
    ACCUMULATORS_ROW,
    ACCUMULATORS_STRIP,
    TOGETHER,
    StripStore,
    TileAccumulators,
)
from glow_mlir.codegen.kernels.products.output_pixels import Offsets
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.strips import Strip, Strips, row_strips
from glow_mlir.codegen.kernels.products.tile_products import TILE_COLUMNS, TileProduct, tile_product
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, line_elements
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.support.dataclass import dataclass

Segments = tuple[Sequence[tuple[Index, Index]], int]
"""The loops along the depth, as (count, stride in the input), around contiguous runs; and the length of a run."""


@dataclass(frozen=True)
class Origin:
    """
    The start of the products of one image and group: the offsets in the input, and in output and extra operands; the
    address of the panels; and the first column among those of all groups.
    """

    source: Index
    target: Offsets
    weights: Value
    column: Index = 0


@dataclass(frozen=True)
class TileGemm:
    """The state shared by the loops of one product; `accumulators` is the buffer of the micro-kernels."""

    b: Builder
    operands: ProductOperands
    product: TileProduct
    strips: Strips
    segments: Segments
    columns: int
    panel_rows: int
    tile: Tile
    options: GemmOptions
    moves: tuple[bool, ...]
    accumulators: Value

    @staticmethod
    @contextmanager
    def configured(
        b: Builder,
        operands: ProductOperands,
        product: TileProduct,
        strips: Strips,
        segments: Segments,
        columns: int,
        options: GemmOptions,
        moves: tuple[bool, ...],
    ) -> Generator[TileGemm]:
        """
        Configure the registers for the product of strips with panels of `columns` columns, and yield it.

        `moves` tells which extra operands move from row to row.
        """
        dot = operands.dot
        (loops, run), tile = segments, dot.tile(b.target)
        depth = run
        for count, _ in loops:
            depth = count * depth
        panel_rows = dot.panel_rows(depth, run)
        assert isinstance(panel_rows, int), "tiles multiply runs of known length"
        accumulators = b.stack(dot.accumulators, TOGETHER * ACCUMULATORS_STRIP)
        with configured(b, product.sizes(strips.rows)):
            yield TileGemm(
                b, operands, product, strips, segments, columns, panel_rows, tile, options, moves, accumulators
            )

    def emit(self, origin: Origin) -> None:
        """Emit the products of one image and group."""

        def block(first: Index, strips: Index) -> None:
            def panel(columns: Columns) -> None:
                self._panel(origin, columns, first, strips)

            element = self.product.dot.right_group
            emit_panels(
                self.b, origin.weights, self.columns, self.panel_rows, self.tile, element, panel, self.options.columns
            )

        block_strips = max(TOGETHER, self.options.block_rows // self.strips.rows)
        emit_blocks(self.b, self.strips.count, TOGETHER, block_strips, block, self.options.rows)

    def _panel(self, origin: Origin, columns: Columns, first: Index, strips: Index) -> None:
        """Multiply a block of strips by a panel, some tiles of columns at a time."""
        count, width = columns.count, self._width
        assert isinstance(count, int), "tiles multiply panels of known columns"
        whole, slices = count // width, -(-count // width)

        def multiply(index: Index, width: int) -> None:
            start, dot_group = index * self._width, self.product.dot.right_group
            weights = columns.weights.at(start, dot_group)
            own = Columns(columns.start + start, weights, -(-width // TILE_COLUMNS), width % TILE_COLUMNS != 0, width)
            ahead = _PanelPrefetch(
                columns.weights, self.panel_rows * self.tile.panel, strips * slices, strips * index - first
            )

            def tiles(number: Index, together: int) -> None:
                self._tiles(origin, own, number, together, ahead)

            emit_row_tiles(self.b, first, strips, TOGETHER, tiles)

        if whole:
            with self.b.loop(0, whole) as index:
                multiply(index, width)
        if rest := count - whole * width:
            multiply(whole, rest)

    @property
    def _width(self) -> int:
        """
        The number of columns that are finished together: more if their weights stay in the L1 cache.

        Whole vectors of bytes are stored in fewer steps.
        """
        held = self.panel_rows * DOT_GROUP_BYTES * ACCUMULATORS_ROW
        return ACCUMULATORS_ROW if 2 * held <= self.b.target.l1_bytes else TOGETHER * TILE_COLUMNS

    def _tiles(self, origin: Origin, columns: Columns, number: Index, together: int, ahead: _PanelPrefetch) -> None:
        """Compute `together` strips from a number on, two tiles of columns at a time, and finish them."""
        found = [self.strips.at(self.b, number + index) for index in range(together)]
        for first in range(0, columns.vectors, TOGETHER):
            self._accumulators(origin, columns, found, first, number, ahead)
        for index, strip in enumerate(found):
            self._store(origin, columns, strip, index * ACCUMULATORS_STRIP)

    def _accumulators(
        self,
        origin: Origin,
        columns: Columns,
        strips: Sequence[Strip],
        first: int,
        number: Index,
        ahead: _PanelPrefetch,
    ) -> None:
        """Compute the accumulators of strips, the first with this number, for up to two tiles of columns."""
        b, dot = self.b, self.product.dot
        inputs = [self.operands.inp.at(strip.source + origin.source, dot.memory) for strip in strips]
        loops, run = self.segments
        dot_groups = (
            ahead.dot_groups(self.product.dot_groups * self.tile.panel, len(strips)) if self.options.prefetch else 0
        )
        # The first two tiles of columns prefetch for all.
        lines = 0 if first else -(-dot_groups // line_elements(b.target, dot.right_group))
        arguments: dict[str, Index] = (
            {"ahead": ahead.start(number, dot.right_group), "ahead_step": dot_groups} if lines else {}
        )
        for index, (count, stride) in enumerate(loops):
            arguments |= {f"count{index}": count, f"stride{index}": stride}
        skipped = self.tile.panel if dot.start else 0
        column = first * TILE_COLUMNS
        TileAccumulators(self.product, len(strips), min(TOGETHER, columns.vectors - first), len(loops), lines).call(
            b,
            accumulators=self.accumulators.at(column, dot.accumulators),
            input=inputs[0],
            second=inputs[-1],
            weights=columns.weights.at(skipped + column, dot.right_group),
            input_step=self.strips.pixels.step_in,
            depth=run // self.product.step,
            step=self.product.step,
            weights_step=self.product.dot_groups * self.tile.panel,
            **arguments,
        )

    def _store(self, origin: Origin, columns: Columns, strip: Strip, accumulators: int) -> None:
        """Finish a strip whose accumulators begin at an element of the buffer."""
        operands, strips, dot = self.operands, self.strips, self.product.dot
        column = columns.start + origin.column
        extras = tuple(
            ExtraKind(extra.element, moves, extra.spread)
            for extra, moves in zip(operands.extras, self.moves, strict=True)
        )
        kernel = StripStore(
            multiply_adds(dot.accumulators),
            self.tile,
            1,
            columns.vectors,
            partial=columns.partial,
            wraps=bool(strips.pitch),
            epilogue=operands.epilogue,
            extras=extras,
            bias=operands.bias is not None,
        )
        output, *offsets = (offset + base for offset, base in zip(strip.target, origin.target, strict=True))
        steps, jumps = strips.pixels.step_out, strips.jumps
        arguments: dict[str, Index] = {}
        for index, (extra, offset) in enumerate(zip(operands.extras, offsets, strict=True)):
            arguments[f"extra{index}"] = extra.pointer.at(offset if extra.spread else offset + column, extra.element)
            arguments[f"extra_step{index}"] = steps[1 + index]
            arguments[f"extra_jump{index}"] = jumps[1 + index]
        kernel.call(
            self.b,
            accumulators=self.accumulators.at(strip.skipped * ACCUMULATORS_ROW + accumulators, dot.accumulators),
            output=operands.out.at(output + column, kernel.output_element),
            count=strip.count,
            output_step=steps[0],
            output_jump=jumps[0],
            bias=operands.bias_at(column),
            columns=columns.count,
            position=strip.position,
            width=strips.pitch,
            stored=strips.stored,
            **arguments,
        )


def tile_gemm(
    b: Builder,
    operands: ProductOperands,
    m: int,
    n: int,
    k: int,
    lda: int,
    ldc: int,
    options: GemmOptions,
) -> AbstractContextManager[TileGemm]:
    """Configure the registers for a matrix product with the sizes of `gemm.emit_gemm`."""
    product = tile_product(operands.dot, k, b.target)
    assert product is not None, "what is selected was accepted"
    steps = [extra.strides[-2] for extra in operands.extras]
    strips = row_strips(m, lda, (ldc, *steps))
    return TileGemm.configured(b, operands, product, strips, ((), k), n, options, tuple(step != 0 for step in steps))


@dataclass(frozen=True)
class _PanelPrefetch:
    """
    Prefetching of the next panel by the strips of a panel, which has `size` dot groups from `panel` on.

    The work is divided among `strips` strips, which are counted once for each slice of columns; `offset` plus the
    number of a strip is its index.
    """

    panel: Value
    size: Index
    strips: Index
    offset: Index

    def dot_groups(self, taken: int, together: int) -> int:
        """
        Return the dot groups that `together` strips prefetch while they multiply `taken` of the panel; 0 if `strips` is
        only known at run time.
        """
        return -(-taken * together // self.strips) if isinstance(self.strips, int) else 0

    def start(self, number: Index, dot_group: Attribute) -> Value:
        """Return the address at which a strip begins to prefetch."""
        return self.panel.at(self.size + (self.offset + number) * self.size // self.strips, dot_group)

"""
Calls of the micro-kernel for a product of rows and columns over segments of the depth, whatever its rows are.

A matrix product has one segment; a convolution has one for each run of contiguous elements that its filter reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.micro_gemm import MicroKernel, is_far, own_accumulators
from glow_mlir.codegen.kernels.products.output_pixels import Offsets
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.sized_sums import SumSizes
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, line_elements
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Segments = tuple[Sequence[tuple[Index, Index]], Index]
"""Loops over the segments of a row, as (count, stride in the left operand), and the length of a segment."""


@dataclass(frozen=True)
class TileOffsets:
    """
    The offsets of the first row of a tile, in the left operand and in output and extra operands, and the steps to the
    next row, all in elements. They are relative to `origin`, the offsets of the first row of an image.
    """

    source: Index
    target: Offsets
    source_step: Index
    target_steps: Offsets
    origin: tuple[Index, Offsets] | None = None


@dataclass(frozen=True)
class Product:
    """The state shared by the loops of one product; a panel of its weights has `panel_rows` rows of dot groups."""

    b: Builder
    operands: ProductOperands
    kernel: MicroKernel
    segments: Segments
    panel_rows: Index

    @staticmethod
    def of(
        b: Builder,
        operands: ProductOperands,
        tile: Tile,
        segments: Segments,
        panel_rows: Index,
        moves: Sequence[bool],
        *,
        sizes: SumSizes | None,
        prefetch: bool,
        accumulate: bool = False,
    ) -> Product:
        """
        Return a product in tiles, with code for fixed `sizes` if given; `moves` tells which extra operands of the
        epilogue move from row to row. With `accumulate`, the product is added to the output, without the bias.
        """
        (loops, run), dot = segments, operands.dot
        kinds = zip(operands.extras, moves, strict=True)
        run_groups = dot.dot_groups(run)[0]
        kernel = MicroKernel(
            dot,
            tile,
            tile.rows,
            tile.vectors,
            bias=operands.bias is not None and not accumulate,
            accumulate=accumulate,
            segment_loops=len(loops),
            rest=dot.dot_groups(run)[1],
            shared=dot.last_group(run) is not None,
            prefetch=int(prefetch and sizes is None),
            long=isinstance(run_groups, int) and sizes is None and run_groups >= kernel_costs(b.target).long_run,
            far=sizes is None and is_far(b.target, dot, tile, panel_rows),
            own_accumulators=own_accumulators(loops, run)
            if b.target.is_strict and is_float(dot.accumulators) and sizes is None
            else None,
            sizes=sizes,
            epilogue=operands.epilogue,
            extras=tuple(ExtraKind(extra.element, moving, extra.spread) for extra, moving in kinds),
        )
        return Product(b, operands, kernel, segments, panel_rows)

    def ahead(self, columns: Columns, rows: Index) -> PanelPrefetch:
        """Return the prefetching of the next panel by the tiles of a panel, which `rows` rows share."""
        return PanelPrefetch(columns, self.panel_rows, rows)

    def variant(
        self, columns: Columns, rows: int, whole_rows: Index, together: tuple[Index, int] | None
    ) -> MicroKernel:
        """
        Return the micro-kernel of a tile of `rows` rows of a product with `whole_rows`.

        `together` has the number of evenly spaced rows, and the number of their tiles that one call computes; it is
        `None` for a tile that continues from line to line.
        """
        found = self.kernel.of_tile(rows, columns, whole_rows)
        if together is None:
            return dataclasses.replace(found, wraps=True)
        return found.together(self.b.target, *together, self.panel_rows)

    def call(
        self,
        variant: MicroKernel,
        columns: Columns,
        offsets: TileOffsets,
        ahead: PanelPrefetch,
        row: Index,
        column: Index,
        *,
        count: int = 1,
        wrap: Mapping[str, Index] | None = None,
        unpacked: tuple[Value, Index] | None = None,
    ) -> None:
        """
        Call the micro-kernel for `count` tiles.

        `offsets` and `row` are those of the first row; `row` counts the rows that share the panel. `column` is the
        first column in the output. `wrap` has the arguments for tiles that continue from line to line. A
        tile that packs the panel takes it from `unpacked`: the address of its first row, and the step to the next one.
        """
        (loops, run), operands, kernel = self.segments, self.operands, self.kernel
        variant = dataclasses.replace(ahead.applied(variant, self.b.target), packs=unpacked is not None)
        matrix, matrix_step = unpacked or (operands.out, 0)
        segments: dict[str, Index] = {}
        for index, (times, stride) in enumerate(loops):
            segments |= {f"count{index}": times, f"stride{index}": stride}
        source, target = offsets.origin or (0, (0,) * len(offsets.target))
        output, *extras = (offset + start for offset, start in zip(offsets.target, target, strict=True))
        arguments = self._extras(extras, offsets.target_steps[1:], column)
        variant.call(
            self.b,
            output=operands.out.at(output + column, kernel.output_element),
            input=operands.inp.at(offsets.source + source, kernel.dot.memory),
            weights=columns.weights,
            bias=operands.bias_at(column) if kernel.bias else operands.out,
            depth=kernel.dot.dot_groups(run)[0],
            count=count,
            dot_groups=self.panel_rows * kernel.tile.panel if variant.widened else 0,
            last=kernel.dot.last_group(run) or 0,
            input_step=offsets.source_step,
            output_step=offsets.target_steps[0],
            columns=columns.count,
            source=matrix,
            source_step=matrix_step,
            **segments,
            **arguments,
            **(wrap or {}),
            **ahead.arguments(variant, row),
        )

    def _extras(self, offsets: Sequence[Index], steps: Offsets, column: Index) -> dict[str, Index]:
        """Return the arguments for the extra operands of the epilogue."""
        arguments: dict[str, Index] = {}
        for index, (extra, offset, step) in enumerate(zip(self.operands.extras, offsets, steps, strict=True)):
            arguments[f"extra{index}"] = extra.pointer.at(offset if extra.spread else offset + column, extra.element)
            arguments[f"extra_step{index}"] = step
        return arguments


@dataclass(frozen=True)
class PanelPrefetch:
    """
    Prefetching of the next panel by the tiles of a panel, each in proportion to its rows.

    `rows` is the number of rows of all tiles, `depth` the number of rows of the panel. If `rows` is only known at run
    time, each tile prefetches as many cache lines per step as a row of the panel has; repeated prefetches cost nothing.
    """

    columns: Columns
    depth: Index
    rows: Index

    def step(self, kernel: MicroKernel) -> Index:
        """Return the dot groups that a tile prefetches while it multiplies one row of the panel."""
        return (kernel.tile.panel * kernel.rows + (self.rows - 1)) // self.rows

    def applied(self, kernel: MicroKernel, target: Target) -> MicroKernel:
        """Return the variant that prefetches all of its cache lines, not only some."""
        if not kernel.prefetch:
            return kernel
        rows = self.rows if isinstance(self.rows, int) else kernel.rows
        dot_groups, line = kernel.tile.panel * kernel.rows, line_elements(target, kernel.dot.right_group)
        return dataclasses.replace(kernel, prefetch=-(-dot_groups // (rows * line)))

    def arguments(self, kernel: MicroKernel, row: Index) -> dict[str, Index]:
        """Return the arguments of the tile that begins at a row."""
        if not kernel.prefetch:
            return {}
        size = self.depth * kernel.tile.panel
        following = self.columns.weights.at(size, kernel.dot.right_group)
        ahead = following.at(row * size // self.rows, kernel.dot.right_group)
        return {"ahead": ahead, "ahead_step": self.step(kernel)}

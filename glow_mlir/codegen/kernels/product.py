"""
A product of rows and columns over segments of the depth, whatever its rows are: the micro-kernel that loops call.

A matrix product has one segment; a convolution has one for each run of elements that its filter reads side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.micro_gemm import MicroKernel, own_accumulators
from glow_mlir.codegen.kernels.output_pixels import Places
from glow_mlir.codegen.kernels.product_operands import ProductOperands
from glow_mlir.codegen.kernels.sized_sums import SumSizes
from glow_mlir.codegen.kernels.tile_store import ExtraKind
from glow_mlir.codegen.kernels.tiles import Columns, Tile, line_elements
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Segments = tuple[Sequence[tuple[Index, Index]], Index]
"""Loops over the segments of a row, as (count, stride in the left operand), and the length of a segment."""


@dataclass(frozen=True)
class Place:
    """
    Where the first row of a tile is, in the left operand, in output and extra operands, and the steps to the next row,
    all in elements. Rows are counted from `origin`, the places of the first of an image.
    """

    source: Index
    target: Places
    source_step: Index
    target_steps: Places
    origin: tuple[Index, Places] | None = None


@dataclass(frozen=True)
class Product:
    """What the loops of one product share; a panel of its weights has `panel_rows` rows of dot groups."""

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
        A product in tiles, with code for its `sizes` where there are any; `moves` says which extra operands of the
        epilogue move from row to row. With `accumulate` it is added to the output, without the bias.
        """
        (loops, run), dot = segments, operands.dot
        kinds = zip(operands.extras, moves, strict=True)
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
            own_accumulators=own_accumulators(loops, run)
            if b.target.is_strict and is_float(dot.accumulators) and sizes is None
            else None,
            sizes=sizes,
            epilogue=operands.epilogue,
            extras=tuple(ExtraKind(extra.element, moving, extra.spread) for extra, moving in kinds),
        )
        return Product(b, operands, kernel, segments, panel_rows)

    def ahead(self, columns: Columns, rows: Index) -> Ahead:
        """What the tiles of a panel fetch of the next one, which so many rows share."""
        return Ahead(columns, self.panel_rows, rows)

    def variant(
        self, columns: Columns, rows: int, whole_rows: Index, together: tuple[Index, int] | None
    ) -> MicroKernel:
        """
        The micro-kernel of a tile of so many rows of a product with `whole_rows`. `together` are the rows that follow
        each other evenly, and how many tiles of them it computes; `None` for one that goes on from line to line.
        """
        found = self.kernel.of_tile(rows, columns, whole_rows)
        if together is None:
            return dataclasses.replace(found, wraps=True)
        return found.together(self.b.target, *together, self.panel_rows)

    def call(
        self,
        variant: MicroKernel,
        columns: Columns,
        place: Place,
        ahead: Ahead,
        row: Index,
        column: Index,
        *,
        count: int = 1,
        wrap: Mapping[str, Index] | None = None,
    ) -> None:
        """
        Call the micro-kernel for `count` tiles from a place on, whose first row is the `row` of those that share a
        panel, and whose first column in the output is `column`. `wrap` says how it goes on from line to line.
        """
        (loops, run), operands, kernel = self.segments, self.operands, self.kernel
        variant = ahead.applied(variant, self.b.target)
        segments: dict[str, Index] = {}
        for index, (times, stride) in enumerate(loops):
            segments |= {f"count{index}": times, f"stride{index}": stride}
        source, target = place.origin or (0, (0,) * len(place.target))
        output, *extras = (offset + start for offset, start in zip(place.target, target, strict=True))
        arguments = self._extras(extras, place.target_steps[1:], column)
        variant.call(
            self.b,
            output=operands.out.at(output + column, kernel.output_element),
            input=operands.inp.at(place.source + source, kernel.dot.memory),
            weights=columns.weights,
            bias=operands.bias_at(column) if kernel.bias else operands.out,
            depth=kernel.dot.dot_groups(run)[0],
            count=count,
            dot_groups=self.panel_rows * kernel.tile.panel if variant.widened else 0,
            last=kernel.dot.last_group(run) or 0,
            input_step=place.source_step,
            output_step=place.target_steps[0],
            columns=columns.count,
            **segments,
            **arguments,
            **(wrap or {}),
            **ahead.arguments(variant, row),
        )

    def _extras(self, offsets: Sequence[Index], steps: Places, column: Index) -> dict[str, Index]:
        """Where a tile finds the extra operands of the epilogue."""
        arguments: dict[str, Index] = {}
        for index, (extra, offset, step) in enumerate(zip(self.operands.extras, offsets, steps, strict=True)):
            arguments[f"extra{index}"] = extra.pointer.at(offset if extra.spread else offset + column, extra.element)
            arguments[f"extra_step{index}"] = step
        return arguments


@dataclass(frozen=True)
class Ahead:
    """
    What the tiles of one panel fetch of the next one, which they share by their rows.

    `rows` are those of all tiles, `depth` are the rows of the panel. Where Python does not know how many tiles share
    it, each fetches as many lines at a time as a row of the panel has, some of them again, which costs nothing.
    """

    columns: Columns
    depth: Index
    rows: Index

    def step(self, kernel: MicroKernel) -> Index:
        """How many dot groups the tile of a kernel fetches while it takes one row of the panel."""
        return (kernel.tile.panel * kernel.rows + (self.rows - 1)) // self.rows

    def applied(self, kernel: MicroKernel, target: Target) -> MicroKernel:
        """The variant that fetches all lines of the cache on its way, not some of them."""
        if not kernel.prefetch:
            return kernel
        rows = self.rows if isinstance(self.rows, int) else kernel.rows
        dot_groups, line = kernel.tile.panel * kernel.rows, line_elements(target, kernel.dot.right_group)
        return dataclasses.replace(kernel, prefetch=-(-dot_groups // (rows * line)))

    def arguments(self, kernel: MicroKernel, row: Index) -> dict[str, Index]:
        """What the tile from a row on is told."""
        if not kernel.prefetch:
            return {}
        size = self.depth * kernel.tile.panel
        following = self.columns.weights.at(size, kernel.dot.right_group)
        ahead = following.at(row * size // self.rows, kernel.dot.right_group)
        return {"ahead": ahead, "ahead_step": self.step(kernel)}

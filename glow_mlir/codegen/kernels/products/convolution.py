"""
Convolution as an implicit matrix product: the rows are output pixels, the sum runs over kernel and input channels.

Channels are the fastest dimension of input and output. The input includes its border: every element that the kernel
reaches exists. Input and output may be views of larger buffers, since every axis has its own pitch. There may be any
number of spatial dimensions: the last one or two are cut into tiles, the others are plain loops.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from glow_mlir.codegen.bodies import ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import steps_of
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotProduct
from glow_mlir.codegen.kernels.products.gemm import (
    GemmOptions,
    emit_blocks,
    emit_panels,
    emit_row_tiles,
    emit_runs_of_tiles,
    product_cut,
)
from glow_mlir.codegen.kernels.products.micro_gemm import MicroKernel
from glow_mlir.codegen.kernels.products.output_pixels import Offsets, Pixels
from glow_mlir.codegen.kernels.products.product import PanelPrefetch, Product, TileOffsets
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.sized_sums import SumSizes
from glow_mlir.codegen.kernels.products.strips import Strips
from glow_mlir.codegen.kernels.products.tile_gemm import Origin, TileGemm
from glow_mlir.codegen.kernels.products.tile_products import tile_product
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile
from glow_mlir.codegen.selection.kernel import UNBOUNDED
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import numbers_in


@dataclass(frozen=True)
class ConvShape:
    """
    The sizes of a convolution; one entry per spatial dimension, the slowest first.

    `channels` and `filters` are those of one group. Pitches are distances between neighbours in elements: along each
    spatial axis, and from one image of the batch to the next. Output channels are contiguous; input channels are
    `channel_pitch` elements apart. If that is not 1, the pixels of a line are contiguous, and the filters have channels
    outermost.
    """

    outputs: tuple[Index, ...]
    kernel: tuple[int, ...]
    channels: Index
    filters: Index
    input_pitches: tuple[Index, ...]
    output_pitches: tuple[Index, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    batch: Index = 1
    input_image: Index = 0
    output_image: Index = 0
    channel_pitch: int = 1
    image_lines: int | None = None
    """The number of lines of an image, if the outputs are only some of its lines."""

    @property
    def depth(self) -> Index:
        """The number of products per output: kernel elements times channels."""
        return self.channels * math.prod(self.kernel)

    @property
    def of_whole_images(self) -> ConvShape:
        """The convolution of all lines of the images."""
        if self.image_lines is None:
            return self
        *outer, _, width = self.outputs
        return dataclasses.replace(self, outputs=(*outer, self.image_lines, width), image_lines=None)

    def panel_rows(self, dot: DotProduct) -> Index:
        """Return the number of rows of a panel of the filters."""
        return self.depth if dot.group == 1 else dot.panel_rows(self.depth, self.segments()[1])

    def sum_sizes(self, dot: DotProduct, tile: Tile, target: Target) -> SumSizes | None:
        """
        Return the sizes of the sums if there is code for these sizes alone, else `None`.

        Tiles then have to lie within lines of the whole images.
        """
        whole = self.of_whole_images
        pixels = _pixels_of(whole, (), max(0, len(self.outputs) - 2))
        if self.channel_pitch != 1 or not (pixels.uniform or pixels.go_by_lines(tile)):
            return None
        pitches = zip(self.kernel, self.dilations, self.input_pitches, strict=True)
        *outer, tap = [(size, dilation * pitch) for size, dilation, pitch in pitches]
        loops = [loop for loop in outer if loop[0] != 1]
        return SumSizes.of(dot, tile, target, loops, tap, self.channels, (pixels.step_in, pixels.step_out[0]))

    def segments(self) -> tuple[list[tuple[Index, Index]], Index]:
        """
        Return the loops over the kernel as (count, stride in the input), and the length of a contiguous run.

        The innermost axis is merged with the channels where its elements are contiguous.
        """
        loops: list[tuple[Index, Index]] = [
            (size, dilation * pitch)
            for size, dilation, pitch in zip(self.kernel, self.dilations, self.input_pitches, strict=True)
        ]
        if self.channel_pitch != 1:
            # Each line of the kernel is a run in the plane of one channel.
            run, _ = loops.pop()
            return [loop for loop in ((self.channels, self.channel_pitch), *loops) if loop[0] != 1], run
        run: Index = self.channels
        stride = loops[-1][1]
        if isinstance(stride, int) and stride == self.channels:
            run = self.kernel[-1] * self.channels
            loops.pop()
        return [loop for loop in loops if loop[0] != 1], run


@dataclass(frozen=True)
class _Nest:
    """The state shared by the loops of one convolution."""

    b: Builder
    operands: ProductOperands
    shape: ConvShape
    product: Product
    options: GemmOptions
    tiles: TileGemm | None = None
    """The product in tile registers, if it is computed there."""

    @property
    def kernel(self) -> MicroKernel:
        """The micro-kernel of a whole tile."""
        return self.product.kernel


def moved(shape: ConvShape, extras: Sequence[ExtraOperand], offsets: Offsets, index: Index, axis: int) -> Offsets:
    """Move the offsets of output and extra operands by `index` steps along a spatial axis."""
    steps = (shape.output_pitches[axis], *(extra.strides[1 + axis] for extra in extras))
    return tuple(index * step + offset for offset, step in zip(offsets, steps, strict=True))


def emit_conv(b: Builder, operands: ProductOperands, shape: ConvShape, *, options: GemmOptions | None = None) -> None:
    """
    Emit a convolution; `inp` of the operands points to the first element that the first output reads.

    The weights are filters, `[groups, ceil(filters / panel), depth, panel]` as `layouts.filter_panels` has them; the
    bias has one element per filter of all groups. The axes of extra operands are batch, spatial dimensions, and filters
    of all groups.
    """
    options, dot, extras = options or GemmOptions(), operands.dot, operands.extras
    tile = options.tile or dot.tile(b.target)
    product = Product.of(
        *(b, operands, tile, shape.segments(), shape.panel_rows(dot)),
        [any(extra.strides[-3:-1]) for extra in extras],
        sizes=shape.sum_sizes(dot, tile, b.target),
        prefetch=options.prefetch,
    )
    group_size = steps_of(shape.filters, tile.panel) * product.panel_rows * tile.panel
    images = options.images.of(shape.batch)
    by_tiles = _by_tiles(b, operands, shape, options) if options.tile_products else nullcontext()
    with by_tiles as tiles, b.loop(*images) as image, b.loop(0, shape.groups) as group:
        nest = _Nest(b, operands, shape, product, options, tiles)
        steps = (shape.output_image, *(extra.strides[0] for extra in extras))
        _outer(
            nest,
            0,
            image * shape.input_image + group * (shape.channels * shape.channel_pitch),
            tuple(image * step for step in steps),
            operands.weights.at(group * group_size, dot.right_group),
            group * shape.filters,
        )


def _by_tiles(
    b: Builder, operands: ProductOperands, shape: ConvShape, options: GemmOptions
) -> AbstractContextManager[TileGemm]:
    """Return the loops of a convolution of known sizes in tile registers."""
    loops, run = shape.segments()
    assert isinstance(run, int), "tiles multiply runs of known length"
    assert isinstance(shape.filters, int), "tiles multiply panels of known columns"
    product = tile_product(operands.dot, run, b.target)
    assert product is not None, "what is selected was accepted"
    moves = tuple(any(extra.strides[-3:-1]) for extra in operands.extras)
    strips = conv_strips(shape, operands.extras)
    return TileGemm.configured(b, operands, product, strips, (loops, run), shape.filters, options, moves)


def conv_strips(shape: ConvShape, extras: Sequence[ExtraOperand] = ()) -> Strips:
    """Return how the pixels of an image of known sizes become rows of tile registers."""
    return Strips.of(_pixels_of(shape, extras, max(0, len(shape.outputs) - 2)))


def _outer(nest: _Nest, axis: int, source: Index, target: Offsets, filters: Value, column: Index) -> None:
    """Loop over the spatial dimensions but the last two; `source` and `target` are offsets of the first pixel."""
    shape = nest.shape
    if len(shape.outputs) - axis <= 2:
        _image(nest, axis, source, target, filters, column)
        return
    with nest.b.loop(0, shape.outputs[axis]) as step:
        _outer(
            nest,
            axis + 1,
            step * (shape.strides[axis] * shape.input_pitches[axis]) + source,
            moved(shape, nest.operands.extras, target, step, axis),
            filters,
            column,
        )


def _image(nest: _Nest, axis: int, source: Index, target: Offsets, filters: Value, column: Index) -> None:
    """Choose how the pixels of an image of one or two dimensions become rows of tiles."""
    if nest.tiles is not None:
        nest.tiles.emit(Origin(source, target, filters, column))
        return
    pixels = _pixels_of(nest.shape, nest.operands.extras, axis)
    tile = nest.kernel.tile
    bound = _Bound(nest, source, target, filters, column, pixels.whole_rows(nest.shape.image_lines, tile))
    if pixels.uniform:
        bound.rows(dataclasses.replace(pixels, width=pixels.height * pixels.width, height=1))
    elif pixels.go_by_lines(tile):
        bound.lines(pixels)
    else:
        bound.wrapped(pixels)


def _pixels_of(shape: ConvShape, extras: Sequence[ExtraOperand], axis: int) -> Pixels:
    """Return the pixels of an image of one or two dimensions, the first of which is `axis`."""
    pixel_step = shape.strides[-1] * shape.input_pitches[-1]
    height: Index = 1
    line_in: Index = 0
    origin: Offsets = (0,) * (1 + len(extras))
    line_out = origin
    if len(shape.outputs) - axis == 2:
        height = shape.outputs[axis]
        line_in = shape.strides[axis] * shape.input_pitches[axis]
        line_out = moved(shape, extras, origin, 1, axis)
    pixel_out = moved(shape, extras, origin, 1, len(shape.outputs) - 1)
    return Pixels(shape.outputs[-1], height, pixel_step, pixel_out, line_in, line_out)


def conv_cut(shape: ConvShape, tile: Tile, target: Target, by_tiles: bool = False) -> tuple[str, int]:
    """
    Choose the axis along which to cut a convolution of known sizes: `images`, `rows` or `columns`. Return it and its
    number of steps.

    `by_tiles` tells whether tile registers compute it.
    """
    pixels = _pixels_of(shape, (), max(0, len(shape.outputs) - 2))
    numbers = (pixels.height, pixels.width, shape.filters, shape.batch)
    height, width, filters, batch = numbers_in(numbers)
    if batch >= kernel_costs(target).parts_per_thread * target.policy.threads or batch % target.policy.threads == 0:
        return "images", batch
    if by_tiles:
        return product_cut(height * width, conv_strips(shape).count, filters, tile, target)
    lines = not pixels.uniform and pixels.go_by_lines(tile)
    return product_cut(height * width, height if lines else -(-height * width // tile.rows), filters, tile, target)


@dataclass(frozen=True)
class _Bound:
    """One image of one group: its offsets, and the three ways to go through its pixels."""

    nest: _Nest
    source: Index
    target: Offsets
    filters: Value
    column: Index
    whole_rows: Index

    def rows(self, pixels: Pixels) -> None:
        """Go through all pixels at one step."""
        nest = self.nest
        by_blocks, by_tiles = nest.options.shares_of_rows(pixels.width)

        def block(first: Index, rows: Index) -> None:
            def panel(columns: Columns) -> None:
                ahead = nest.product.ahead(columns, rows)

                def tile(row: Index, count: int, tiles: int) -> None:
                    self._tile(columns, (count, tiles), pixels.at(0, row), pixels, ahead, row - first, {})

                emit_runs_of_tiles(nest.b, nest.kernel, first, rows, tile, by_tiles)

            self._panels(panel)

        rows = nest.options.block_rows
        emit_blocks(nest.b, pixels.width, nest.kernel.tile.rows, rows, block, by_blocks)

    def lines(self, pixels: Pixels) -> None:
        """Go line by line; each line is cut evenly into tiles."""
        nest = self.nest

        def block(first: Index, lines: Index) -> None:
            def panel(columns: Columns) -> None:
                every = lines * pixels.width
                ahead = nest.product.ahead(columns, every)
                with nest.b.loop(0, lines) as step:
                    line = step + first

                    def tile(row: Index, count: int, tiles: int) -> None:
                        number = step * pixels.width + row
                        self._tile(columns, (count, tiles), pixels.at(line, row), pixels, ahead, number, {})

                    emit_runs_of_tiles(nest.b, nest.kernel, 0, pixels.width, tile)

            self._panels(panel)

        lines = -(-nest.options.block_rows // pixels.width) if isinstance(pixels.width, int) else UNBOUNDED
        emit_blocks(nest.b, pixels.height, 1, lines, block, nest.options.rows)

    def wrapped(self, pixels: Pixels) -> None:
        """Go by tiles that continue from line to line."""
        nest, every = self.nest, pixels.height * pixels.width
        by_blocks, by_tiles = nest.options.shares_of_rows(every)

        def block(first: Index, rows: Index) -> None:
            self._panels(lambda columns: self._wrapped_panel(columns, first, rows, pixels, by_tiles))

        emit_blocks(nest.b, every, nest.kernel.tile.rows, UNBOUNDED, block, by_blocks)

    def _wrapped_panel(self, columns: Columns, first: Index, rows: Index, pixels: Pixels, share: Partition) -> None:
        """Multiply a block of pixels, or a share of its tiles, by a panel; tiles continue from line to line."""
        nest = self.nest
        ahead = nest.product.ahead(columns, rows)

        def tile(row: Index, count: int) -> None:
            position, line = row % pixels.width, row // pixels.width
            # From the last pixel of a line to the first of the next.
            back = pixels.width - 1
            jumps = [line - back * step for line, step in zip(pixels.line_out, pixels.step_out, strict=True)]
            wrap: dict[str, Index] = {
                "position": position,
                "width": pixels.width,
                "input_jump": pixels.line_in - back * pixels.step_in,
                "output_jump": jumps[0],
                **{f"extra_jump{index}": jump for index, jump in enumerate(jumps[1:])},
            }
            self._tile(columns, (count, 1), pixels.at(line, position), pixels, ahead, row - first, wrap)

        emit_row_tiles(nest.b, first, rows, nest.kernel.tile.rows, tile, share)

    def _panels(self, body: Callable[[Columns], None]) -> None:
        nest = self.nest
        shape, kernel = nest.shape, nest.kernel
        columns = nest.options.columns
        dot_group = kernel.dot.right_group
        emit_panels(nest.b, self.filters, shape.filters, nest.product.panel_rows, kernel.tile, dot_group, body, columns)

    def _tile(
        self,
        columns: Columns,
        tiles: tuple[int, int],
        at: tuple[Index, Offsets],
        pixels: Pixels,
        ahead: PanelPrefetch,
        row: Index,
        wrap: dict[str, Index],
    ) -> None:
        """
        Call the micro-kernel for `tiles`, given as (rows of each, number of tiles).

        Their first pixel has the offsets `at`, and is number `row` of the pixels that share a panel. `wrap` has the
        arguments for a tile that continues from line to line.
        """
        product, (rows, together) = self.nest.product, tiles
        column = columns.start + self.column
        offsets = TileOffsets(*at, pixels.step_in, pixels.step_out, (self.source, self.target))
        line = None if wrap else (pixels.width, together)
        variant = product.variant(columns, rows, self.whole_rows, line)
        product.call(variant, columns, offsets, ahead, row, column, count=together, wrap=wrap)

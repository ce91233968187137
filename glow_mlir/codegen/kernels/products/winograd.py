"""
Convolution with 3x3 filters by Winograd's algorithm, in tiles of two or four outputs in each direction.

    for each block of tiles {
        input transform of all channels, into `inputs` [point][tile][channel]
        for each panel of filters {
            for each point: matrix product, into `products` [point][tile][filter of the panel]
            output transform, bias and epilogue
        }
    }

The transforms are functions that all layers share, apart from the epilogue. A tile that reaches beyond the input is
first copied to a patch padded with zeros; of a tile that reaches beyond the output, only existing pixels are stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import numbers
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.convolution import ConvShape
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_blocks, emit_gemm, emit_panels
from glow_mlir.codegen.kernels.products.image_tiles import (
    GRID,
    STEPS,
    TiledProduct,
    TileOutput,
    Tiles,
    offset_of,
    pixel_offsets,
    pixel_steps,
)
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tiles import Columns, distinct, line_elements, tile_for
from glow_mlir.codegen.kernels.products.winograd_transforms import emit_product
from glow_mlir.codegen.math.half import is_half, widen
from glow_mlir.constants.winograd import OUTPUTS, TAPS, TileForm
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class WinogradShape:
    """The sizes of a convolution with 3x3 filters: `extents` of output images, and `stride` of filters in pixels."""

    extents: Sequence[int]
    batch: int
    channels: int
    filters: int
    stride: int = 1
    direct: int = 1
    """The number of products of the plain kernel in the time of one f32 product."""
    is_packed: bool = True
    """Whether the filters are transformed before the run."""

    def tiles(self, form: TileForm) -> int:
        """Return the number of tiles that cover the output images."""
        height, width = self.extents
        return self.batch * -(-height // form.height) * -(-width // form.width)

    def suits(self, target: Target, element: Attribute) -> bool:
        """Whether channels and filters are whole vectors."""
        lanes = target.vector_width(element)
        return not (self.channels % lanes or self.filters % lanes)

    def forms(self, target: Target, element: Attribute) -> list[TileForm | None]:
        """
        Return the forms of tiles, the fastest first; `None` stands for the plain kernel.

        Costs are numbers of products per channel and filter. There is one product per point of a tile, or, in the plain
        kernel, per output and filter element; in addition, points are transformed and weights are read. Transforms need
        whole vectors of channels and filters; otherwise only the plain kernel remains.
        """
        if not self.suits(target, element):
            return [None]
        costs, rows = kernel_costs(target), tile_for(target, element).rows
        fetching, transforming = costs.winograd_fetched_products, costs.winograd_products
        packing = 0 if self.is_packed else costs.winograd_packed_products
        work = 1 + transforming / self.channels + transforming / self.filters
        plain = TAPS**2 * (self.batch * math.prod(self.extents) + fetching)
        found: dict[TileForm | None, float] = {None: plain / self.direct}
        for height, width in itertools.product(OUTPUTS, OUTPUTS):
            form = TileForm(height, width, self.stride)
            tiles = self.tiles(form)
            reading = fetching if tiles > rows else costs.winograd_read_products
            found[form] = math.prod(form.inputs) * tiles * work + math.prod(form.weights) * (reading + packing)
        return sorted(found, key=found.__getitem__)

    def candidates(self, target: Target, element: Attribute) -> list[dict[str, int]]:
        """
        Return choices of `height` and `width` of a tile, tiles of a `block`, and whether to `prefetch`, guesses first.

        The filters of the next point are prefetched if several tiles of rows share this work, and all filters exceed
        the cache. For the two fastest forms, candidates also have the opposite, and blocks of half and twice as many
        tiles.
        """
        usual = kernel_costs(target).winograd_tiles
        forms = [form for form in self.forms(target, element) if form is not None]
        guesses = [self._guess(target, element, form) for form in forms]
        others = [
            {**guess, **change}
            for guess, form in list(zip(guesses, forms, strict=True))[:2]
            for change in (
                {"prefetch": 1 - guess["prefetch"]},
                *({"block": min(self.tiles(form), block)} for block in (usual // 2, 2 * usual)),
            )
        ]
        return distinct([*guesses, *others])

    def _guess(self, target: Target, element: Attribute, form: TileForm) -> dict[str, int]:
        tile = tile_for(target, element)
        block = _block(self.tiles(form), -(-self.filters // tile.panel), tile.rows, target)
        held = math.prod(form.weights) * self.channels * self.filters * bit_width(element) // 8
        prefetch = block > tile.rows and held > target.l2_bytes // 2
        return {"height": form.height, "width": form.width, "block": block, "prefetch": int(prefetch)}

    def blocking(self, target: Target, element: Attribute, chosen: Mapping[str, int]) -> Blocking:
        """Return how the convolution is divided with one of the candidates."""
        form = TileForm(chosen["height"], chosen["width"], self.stride)
        panel, padding = tile_for(target, element).panel, line_elements(target, element)
        return Blocking(
            form, self.tiles(form), chosen["block"], self.channels, panel, padding, bool(chosen["prefetch"])
        )


def _block(tiles: int, panels: int, rows: int, target: Target) -> int:
    """
    Return the number of tiles of a block.

    With several threads, each has the same number of blocks. If there are too few tiles, all threads share one block
    and divide its panels of filters, provided that there is a panel for each; otherwise a block has at least `rows`
    tiles, the rows of a tile of the product.
    """
    costs, threads = kernel_costs(target), target.policy.threads
    if threads == 1:
        return min(tiles, costs.winograd_tiles)
    if tiles < costs.winograd_fewest_tiles * threads:
        return tiles if panels >= threads else min(tiles, max(rows, -(-tiles // threads)))
    blocks = threads * max(1, round(tiles / (threads * costs.winograd_tiles)))
    return -(-tiles // blocks)


@dataclass(frozen=True)
class Blocking:
    """
    How a convolution is divided into tiles and blocks: `tiles` of all possible images, `block` of them at once.

    With `prefetch`, the filters of the next point are fetched while those of a point are multiplied.
    """

    form: TileForm
    tiles: int
    block: int
    channels: int
    panel: int
    padding: int
    """Elements between the points of a buffer, so that all points of a tile do not map to the same cache sets."""
    prefetch: bool = False

    def tiles_of(self, shape: ConvShape) -> Index:
        """Return the number of tiles that cover the images of a convolution."""
        sizes = zip(numbers(shape.outputs), (self.form.height, self.form.width), strict=True)
        return shape.batch * math.prod(-(-extent // size) for extent, size in sizes)

    @property
    def points(self) -> int:
        """The number of points of a tile."""
        return math.prod(self.form.inputs)

    @property
    def input_step(self) -> int:
        """The step between points of the transformed input in elements."""
        return self.block * self.channels + self.padding

    @property
    def product_step(self) -> int:
        """The step between points of the products in elements."""
        return self.block * self.panel + self.padding

    def scratch(self) -> list[tuple[int, ...]]:
        """Return the shapes of the scratch buffers of `emit_winograd`: inputs, products, and the patch."""
        inputs = (self.points, self.input_step)
        products = (self.points, self.product_step)
        return [inputs, products, (self.points, self.channels)]


@dataclass(frozen=True)
class InputTransform(SharedFunction):
    """The function that transforms the input, with elements of type `source`, of a block of tiles."""

    element: Attribute
    lanes: int
    form: TileForm
    source: Attribute

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = (*GRID, *STEPS, "height", "width", "channels", "point_step")
        return [*((name, ptr) for name in ("points", "input", "patch")), *((name, index_type) for name in numbers)]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"winograd.input.{_name(self.form)}.{self.source}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        line = b.stack(self.element, math.prod(self.form.inputs) * self.lanes)
        with b.loop(0, given["count"]) as index:
            start, line_step, pixel_step = self._source(b, given, index)
            target = given["points"].at(index * given["channels"], self.element)
            with b.loop(0, given["channels"], self.lanes) as channel:
                source, points = start.at(channel, self.source), target.at(channel, self.element)
                self._transform(b, source, line_step, pixel_step, points, given["point_step"], line)

    def _source(self, b: Builder, given: dict[str, Value], index: Value) -> list[Value]:
        """Return the address of the input of a tile, and its steps between lines and between pixels."""
        lines, pixels = self.form.inputs
        image, *corner = Tiles(b, given, self.form.height, self.form.width).origin(index)
        y, x = (coordinate * self.form.stride for coordinate in corner)
        offset = offset_of((image, y, x), [given[step] for step in STEPS])
        source = given["input"].at(offset, self.source)
        height, width = b.min(given["height"] - y, lines), b.min(given["width"] - x, pixels)
        channels = given["channels"]

        def patch() -> list[Value]:
            zero = b.constant(0.0, vector(self.source, self.lanes))
            with b.loop(0, channels * (lines * pixels), self.lanes) as element:
                given["patch"].at(element, self.source).store(zero)
            with b.loop(0, height) as line, b.loop(0, width) as pixel:
                read = source.at(line * given["line_step"] + pixel * given["pixel_step"], self.source)
                written = given["patch"].at((line * pixels + pixel) * channels, self.source)
                with b.loop(0, channels, self.lanes) as channel:
                    written.at(channel, self.source).store(read.at(channel, self.source).load(zero.type))
            return [given["patch"], channels * pixels, channels]

        whole = (height >= lines) & (width >= pixels)
        return b.either(whole, lambda: [source, given["line_step"], given["pixel_step"]], patch)

    def _transform(
        self, b: Builder, source: Value, line_step: Value, pixel_step: Value, points: Value, step: Value, buffer: Value
    ) -> None:
        """Transform one vector of channels of a tile: its columns into the buffer, then the lines of the buffer."""
        (lines, pixels), type_ = self.form.inputs, vector(self.element, self.lanes)
        vertical, horizontal = self.form.axes
        with b.loop(0, pixels) as x:
            column = source.at(x * pixel_step, self.source)
            loaded = [column.at(line_step * y, self.source).load(vector(self.source, self.lanes)) for y in range(lines)]
            values = [widen(b, value) for value in loaded] if is_half(self.source) else loaded
            for y, value in enumerate(emit_product(b, vertical.input, values)):
                buffer.at((x + y * pixels) * self.lanes, self.element).store(value)
        with b.loop(0, lines) as y:
            row = buffer.at(y * (pixels * self.lanes), self.element)
            values = [row.at(x * self.lanes, self.element).load(type_) for x in range(pixels)]
            target = points.at(y * (step * pixels), self.element)
            for x, value in enumerate(emit_product(b, horizontal.input, values)):
                target.at(step * x, self.element).store(value)


def _name(form: TileForm) -> str:
    """Return a form as part of a function name."""
    return f"{form.height}x{form.width}.{form.stride}"


@dataclass(frozen=True)
class OutputTransform(TileOutput):
    """The function that transforms the products of a block of tiles and one panel of filters, and stores them."""

    form: TileForm
    panel: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ("height", "width", "columns", "point_step")
        return [*super().parameters, ("products", ptr), *((name, index_type) for name in numbers)]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"winograd.output.{_name(self.form)}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        form = self.form
        # The transformed columns, and a line of results.
        buffer = b.stack(self.element, (form.height * form.inputs[1] + form.width) * self.lanes)
        with b.loop(0, given["count"]) as index:
            image, y, x = Tiles(b, given, form.height, form.width).origin(index)
            height = b.min(given["height"] - y, form.height)
            width = b.min(given["width"] - x, form.width)
            offsets = pixel_offsets(given, self.extras, (image, y, x))
            products = given["products"].at(index * self.panel, self.element)
            with b.loop(0, given["columns"], self.lanes) as channel:
                self._columns(b, products.at(channel, self.element), given["point_step"], buffer)
                with b.loop(0, height) as line:
                    steps = pixel_steps(given, self.extras)
                    starts = [p + line * step[1] for p, step in zip(offsets, steps, strict=True)]
                    self._line(b, given, buffer, line, width, starts, channel)

    def _columns(self, b: Builder, products: Value, step: Value, buffer: Value) -> None:
        """Transform the columns of one vector of a tile into the buffer, [output line][column]."""
        (lines, pixels), type_ = self.form.inputs, vector(self.element, self.lanes)
        vertical, _ = self.form.axes
        with b.loop(0, pixels) as x:
            column = products.at(x * step, self.element)
            values = [column.at(step * (y * pixels), self.element).load(type_) for y in range(lines)]
            for y, value in enumerate(emit_product(b, vertical.output, values)):
                buffer.at((x + y * pixels) * self.lanes, self.element).store(value)

    def _line(
        self,
        b: Builder,
        given: dict[str, Value],
        buffer: Value,
        line: Value,
        width: Value,
        starts: Sequence[Value],
        channel: Value,
    ) -> None:
        """Transform one line of the buffer, and store those of its pixels that exist."""
        pixels, type_ = self.form.inputs[1], vector(self.element, self.lanes)
        row = buffer.at(line * (pixels * self.lanes), self.element)
        values = [row.at(x * self.lanes, self.element).load(type_) for x in range(pixels)]
        results = buffer.at(self.form.height * pixels * self.lanes, self.element)
        bias = given["bias"].at(channel, self.element).load(type_) if self.bias else None
        for x, value in enumerate(emit_product(b, self.form.axes[1].output, values)):
            results.at(x * self.lanes, self.element).store(value if bias is None else value + bias)
        steps = [step[2] for step in pixel_steps(given, self.extras)]
        with b.loop(0, width, carried=list(starts)) as stores:
            value = results.at(stores.index * self.lanes, self.element).load(type_)
            self.store(b, given, value, stores.values, channel)
            stores.set(*(offset + step for offset, step in zip(stores.values, steps, strict=True)))


def emit_winograd(
    b: Builder,
    operands: ProductOperands,
    shape: ConvShape,
    *,
    cut: Blocking,
    source: Attribute,
    scratch: Sequence[Value],
    tiles: Partition = ALL,
    transform: Partition | None = ALL,
    columns: Partition | None = ALL,
) -> None:
    """
    Emit a convolution with two spatial dimensions, one group, a 3x3 filter, the strides of `cut`, and no dilation.

    The weights are as `layouts.winograd_panels` has them. The numbers of channels and filters are multiples of the
    lanes. The image has elements of type `source`. `scratch` has buffers of the shapes `cut.scratch()`. The rest is as
    for `emit_conv`.

    Either `tiles` divides the blocks of tiles. Or, with a single block, `transform` divides the tiles to transform
    (`None`: another function transforms them), and `columns` divides the panels of filters (`None`: another function
    multiplies them).
    """
    nest = _Nest(b, operands, tuple(scratch), shape, cut, source, transform, columns)
    count = cut.tiles if isinstance(shape.batch, int) else cut.tiles_of(shape)
    emit_blocks(b, count, tile_for(b.target, nest.element).rows, cut.block, nest.block, tiles)


@dataclass(frozen=True)
class _Nest(TiledProduct):
    """The state shared by the loops of one convolution."""

    shape: ConvShape
    cut: Blocking
    source: Attribute
    transform: Partition | None
    columns: Partition | None

    def block(self, first: Index, tiles: Index) -> None:
        """Compute a block of tiles."""
        if self.transform is not None:
            self._transform(first, tiles, self.transform)
        if self.columns is not None:
            depth, filters = math.prod(self.cut.form.weights) * self.cut.channels, self.shape.filters
            emit_panels(
                self.b,
                self.operands.weights,
                filters,
                depth,
                tile_for(self.b.target, self.element),
                self.element,
                lambda columns: self._panel(columns, first, tiles),
                self.columns,
            )

    def _transform(self, first: Index, tiles: Index, share: Partition) -> None:
        """Transform the inputs of a share of the tiles of a block."""
        inputs, _, patch = self.scratch
        if not share.is_all:
            begin, end = share.of(tiles)
            inputs, first, tiles = inputs.at(begin * self.cut.channels, self.element), begin + first, end - begin
        height, width = self.shape.outputs
        stride = self.cut.form.stride
        InputTransform(self.element, self.lanes, self.cut.form, self.source).call(
            self.b,
            points=inputs,
            input=self.operands.inp,
            patch=patch,
            height=(height - 1) * stride + TAPS,
            width=(width - 1) * stride + TAPS,
            image_step=self.shape.input_image,
            line_step=self.shape.input_pitches[0],
            pixel_step=self.shape.input_pitches[1],
            channels=self.cut.channels,
            point_step=self.cut.input_step,
            **self._tiles(first, tiles),
        )

    def _tiles(self, first: Index, tiles: Index) -> dict[str, Index]:
        """Return the arguments for the tiles of a block: the first, their number, and the tiles per line and image."""
        form = self.cut.form
        sizes = zip(self.shape.outputs, (form.height, form.width), strict=True)
        height, width = (-(-extent // size) for extent, size in sizes)
        return {"first": first, "count": tiles, "across": width, "image_tiles": height * width}

    def _panel(self, columns: Columns, first: Index, tiles: Index) -> None:
        """Multiply the inputs of a block by a panel of filters, point by point, and transform the products."""
        b, cut, element = self.b, self.cut, self.element
        inputs, products, _ = self.scratch
        channels, panel = cut.channels, cut.panel
        (lines, pixels), weights = cut.form.inputs, cut.form.weights
        with b.loop(0, lines) as y, b.loop(0, pixels) as x:
            point = y * pixels + x
            # The points after the last weight use the last weight.
            weight = b.min(y, weights[0] - 1) * weights[1] + b.min(x, weights[1] - 1)
            operands = ProductOperands(
                products.at(point * cut.product_step, element),
                inputs.at(point * cut.input_step, element),
                columns.weights.at(weight * (channels * panel), element),
                dot=multiply_adds(element),
            )
            options = GemmOptions(prefetch=cut.prefetch, whole_rows=cut.tiles)
            emit_gemm(b, operands, tiles, columns.count, channels, channels, panel, options=options)
        height, width = self.shape.outputs
        OutputTransform.of(self.operands, self.lanes, form=cut.form, panel=panel).call(
            b,
            products=products,
            height=height,
            width=width,
            image_step=self.shape.output_image,
            line_step=self.shape.output_pitches[0],
            pixel_step=self.shape.output_pitches[1],
            columns=columns.count,
            point_step=cut.product_step,
            **self._tiles(first, tiles),
            **self.destination(columns.start),
        )

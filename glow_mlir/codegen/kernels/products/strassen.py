"""
Matrix product with a constant right operand by Strassen's algorithm, one level deep (`constants/strassen.py`).

    for each block of rows {
        sum quarters of the block, into `sums` [product][row of a half][depth of a half]
        for each panel of columns in the first half, with its twin in the second {
            seven products, into `products` [product][row of a half][column of the panel]
            sum the products, apply bias and epilogue
        }
    }

The rows are pixels of images: of a 1x1 convolution, or of one image with a single line. They belong to items, such as
the images of a batch. A row is only paired with a row of the same item, so that large numbers or NaN in one item do not
affect other items. A block is either several items or some rows of one item. The rows of each item are divided into an
upper and a lower half; if their number is odd, the upper half has one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Prologue
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_blocks, emit_gemm
from glow_mlir.codegen.kernels.products.image_tiles import (
    GRID,
    STEPS,
    TiledProduct,
    TileOutput,
    Tiles,
    extra_arguments,
    extra_kinds,
    extra_parameters,
    extra_vectors,
    pixel_offsets,
)
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tile_store import ExtraKind
from glow_mlir.codegen.kernels.products.tiles import Tile, distinct, line_elements, tile_for
from glow_mlir.codegen.kernels.products.winograd_transforms import emit_product
from glow_mlir.constants.strassen import LEFT, PRODUCTS, RESULT
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of a product: `items` with `rows` each; only rows of the same item are paired."""

    items: int
    rows: int
    columns: int
    depth: int

    @property
    def all_rows(self) -> int:
        """The rows of all items."""
        return self.items * self.rows

    @property
    def half(self) -> int:
        """The number of rows of the upper half of an item."""
        return -(-self.rows // 2)


def strassen_is_faster(target: Target, element: Attribute, sizes: Sizes) -> bool:
    """
    Whether `strassen_tiles` has choices, and the seven products with their sums are faster than the plain product.

    Costs are multiply-adds per element of the left operand and column.
    """
    if not strassen_tiles(target, element, sizes):
        return False
    saved = 1 - 2 * sizes.half / sizes.rows * PRODUCTS / 8
    costs = kernel_costs(target)
    summing, reading = costs.strassen_products, costs.strassen_read_products
    return summing / sizes.columns + summing / sizes.depth + 0.75 * reading / sizes.all_rows < saved


def strassen_tiles(target: Target, element: Attribute, sizes: Sizes) -> list[dict[str, int]]:
    """
    Return choices of the `rows` of a block and whether to `prefetch`, the best guess first; none if the product cannot
    be divided into halves.

    The first guess is a block whose sums stay in the cache; others are half and twice as large. The right operand is
    prefetched for few rows, if it exceeds the cache.
    """
    tile, costs = tile_for(target, element), kernel_costs(target)
    whole = sizes.columns % (2 * tile.panel) == sizes.depth % (2 * tile.lanes) == 0
    if not whole or sizes.rows < 2 or not sizes.items:
        return []
    held = target.l2_bytes * 8 // bit_width(element) * 3 // 4
    half = max(8, held // (PRODUCTS * (sizes.depth // 2 + tile.panel)) // tile.rows) * tile.rows
    together = half // sizes.half
    blocks = -(-sizes.items // together) if together else sizes.items * -(-sizes.rows // (2 * half))
    right_bytes = PRODUCTS * sizes.depth * sizes.columns // 4 * bit_width(element) // 8
    found: list[dict[str, int]] = []
    for count in (blocks, 2 * blocks, -(-blocks // 2)):
        block = _block_rows(sizes, tile, count)
        prefetch = right_bytes > target.l2_bytes // 2 and upper_rows(block, sizes.rows) <= costs.prefetched_rows
        found.append({"rows": block, "prefetch": int(prefetch)})
    found.insert(1, {**found[0], "prefetch": 1 - found[0]["prefetch"]})
    return distinct(found)


def _block_rows(sizes: Sizes, tile: Tile, count: int) -> int:
    """Return the rows of a block for about `count` blocks: whole items, or whole tiles in both halves of an item."""
    if count <= sizes.items:
        return -(-sizes.items // count) * sizes.rows
    each = -(-count // sizes.items)
    return min(sizes.rows, 2 * tile.rows * -(-sizes.rows // (2 * tile.rows * each)))


def upper_rows(block: int, item: int) -> int:
    """Return the number of rows of the upper halves of a block of `block` rows, if an item has `item` rows."""
    return block // item * -(-item // 2) if block >= item else -(-block // 2)


@dataclass(frozen=True)
class Rows:
    """
    The rows of a product as pixels of images: `extents` are the numbers of images, lines and pixels per line.

    The steps between images, lines and pixels are in elements, for the left operand and for the result.
    """

    extents: Shape
    input_steps: Sequence[Index]
    output_steps: Sequence[Index]

    @property
    def count(self) -> int:
        """The number of rows."""
        images, lines, pixels = self.extents
        return images * lines * pixels


@dataclass(frozen=True)
class Halves:
    """
    How a product is divided: blocks of at most `block` rows, which are part of an item or whole items; halves with
    `depth` elements; and panels. The sums of `held` rows of halves are kept at once: those of all blocks, or, if it is
    0, of one block.
    """

    block: int
    item: int
    """The number of rows of an item, which may be paired."""
    depth: int
    panel: int
    padding: int
    """Elements between products in a buffer, and between rows, so that they do not map to the same cache sets."""
    held: int = 0
    prefetch: bool = False
    """Whether to prefetch the right operand of the next product."""

    @staticmethod
    def of(target: Target, element: Attribute, sizes: Sizes, chosen: Mapping[str, int]) -> Halves:
        """Return how a product is divided with one of the `strassen_tiles`."""
        panel, padding = tile_for(target, element).panel, line_elements(target, element)
        held, prefetch = chosen.get("held", 0), bool(chosen["prefetch"])
        return Halves(chosen["rows"], sizes.rows, sizes.depth // 2, panel, padding, held, prefetch)

    @property
    def rows(self) -> int:
        """The number of rows of the upper halves of a block."""
        return upper_rows(self.block, self.item)

    @property
    def row_step(self) -> int:
        """The step from row to row of the sums in elements."""
        return self.depth + self.padding

    @property
    def sum_step(self) -> int:
        """The step from one sum to the next in elements."""
        return max(self.rows, self.held) * self.row_step + self.padding

    @property
    def product_step(self) -> int:
        """The step from one product to the next in elements."""
        return self.rows * self.panel + self.padding

    def scratch(self) -> list[Shape]:
        """Return the shapes of the scratch buffers of `emit_strassen`: sums and products."""
        return [(PRODUCTS, self.sum_step), (PRODUCTS, self.product_step)]


_HALVES = ("upper", "lower", "begin", "rows")
"""The rows of the halves of a piece; the first and the number of the block's upper rows to compute."""


def _twins(b: Builder, given: dict[str, Value], number: Value) -> tuple[Value, Value, Value]:
    """
    Return two paired rows of a block, and whether the second exists; otherwise it is the last row of its piece.

    `number` counts the rows of the upper halves that the function computes.
    """
    index, upper, lower = given["begin"] + number, given["upper"], given["lower"]
    inside, skipped = index % upper, index // upper * lower
    exists = inside < lower
    return index + skipped, index + skipped + b.min(inside + upper, upper + lower - 1) - inside, exists


@dataclass(frozen=True)
class LeftSums(SharedFunction):
    """The function that sums quarters of a block of rows, optionally after a prologue on their elements."""

    element: Attribute
    lanes: int
    prologue: Prologue | None
    extras: tuple[ExtraKind, ...]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ((name, index_type) for name in (*GRID, *STEPS, *_HALVES, "depth", "row_step", "sum_step"))
        return [("sums", ptr), ("input", ptr), *numbers, *extra_parameters(self.extras)]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return "strassen.left"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, depth = Tiles(b, given), given["depth"]
        with b.loop(0, given["rows"]) as number:
            *twins, _ = _twins(b, given, number)
            rows = [pixel_offsets(given, self.extras, tiles.origin(row)) for row in twins]
            target = given["sums"].at(number * given["row_step"], self.element)
            with b.loop(0, depth, self.lanes) as first:
                quarters = [self._read(b, given, row, column) for row in rows for column in (first, depth + first)]
                for product, value in enumerate(emit_product(b, LEFT, quarters)):
                    target.at(given["sum_step"] * product + first, self.element).store(value)

    def _read(self, b: Builder, given: dict[str, Value], offsets: Sequence[Value], column: Value) -> Value:
        """Load one vector of a row, and apply the prologue."""
        value = given["input"].at(offsets[0] + column, self.element).load(vector(self.element, self.lanes))
        if self.prologue is None:
            return value
        vectors = zip(*extra_vectors(given, self.extras, offsets[1:], column), strict=True)
        sources = [extra.read(b, offset, extra.strides[-1], self.lanes) for extra, offset in vectors]
        return self.prologue.apply(b, value, sources)


@dataclass(frozen=True)
class ResultSums(TileOutput):
    """The function that sums the products of a block of rows and two panels of columns, and stores the results."""

    panel: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ((name, index_type) for name in (*_HALVES, "half_columns", "product_step"))
        return [*super().parameters, ("products", ptr), *numbers]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return "strassen.result"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, type_ = Tiles(b, given), vector(self.element, self.lanes)
        with b.loop(0, given["rows"]) as number:
            *twins, exists = _twins(b, given, number)
            upper, lower = (pixel_offsets(given, self.extras, tiles.origin(row)) for row in twins)
            products = given["products"].at(number * self.panel, self.element)
            with b.loop(0, self.panel, self.lanes) as column:
                source = products.at(column, self.element)
                values = [source.at(given["product_step"] * p, self.element).load(type_) for p in range(PRODUCTS)]
                quarters = emit_product(b, RESULT, values)
                columns = [column, column + given["half_columns"]]
                self._row(b, given, quarters[:2], upper, columns)
                with b.when(exists):
                    self._row(b, given, quarters[2:], lower, columns)

    def _row(
        self,
        b: Builder,
        given: dict[str, Value],
        values: Sequence[Value],
        offsets: Sequence[Value],
        columns: Sequence[Value],
    ) -> None:
        """Finish a vector of each half of the columns of one row."""
        for value, column in zip(values, columns, strict=True):
            if self.bias:
                value = value + given["bias"].at(column, self.element).load(value.type)
            self.store(b, given, value, offsets, column)


def emit_strassen(
    b: Builder,
    operands: ProductOperands,
    rows: Rows,
    columns: int,
    *,
    cut: Halves,
    scratch: Sequence[Value],
    prologue: Prologue | None = None,
    share: Partition = ALL,
    sums: Partition | None = ALL,
    pairs: Partition | None = ALL,
) -> None:
    """
    Emit the product of `rows`, with `2 * cut.depth` elements each, and a matrix with `columns`, plus the bias.

    The weights are as `layouts.strassen_panels` has them. The prologue is applied to each element of the rows; its
    extra operands, and those of the epilogue, have the axes images, lines, pixels and columns. `scratch` has buffers of
    the shapes `cut.scratch()`.

    Either `share` divides the rows of each half of a block. Or `sums` divides the rows to sum (`None`: another function
    sums them), and `pairs` divides the pairs of panels (`None`: another function multiplies them).
    """
    _Nest(b, operands, tuple(scratch), rows, columns, cut, prologue, share, sums, pairs).blocks()


@dataclass(frozen=True)
class _Block:
    """
    A block of `pieces` with `count` rows each, which are divided into halves: whole items, or some rows of one item.

    `first` is the first row, `above` the number of rows of the upper halves before it.
    """

    first: Index
    above: Index
    pieces: int
    count: int

    @property
    def upper(self) -> int:
        """The number of rows of the upper half of a piece."""
        return -(-self.count // 2)


@dataclass(frozen=True)
class _Slice:
    """A slice of a block: a range of rows of the upper halves, with their twins."""

    block: _Block
    begin: Index
    rows: int


@dataclass(frozen=True)
class _Nest(TiledProduct):
    """The state shared by the loops of one product."""

    rows: Rows
    columns: int
    cut: Halves
    prologue: Prologue | None
    share: Partition
    sums: Partition | None
    pairs: Partition | None

    def blocks(self) -> None:
        """Compute all blocks: one or more items each, or some rows of an item."""
        b, cut, tile = self.b, self.cut, tile_for(self.b.target, self.element)
        items, half = self.rows.count // cut.item, -(-cut.item // 2)

        def several(first: Index, count: Index) -> None:
            assert isinstance(count, int), "blocks of a known number of items have a known size"
            self._block(_Block(first * cut.item, first * half, count, cut.item))

        if cut.block >= cut.item:
            emit_blocks(b, items, 1, cut.block // cut.item, several)
            return
        with b.loop(0, items) as item:

            def some(first: Index, count: Index) -> None:
                assert isinstance(count, int), "blocks of a known number of rows have a known size"
                # All blocks of an item except the last have an even number of rows.
                self._block(_Block(item * cut.item + first, item * half + b.index(first) // 2, 1, count))

            emit_blocks(b, cut.item, 2 * tile.rows, cut.block, some)

    def _block(self, block: _Block) -> None:
        """Compute a block of rows."""
        half = block.pieces * block.upper

        def slice_(begin: Index, rows: Index) -> None:
            assert isinstance(rows, int), "slices of a known number of rows have a known size"
            self._slice(_Slice(block, begin, rows))

        emit_blocks(self.b, half, 1, half, slice_, self.share)

    def _slice(self, slice_: _Slice) -> None:
        """Compute a slice of a block."""
        cut, b, element = self.cut, self.b, self.element
        sums = self.scratch[0]
        if cut.held:
            sums = sums.at(slice_.block.above * cut.row_step, element)
        extras = () if self.prologue is None else self.prologue.extras

        def sum_up(skipped: Index, rows: Index) -> None:
            LeftSums(element, self.lanes, self.prologue, extra_kinds(extras)).call(
                b,
                sums=sums.at(skipped * cut.row_step, element),
                input=self.operands.inp,
                depth=cut.depth,
                row_step=cut.row_step,
                sum_step=cut.sum_step,
                **{**self._rows_of(slice_, self.rows.input_steps), "begin": slice_.begin + skipped, "rows": rows},
                **extra_arguments(extras, 0),
            )

        if self.sums is not None:
            emit_blocks(b, slice_.rows, 1, slice_.rows, sum_up, self.sums)
        if self.pairs is not None:
            begin, end = self.pairs.of(self.columns // 2 // cut.panel)
            with b.loop(begin * cut.panel, end * cut.panel, cut.panel) as column:
                self._products(column, sums, slice_)
                self._results(column, slice_)

    def _rows_of(self, slice_: _Slice, steps: Sequence[Index]) -> dict[str, Index]:
        """Return the arguments for the rows of a slice: tiles, steps, and halves."""
        _, lines, across = self.rows.extents
        block = slice_.block
        grid = dict(zip(GRID, (block.first, block.pieces * block.count, across, lines * across), strict=True))
        halves = dict(zip(_HALVES, (block.upper, block.count - block.upper, slice_.begin, slice_.rows), strict=True))
        return {**grid, **dict(zip(STEPS, steps, strict=True)), **halves}

    def _products(self, column: Index, sums: Value, slice_: _Slice) -> None:
        """Compute the seven products of rows of both halves of a block with two panels of columns."""
        b, cut, element = self.b, self.cut, self.element
        weights = self.operands.weights.at(column * (PRODUCTS * cut.depth), element)
        with b.loop(0, PRODUCTS) as product:
            operands = ProductOperands(
                self.scratch[1].at(product * cut.product_step, element),
                sums.at(product * cut.sum_step, element),
                weights.at(product * (cut.depth * cut.panel), element),
                dot=multiply_adds(element),
            )
            options = GemmOptions(prefetch=cut.prefetch, whole_rows=slice_.block.upper)
            emit_gemm(b, operands, slice_.rows, cut.panel, cut.depth, cut.row_step, cut.panel, options=options)

    def _results(self, column: Index, slice_: _Slice) -> None:
        """Finish the results of a slice in two panels of columns."""
        ResultSums.of(self.operands, self.lanes, panel=self.cut.panel).call(
            self.b,
            products=self.scratch[1],
            half_columns=self.columns // 2,
            product_step=self.cut.product_step,
            **self._rows_of(slice_, self.rows.output_steps),
            **self.destination(column),
        )

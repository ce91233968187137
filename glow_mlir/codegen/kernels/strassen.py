"""
Matrix product with a constant right operand by Strassen's algorithm, one level deep (`constants/strassen.py`).

    for each block of rows {
        sums of quarters of the block, into `sums` [product][row of a half][depth of a half]
        for each panel of columns in the first half, with its twin in the second {
            seven products, into `products` [product][row of a half][column of the panel]
            sums of the products, bias and epilogue
        }
    }

The rows are pixels of images: of a convolution whose filters have one element, or of one image with a single line.
They belong to items, as the images of a batch, and a row is paired with one of its own item alone: what is large, or no
number, in one item does not reach the others. A block is some rows of an item, which are cut into an upper and a lower
half, or several items, each of which is; of an odd number, the upper half has one more.
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
from glow_mlir.codegen.kernels.dot_products import multiply_adds
from glow_mlir.codegen.kernels.gemm import GemmOptions, emit_blocks, emit_gemm
from glow_mlir.codegen.kernels.image_tiles import (
    GRID,
    STEPS,
    TiledProduct,
    TileOutput,
    Tiles,
    extra_arguments,
    extra_kinds,
    extra_parameters,
    extra_vectors,
    pixel_places,
)
from glow_mlir.codegen.kernels.product_operands import ProductOperands
from glow_mlir.codegen.kernels.tile_store import ExtraKind
from glow_mlir.codegen.kernels.tiles import Tile, distinct, line_elements, tile_for
from glow_mlir.codegen.kernels.winograd_transforms import emit_product
from glow_mlir.constants.strassen import LEFT, PRODUCTS, RESULT
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of a product: `items` of `rows` each, of which two are paired if they are of one item."""

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
        """Rows of the upper half of an item."""
        return -(-self.rows // 2)


def strassen_is_faster(target: Target, element: Attribute, sizes: Sizes) -> bool:
    """
    Whether the seven products with their sums are faster than the plain product, where `strassen_tiles` has any.

    Costs are counted in multiply-adds for each element of the left operand and column.
    """
    if not strassen_tiles(target, element, sizes):
        return False
    saved = 1 - 2 * sizes.half / sizes.rows * PRODUCTS / 8
    costs = kernel_costs(target)
    summing, reading = costs.strassen_products, costs.strassen_read_products
    return summing / sizes.columns + summing / sizes.depth + 0.75 * reading / sizes.all_rows < saved


def strassen_tiles(target: Target, element: Attribute, sizes: Sizes) -> list[dict[str, int]]:
    """
    The `rows` of a block and whether to `prefetch`, for a product that can be cut into halves: guesses first.

    The first guess is a block whose sums stay in the cache, others are half and twice as large. The right operand is
    fetched ahead for few rows, where it is more than the cache holds.
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
    """The rows of a block where there are about `count`: whole items, or whole tiles in both halves of some of one."""
    if count <= sizes.items:
        return -(-sizes.items // count) * sizes.rows
    each = -(-count // sizes.items)
    return min(sizes.rows, 2 * tile.rows * -(-sizes.rows // (2 * tile.rows * each)))


def upper_rows(block: int, item: int) -> int:
    """How many rows the upper halves have of a block of so many rows, where an item has `item`."""
    return block // item * -(-item // 2) if block >= item else -(-block // 2)


@dataclass(frozen=True)
class Rows:
    """
    The rows of a product as pixels of images: how many images, lines and pixels of a line.

    The steps, between images, lines and pixels, are in elements, of the left operand and of the result.
    """

    extents: Shape
    input_steps: Sequence[Index]
    output_steps: Sequence[Index]

    @property
    def count(self) -> int:
        """How many rows there are."""
        images, lines, pixels = self.extents
        return images * lines * pixels


@dataclass(frozen=True)
class Halves:
    """
    How a product is cut: blocks of at most `block` rows, some of an `item` or whole ones, with halves of `depth`
    elements, and panels. The sums of `held` rows of halves are kept at once: of all blocks, or of one where it is 0.
    """

    block: int
    item: int
    """How many rows belong together, so that they may be paired."""
    depth: int
    panel: int
    padding: int
    """Elements between products in a buffer, and between rows: they would else meet in few lines of the cache."""
    held: int = 0
    prefetch: bool = False
    """Whether to fetch the right operand of the next product ahead."""

    @staticmethod
    def of(target: Target, element: Attribute, sizes: Sizes, chosen: Mapping[str, int]) -> Halves:
        """How a product is cut with one of the `strassen_tiles`."""
        panel, padding = tile_for(target, element).panel, line_elements(target, element)
        held, prefetch = chosen.get("held", 0), bool(chosen["prefetch"])
        return Halves(chosen["rows"], sizes.rows, sizes.depth // 2, panel, padding, held, prefetch)

    @property
    def rows(self) -> int:
        """Rows of the upper halves of a block."""
        return upper_rows(self.block, self.item)

    @property
    def row_step(self) -> int:
        """Elements from row to row of the sums."""
        return self.depth + self.padding

    @property
    def sum_step(self) -> int:
        """Elements from one sum to the next."""
        return max(self.rows, self.held) * self.row_step + self.padding

    @property
    def product_step(self) -> int:
        """Elements from one product to the next."""
        return self.rows * self.panel + self.padding

    def scratch(self) -> list[Shape]:
        """The shapes of the buffers that `emit_strassen` works in: sums and products."""
        return [(PRODUCTS, self.sum_step), (PRODUCTS, self.product_step)]


_HALVES = ("upper", "lower", "begin", "rows")
"""How many rows the halves of a piece have, and which of the upper ones of a block to do: the first, and how many."""


def _twins(b: Builder, given: dict[str, Value], place: Value) -> tuple[Value, Value, Value]:
    """
    Two rows of a block that are paired, and whether the second exists; else it is the last one of its piece once more.

    `place` counts those of the upper halves that the function does.
    """
    index, upper, lower = given["begin"] + place, given["upper"], given["lower"]
    inside, skipped = index % upper, index // upper * lower
    exists = inside < lower
    return index + skipped, index + skipped + b.min(inside + upper, upper + lower - 1) - inside, exists


@dataclass(frozen=True)
class LeftSums(SharedFunction):
    """The function that sums quarters of a block of rows, to whose elements a prologue may be applied first."""

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
        """What the function is called."""
        return "strassen.left"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, depth = Tiles(b, given), given["depth"]
        with b.loop(0, given["rows"]) as place:
            *twins, _ = _twins(b, given, place)
            rows = [pixel_places(given, self.extras, tiles.place(row)) for row in twins]
            target = given["sums"].at(place * given["row_step"], self.element)
            with b.loop(0, depth, self.lanes) as first:
                quarters = [self._read(b, given, row, column) for row in rows for column in (first, depth + first)]
                for product, value in enumerate(emit_product(b, LEFT, quarters)):
                    target.at(given["sum_step"] * product + first, self.element).store(value)

    def _read(self, b: Builder, given: dict[str, Value], places: Sequence[Value], column: Value) -> Value:
        """One vector of a row, after the prologue."""
        value = given["input"].at(places[0] + column, self.element).load(vector(self.element, self.lanes))
        if self.prologue is None:
            return value
        vectors = zip(*extra_vectors(given, self.extras, places[1:], column), strict=True)
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
        """What the function is called."""
        return "strassen.result"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, type_ = Tiles(b, given), vector(self.element, self.lanes)
        with b.loop(0, given["rows"]) as place:
            *twins, exists = _twins(b, given, place)
            upper, lower = (pixel_places(given, self.extras, tiles.place(row)) for row in twins)
            products = given["products"].at(place * self.panel, self.element)
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
        places: Sequence[Value],
        columns: Sequence[Value],
    ) -> None:
        """Finish a vector of each half of the columns of one row."""
        for value, column in zip(values, columns, strict=True):
            if self.bias:
                value = value + given["bias"].at(column, self.element).load(value.type)
            self.store(b, given, value, places, column)


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
    Emit the product of `rows`, twice `cut.depth` elements each, with a matrix of `columns`, plus the bias.

    The weights are as `layouts.strassen_panels` has them. The prologue is applied to each element of the rows; its
    extra operands, and those of the epilogue, are over images, lines, pixels and columns. `scratch` has buffers of the
    shapes that `cut` wants.

    The `share` is one of the rows of each half of a block. Or shares are of those rows as they are summed (`None`: they
    are already), and of the `pairs` of panels (`None`: they wait for the sums).
    """
    _Nest(b, operands, tuple(scratch), rows, columns, cut, prologue, share, sums, pairs).blocks()


@dataclass(frozen=True)
class _Block:
    """
    Some pieces of `count` rows each, which are cut into halves: items, or some rows of one.

    The first row, and how many rows the upper halves in front of it have.
    """

    first: Index
    above: Index
    pieces: int
    count: int

    @property
    def upper(self) -> int:
        """Rows of the upper half of a piece."""
        return -(-self.count // 2)


@dataclass(frozen=True)
class _Part:
    """Some rows of both halves of a block: those of the upper half to do."""

    block: _Block
    begin: Index
    rows: int


@dataclass(frozen=True)
class _Nest(TiledProduct):
    """What the loops of one product share."""

    rows: Rows
    columns: int
    cut: Halves
    prologue: Prologue | None
    share: Partition
    sums: Partition | None
    pairs: Partition | None

    def blocks(self) -> None:
        """Compute all blocks: one or more items each, or some of the rows of one."""
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
                # All blocks of an item but the last have an even number of rows.
                self._block(_Block(item * cut.item + first, item * half + b.index(first) // 2, 1, count))

            emit_blocks(b, cut.item, 2 * tile.rows, cut.block, some)

    def _block(self, block: _Block) -> None:
        """Compute a block of rows."""
        half = block.pieces * block.upper

        def part(begin: Index, rows: Index) -> None:
            assert isinstance(rows, int), "parts of a known number of rows have a known size"
            self._part(_Part(block, begin, rows))

        emit_blocks(self.b, half, 1, half, part, self.share)

    def _part(self, part: _Part) -> None:
        """Compute some rows of each half of a block."""
        cut, b, element = self.cut, self.b, self.element
        sums = self.scratch[0]
        if cut.held:
            sums = sums.at(part.block.above * cut.row_step, element)
        extras = () if self.prologue is None else self.prologue.extras

        def sum_up(skipped: Index, rows: Index) -> None:
            LeftSums(element, self.lanes, self.prologue, extra_kinds(extras)).call(
                b,
                sums=sums.at(skipped * cut.row_step, element),
                input=self.operands.inp,
                depth=cut.depth,
                row_step=cut.row_step,
                sum_step=cut.sum_step,
                **{**self._rows_of(part, self.rows.input_steps), "begin": part.begin + skipped, "rows": rows},
                **extra_arguments(extras, 0),
            )

        if self.sums is not None:
            emit_blocks(b, part.rows, 1, part.rows, sum_up, self.sums)
        if self.pairs is not None:
            begin, end = self.pairs.of(self.columns // 2 // cut.panel)
            with b.loop(begin * cut.panel, end * cut.panel, cut.panel) as column:
                self._products(column, sums, part)
                self._results(column, part)

    def _rows_of(self, part: _Part, steps: Sequence[Index]) -> dict[str, Index]:
        """Which rows the part of a block has, where they are, and how many are in the halves of the block."""
        _, lines, across = self.rows.extents
        block = part.block
        grid = dict(zip(GRID, (block.first, block.pieces * block.count, across, lines * across), strict=True))
        halves = dict(zip(_HALVES, (block.upper, block.count - block.upper, part.begin, part.rows), strict=True))
        return {**grid, **dict(zip(STEPS, steps, strict=True)), **halves}

    def _products(self, column: Index, sums: Value, part: _Part) -> None:
        """The seven products of rows of both halves of a block with two panels of columns."""
        b, cut, element = self.b, self.cut, self.element
        weights = self.operands.weights.at(column * (PRODUCTS * cut.depth), element)
        with b.loop(0, PRODUCTS) as product:
            operands = ProductOperands(
                self.scratch[1].at(product * cut.product_step, element),
                sums.at(product * cut.sum_step, element),
                weights.at(product * (cut.depth * cut.panel), element),
                dot=multiply_adds(element),
            )
            options = GemmOptions(prefetch=cut.prefetch, whole_rows=part.block.upper)
            emit_gemm(b, operands, part.rows, cut.panel, cut.depth, cut.row_step, cut.panel, options=options)

    def _results(self, column: Index, part: _Part) -> None:
        """Finish the results of some rows of both halves of a block in two panels of columns."""
        ResultSums.of(self.operands, self.lanes, panel=self.cut.panel).call(
            self.b,
            products=self.scratch[1],
            half_columns=self.columns // 2,
            product_step=self.cut.product_step,
            **self._rows_of(part, self.rows.output_steps),
            **self.destination(column),
        )

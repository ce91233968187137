"""
Matrix product with a constant right operand by Strassen's algorithm, one level deep; see `glow_mlir.strassen`.

    for each block of rows {
        sums of quarters of the block, into `sums` [product][row of a half][depth of a half]
        for each panel of columns in the first half, with its twin in the second {
            seven products, into `products` [product][row of a half][column of the panel]
            sums of the products, bias and epilogue
        }
    }

The rows are pixels of images: of a convolution whose filters have one element, or of one image with a single line. A
block is cut into an upper and a lower half of rows; of an odd number, the upper half has one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, Plane, Prologue
from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernels.gemm import GemmOptions, emit_blocks, emit_gemm
from glow_mlir.codegen.kernels.image_tiles import (
    GRID,
    STEPS,
    TileOutput,
    Tiles,
    pixel_places,
    plane_arguments,
    plane_kinds,
    plane_parameters,
    plane_vectors,
)
from glow_mlir.codegen.kernels.tile_store import PlaneKind
from glow_mlir.codegen.kernels.tiles import distinct, tile_for
from glow_mlir.codegen.kernels.winograd_transforms import emit_product
from glow_mlir.codegen.share import ALL, Share
from glow_mlir.codegen.shared_function import SharedFunction
from glow_mlir.codegen.target import Target, element_bits
from glow_mlir.codegen.types import f32, i64, ptr, vector
from glow_mlir.codegen.value import Index, Value
from glow_mlir.deferred import Blocks
from glow_mlir.dialects.shapes import Shape
from glow_mlir.strassen import LEFT, PRODUCTS, RESULT

PADDING = 16
"""Elements between products in a buffer, and between rows: they would else meet in few lines of the cache."""

SUMMING = 7
"""To how many multiply-adds the sums compare: for each element of the left operand, and for each of the result."""

READING = 3
"""To how many multiply-adds the time compares that it takes to read one element of the right operand."""

MOST_PREFETCHING = 256
"""Rows of a half up to which the right operand is fetched ahead; with more, each fetch would bring too little."""


def strassen_blocks(matrix: Shape, panel: int, axis: int) -> Blocks:
    """How `pack_strassen` packs a matrix `[K, N]` with its columns along `axis`: panels take columns of both halves."""
    depth, columns = matrix
    return Blocks(axis, panel, target=0, shape=(columns // 2 // panel, PRODUCTS, depth // 2, panel), sections=2)


def strassen_pays(target: Target, element: Attribute, rows: int, columns: int, depth: int) -> bool:
    """
    Whether the seven products with their sums are faster than the plain product, where `strassen_tiles` has any.

    Costs are counted in multiply-adds for each element of the left operand and column.
    """
    if rows < 4 * tile_for(target, element).rows or not strassen_tiles(target, element, rows, columns, depth):
        return False
    saved = 1 - (rows + rows % 2) / rows * PRODUCTS / 8
    return SUMMING / columns + SUMMING / depth + 0.75 * READING / rows < saved


def strassen_tiles(target: Target, element: Attribute, rows: int, columns: int, depth: int) -> list[dict[str, int]]:
    """
    The `rows` of a block and whether to `prefetch`, for a product that can be cut into halves: guesses first.

    The first guess is a block whose sums stay in the cache, others are half and twice as large. It has whole tiles in
    both halves. The right operand is fetched ahead for few rows, where it is more than the cache holds.
    """
    tile = tile_for(target, element)
    if columns % (2 * tile.panel) or depth % (2 * tile.lanes) or rows < 2:
        return []
    held = target.l2_bytes * 8 // element_bits(element) * 3 // 4
    half = max(8, held // (PRODUCTS * (depth // 2 + tile.panel)) // tile.rows) * tile.rows
    blocks = -(-rows // (2 * half))
    is_large = PRODUCTS * depth * columns // 4 * element_bits(element) // 8 > target.l2_bytes // 2
    found: list[dict[str, int]] = []
    for count in (blocks, 2 * blocks, -(-blocks // 2)):
        block = min(rows, 2 * tile.rows * -(-rows // (2 * tile.rows * count)))
        prefetch = int(is_large and -(-block // 2) <= MOST_PREFETCHING)
        found.append({"rows": block, "prefetch": prefetch})
    found.insert(1, {**found[0], "prefetch": 1 - found[0]["prefetch"]})
    return distinct(found)


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
    How a product is cut: blocks of at most `block` rows, which are all or some tiles in both halves, with halves of
    `depth` elements, and panels. The sums of `held` rows are kept at once: of all blocks, or of one where it is 0.
    """

    block: int
    depth: int
    panel: int
    held: int = 0
    prefetch: bool = False
    """Whether to fetch the right operand of the next product ahead."""

    @staticmethod
    def of(target: Target, element: Attribute, depth: int, chosen: Mapping[str, int]) -> Halves:
        """How a product of that depth is cut with one of the `strassen_tiles`."""
        panel, held = tile_for(target, element).panel, chosen.get("held", 0)
        return Halves(chosen["rows"], depth // 2, panel, held, bool(chosen["prefetch"]))

    @property
    def rows(self) -> int:
        """Rows of the upper half of a block."""
        return -(-self.block // 2)

    @property
    def row_step(self) -> int:
        """Elements from row to row of the sums."""
        return self.depth + PADDING

    @property
    def sum_step(self) -> int:
        """Elements from one sum to the next."""
        return max(self.rows, -(-self.held // 2)) * self.row_step + PADDING

    @property
    def product_step(self) -> int:
        """Elements from one product to the next."""
        return self.rows * self.panel + PADDING

    def scratch(self) -> list[Shape]:
        """The shapes of the buffers that `emit_strassen` works in: sums and products."""
        return [(PRODUCTS, self.sum_step), (PRODUCTS, self.product_step)]


_HALVES = ("upper", "lower", "begin", "rows")
"""How many rows the halves of a block have, and which of the upper ones to do: the first, and how many."""


@dataclass(frozen=True)
class LeftSums(SharedFunction):
    """The function that sums quarters of a block of rows, to whose elements a prologue may be applied first."""

    element: Attribute
    lanes: int
    prologue: Prologue | None
    planes: tuple[PlaneKind, ...]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ((name, i64) for name in (*GRID, *STEPS, *_HALVES, "depth", "row_step", "sum_step"))
        return [("sums", ptr), ("input", ptr), *numbers, *plane_parameters(self.planes)]

    @property
    def readable(self) -> str:
        """What the function is called."""
        return "strassen.left"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, depth = Tiles(b, given), given["depth"]
        with b.loop(0, given["rows"]) as place:
            index = given["begin"] + place
            # Where the lower half ends earlier, its last row is read once more.
            twin = b.min(given["upper"] + index, given["count"] - 1)
            rows = [pixel_places(given, self.planes, tiles.place(row)) for row in (index, twin)]
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
        vectors = zip(*plane_vectors(given, self.planes, places[1:], column), strict=True)
        sources = [plane.read(b, offset, plane.strides[-1], self.lanes) for plane, offset in vectors]
        return self.prologue.apply(b, value, sources)


@dataclass(frozen=True)
class ResultSums(TileOutput):
    """The function that sums the products of a block of rows and two panels of columns, and stores the results."""

    panel: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        numbers = ((name, i64) for name in (*_HALVES, "half_columns", "product_step"))
        return [*super().parameters, ("products", ptr), *numbers]

    @property
    def readable(self) -> str:
        """What the function is called."""
        return "strassen.result"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles, type_ = Tiles(b, given), vector(self.element, self.lanes)
        with b.loop(0, given["rows"]) as place:
            index = given["begin"] + place
            twin = given["upper"] + index
            upper, lower = (pixel_places(given, self.planes, tiles.place(row)) for row in (index, twin))
            products = given["products"].at(place * self.panel, self.element)
            with b.loop(0, self.panel, self.lanes) as column:
                source = products.at(column, self.element)
                values = [source.at(given["product_step"] * p, self.element).load(type_) for p in range(PRODUCTS)]
                quarters = emit_product(b, RESULT, values)
                columns = [column, column + given["half_columns"]]
                self._row(b, given, quarters[:2], upper, columns)
                with b.when(index < given["lower"]):
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
    out: Value,
    inp: Value,
    packed: Value,
    bias: Value | None,
    rows: Rows,
    columns: int,
    *,
    cut: Halves,
    scratch: Sequence[Value],
    element: Attribute = f32,
    prologue: Prologue | None = None,
    epilogue: Epilogue | None = None,
    planes: Sequence[Plane] = (),
    share: Share = ALL,
    sums: Share | None = ALL,
    pairs: Share | None = ALL,
) -> None:
    """
    Emit the product of `rows`, twice `cut.depth` elements each, with a matrix of `columns`, plus the bias.

    `packed` is as `packing.pack_strassen` makes it, aligned to a whole vector; `bias` has one element a column. The
    prologue is applied to each element of the rows, the epilogue to each result; their planes are over images, lines,
    pixels and columns. `scratch` has buffers of the shapes that `cut` wants.

    The `share` is one of the rows of each half of a block. Or shares are of those rows as they are summed (`None`: they
    are already), and of the `pairs` of panels (`None`: they wait for the sums).
    """
    lanes = b.target.vector_width(element)
    before = () if prologue is None else prologue.planes
    nest = _Nest(
        b,
        rows,
        columns,
        cut,
        LeftSums(element, lanes, prologue, plane_kinds(before)),
        ResultSums(element, lanes, bias is not None, epilogue, plane_kinds(planes), cut.panel),
        out,
        inp,
        packed,
        bias,
        tuple(planes),
        tuple(scratch),
        share,
        sums,
        pairs,
    )
    emit_blocks(b, rows.count, 2 * tile_for(b.target, element).rows, cut.block, nest.block)


@dataclass(frozen=True)
class _Part:
    """Some rows of both halves of a block: the first and the number of its rows; those of the upper half to do."""

    first: Index
    count: int
    begin: Index
    rows: int


@dataclass(frozen=True)
class _Nest:
    """What the loops of one product share."""

    b: Builder
    rows: Rows
    columns: int
    cut: Halves
    left: LeftSums
    result: ResultSums
    out: Value
    inp: Value
    packed: Value
    bias: Value | None
    planes: tuple[Plane, ...]
    scratch: tuple[Value, ...]
    share: Share
    sums: Share | None
    pairs: Share | None

    def block(self, first: Index, count: Index) -> None:
        """Compute a block of rows."""
        assert isinstance(count, int), "blocks of a known number of rows have a known size"
        half = -(-count // 2)

        def part(begin: Index, rows: Index) -> None:
            assert isinstance(rows, int), "parts of a known number of rows have a known size"
            self._part(_Part(first, count, begin, rows))

        emit_blocks(self.b, half, 1, half, part, self.share)

    def _part(self, part: _Part) -> None:
        """Compute some rows of each half of a block."""
        cut, b = self.cut, self.b
        sums = self.scratch[0]
        if cut.held:
            # All blocks but the last have an even number of rows.
            sums = sums.at(b.index(part.first) // 2 * cut.row_step, self.left.element)

        def sum_up(skipped: Index, rows: Index) -> None:
            self.left.call(
                b,
                sums=sums.at(skipped * cut.row_step, self.left.element),
                input=self.inp,
                depth=cut.depth,
                row_step=cut.row_step,
                sum_step=cut.sum_step,
                **{**self._rows_of(part, self.rows.input_steps), "begin": part.begin + skipped, "rows": rows},
                **plane_arguments(() if self.left.prologue is None else self.left.prologue.planes, 0),
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
        upper = -(-part.count // 2)
        grid = dict(zip(GRID, (part.first, part.count, across, lines * across), strict=True))
        halves = dict(zip(_HALVES, (upper, part.count - upper, part.begin, part.rows), strict=True))
        return {**grid, **dict(zip(STEPS, steps, strict=True)), **halves}

    def _products(self, column: Index, sums: Value, part: _Part) -> None:
        """The seven products of rows of both halves of a block with two panels of columns."""
        b, cut, element = self.b, self.cut, self.left.element
        products = self.scratch[1]
        weights = self.packed.at(column * (PRODUCTS * cut.depth), element)
        with b.loop(0, PRODUCTS) as product:
            emit_gemm(
                b,
                products.at(product * cut.product_step, element),
                sums.at(product * cut.sum_step, element),
                weights.at(product * (cut.depth * cut.panel), element),
                None,
                part.rows,
                cut.panel,
                cut.depth,
                cut.row_step,
                cut.panel,
                element=element,
                options=GemmOptions(prefetch=cut.prefetch, whole_rows=-(-part.count // 2)),
            )

    def _results(self, column: Index, part: _Part) -> None:
        """Finish the results of some rows of both halves of a block in two panels of columns."""
        self.result.call(
            self.b,
            output=self.out.at(column, self.result.output_element),
            products=self.scratch[1],
            bias=self.out if self.bias is None else self.bias.at(column, self.left.element),
            half_columns=self.columns // 2,
            product_step=self.cut.product_step,
            **self._rows_of(part, self.rows.output_steps),
            **plane_arguments(self.planes, column),
        )

"""
Matrix product: thin nests of loops around the shared micro-kernel.

    for each block of rows { for each panel of columns { for each tile of rows: one micro-kernel } }

The input is read in place and K is not cut: packing the input or cutting K did not pay up to K = 3072. Extents are
Python numbers or values; numbers give better tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import steps_of
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotProduct
from glow_mlir.codegen.kernels.products.micro_gemm import MicroKernel
from glow_mlir.codegen.kernels.products.product import Product, TileOffsets
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.sized_sums import SumSizes
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, balanced, distinct
from glow_mlir.codegen.selection.kernel import UNBOUNDED, YES_OR_NO, Choice
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


def emit_panels(
    b: Builder,
    weights: Value,
    columns: Index,
    depth: Index,
    tile: Tile,
    element: Attribute,
    body: Callable[[Columns], None],
    share: Partition = ALL,
) -> None:
    """
    Run `body` for each panel of packed weights `[ceil(columns / panel), depth, panel]` of dot groups of type `element`.

    The last panel may have fewer columns; it then uses only the vectors that they need. Shares divide the panels.
    """
    panel = tile.panel

    def at(start: Index) -> Value:
        # A panel holds `panel` columns of `depth` elements: the column number times the depth.
        return weights.at(start * depth, element)

    panels, count = steps_of(columns, panel), columns // panel
    if count != 0:
        begin, end = share.within(panels, 0, count)
        with b.loop(begin * panel, end * panel, panel) as start:
            body(Columns(start, at(start), tile.vectors, False, panel))
    whole = count * panel
    rest = columns - whole
    if rest != 0:
        vectors, is_masked = tile.vectors, True
        if isinstance(rest, int):
            vectors, is_masked = steps_of(rest, tile.lanes), rest % tile.lanes != 0
        with b.loop(*share.within(panels, count, 1)), b.when(rest > 0):
            body(Columns(whole, at(whole), vectors, is_masked, rest))


def emit_row_tiles(
    b: Builder, start: Index, count: Index, max_rows: int, body: Callable[[Index, int], None], share: Partition = ALL
) -> None:
    """
    Run `body(first row, rows)` for tiles that cover `count` rows from `start`; `rows` is a Python number.

    Rows are divided evenly. If their number is only known at run time, code for each height of tiles is emitted and
    selected at run time, and shares divide the tiles.
    """
    if isinstance(count, int):
        for pieces, rows in balanced(count, max_rows):
            with b.loop(0, pieces) as piece:
                body(piece * rows + start, rows)
            start = start + pieces * rows
        return
    pieces = (count + (max_rows - 1)) // max_rows
    height = count // b.max(pieces, 1)
    higher = count - height * pieces
    begin, end = share.of(pieces)
    for rows in range(1, max_rows + 1):
        with b.when(height.eq(rows)):
            if rows < max_rows:
                with b.loop(begin, higher if share.is_all else b.min(higher, end)) as piece:
                    body(piece * (rows + 1) + start, rows + 1)
            with b.loop(higher if share.is_all else b.max(higher, begin), end) as piece:
                body(piece * rows + higher + start, rows)


def emit_runs_of_tiles(
    b: Builder,
    kernel: MicroKernel,
    start: Index,
    count: Index,
    body: Callable[[Index, int, int], None],
    share: Partition = ALL,
) -> None:
    """
    Run `body(first row, rows, tiles)` for tiles of a kernel that cover `count` rows from `start`: for one tile at a
    time, or for all tiles of one height if the kernel's function loops over them.

    If the number of rows is only known at run time, shares divide the tiles.
    """
    if not kernel.loops(b.target, count):
        emit_row_tiles(b, start, count, kernel.tile.rows, lambda row, rows: body(row, rows, 1), share)
        return
    assert isinstance(count, int), "tiles are counted by Python"
    for tiles, rows in balanced(count, kernel.tile.rows):
        body(start, rows, tiles)
        start = start + tiles * rows


def emit_blocks(
    b: Builder, rows: Index, tile_rows: int, block: int, body: Callable[[Index, Index], None], share: Partition = ALL
) -> None:
    """
    Run `body(first row, rows)` for blocks of about `block` rows, and at most that if `rows` is known at run time only.

    Shares divide the blocks, and each has the same number of blocks. If the number of rows is only known at run time,
    shares divide the tiles instead.
    """
    if share.is_all and (block >= UNBOUNDED if not isinstance(rows, int) else rows <= block):
        body(0, rows)
        return
    if not isinstance(rows, int) and not share.is_all:
        begin, end = share.of(steps_of(rows, tile_rows))
        start, stop = begin * tile_rows, b.min(end * tile_rows, rows)
        with b.when(b.index(start) < stop):
            emit_blocks(b, stop - start, tile_rows, block, lambda first, count: body(first + start, count))
        return
    if not isinstance(rows, int):
        unit = tile_rows if block >= tile_rows else 1
        limit = block // unit * unit
        pieces = b.max((rows + (limit - 1)) // limit, 1)
        even = b.max(((rows + (pieces - 1)) // pieces + (unit - 1)) // unit * unit, 1)
        with b.loop(0, rows, even) as first:
            body(first, b.min(rows - first, even))
        return
    if not share.is_all and block > tile_rows:
        # Blocks of several whole tiles would be uneven; a partial tile costs less.
        count = share.parts * -(-rows // (share.parts * block))
        tile_rows, block = 1, -(-rows // count)
    start = number = 0
    # Blocks consist of whole tiles, except perhaps the last, so that tiles stay full.
    cuts = balanced(-(-rows // tile_rows), max(1, block // tile_rows))
    total = sum(pieces for pieces, _ in cuts)
    for pieces, tiles in cuts:
        count = tiles * tile_rows
        last = min(start + pieces * count, rows)
        whole = (last - start) // count
        if whole:
            with b.loop(*share.within(total, number, whole)) as piece:
                body(piece * count + start, count)
        if rest := last - start - whole * count:
            with b.loop(*share.within(total, number + whole, 1)):
                body(start + whole * count, rest)
        start, number = last, number + pieces


def unevenness(steps: int, threads: int) -> float:
    """The time of that many equal steps in some threads, over the time of as much work that is divided evenly."""
    return -(-steps // threads) * threads / max(1, steps)


def product_cut(rows: int, row_steps: int, columns: int, tile: Tile, target: Target) -> tuple[str, int]:
    """
    Choose whether to cut a product along its `rows` or `columns`; return the axis and the number of steps.

    The larger operand is cut, since each thread reads all of the other one; unless its steps are uneven among the
    threads, and the steps of the other operand are less so. Few slices of rows are as many for each thread.
    """
    costs, threads = kernel_costs(target), target.policy.threads
    steps = {"rows": row_steps, "columns": -(-columns // tile.panel)}
    idle = {axis: unevenness(count, threads) for axis, count in steps.items()}
    first, second = ("columns", "rows") if columns > rows else ("rows", "columns")
    axis = second if idle[first] > 1 + costs.uneven_percent / 100 and idle[second] < idle[first] else first
    enough = -(-max(1, rows // (costs.part_tiles * tile.rows)) // threads) * threads
    return axis, min(steps[axis], enough) if axis == "rows" else steps[axis]


@dataclass(frozen=True)
class UnpackedMatrix:
    """
    A right operand whose panels are packed in a buffer of one panel, which is the address of the weights.

    Its rows begin at `start`, `pitch` elements apart. If it is `turned`, these are the columns of the product. `pack`
    packs some columns.
    """

    start: Value
    pitch: Index
    turned: bool
    pack: Callable[[Columns], None]


TILE_PRODUCTS = "tile_products"
"""The key in the `tiles` of an instruction that tells whether tile registers compute its products."""


@dataclass(frozen=True)
class GemmOptions:
    """
    Choices that do not change the result: the tile (by default the target's), rows of a block, prefetching; and the
    part of the result to compute.
    """

    tile: Tile | None = None
    block_rows: int = UNBOUNDED
    prefetch: bool = False
    tile_products: bool = False
    """Whether tile registers compute the products."""
    whole_rows: int | None = None
    """The rows of the whole product, if this one is a block of it."""
    rows: Partition = ALL
    columns: Partition = ALL
    images: Partition = ALL
    wants: Callable[[Index, int], Value] | None = None
    """First row, number of rows → whether any of them is used; `None` if all are."""
    unpacked: UnpackedMatrix | None = None
    """The right operand, if each panel of it is packed in front of its tiles; `None` if all are packed."""

    @staticmethod
    def of(
        tiles: Mapping[str, int], rows: Partition = ALL, columns: Partition = ALL, images: Partition = ALL
    ) -> GemmOptions:
        """Return the choices of an instruction, see `product_tiles`; by default one block without prefetching."""
        block, prefetch = tiles.get("rows", UNBOUNDED), bool(tiles.get("prefetch", 0))
        by_tiles = bool(tiles.get(TILE_PRODUCTS, 0))
        return GemmOptions(
            block_rows=block, prefetch=prefetch, tile_products=by_tiles, rows=rows, columns=columns, images=images
        )

    def shares_of_rows(self, count: Index) -> tuple[Partition, Partition]:
        """
        Return the share of the blocks of rows, and the share of the tiles of each block.

        If the number of rows is only known at run time, the height of a tile affects the order of its sums. Shares then
        divide the tiles, so that the tiles are the same for any number of threads.
        """
        return (self.rows, ALL) if isinstance(count, int) else (ALL, self.rows)


def product_tiles(
    target: Target, dot: DotProduct, rows: int, columns: int, depth: int, row_step: int, min_rows: int | None = None
) -> list[dict[str, int]]:
    """
    The `rows` of a block and whether to `prefetch` the next panel, for a product with rows `row_step` elements apart.

    The first is a guess from the sizes: several blocks if the left operand and the weights together exceed the cache,
    but not the weights alone; prefetching for few rows, and weights that exceed the cache. The others are blocks of
    half, twice and four times as many rows. A number of rows that is only known at run time is between `min_rows` and
    `rows`.
    """
    tile, costs = dot.tile(target), kernel_costs(target)
    if rows <= tile.rows:
        return [{}]
    half = target.l2_bytes * 4 // bit_width(dot.left)
    weights = columns * depth
    guess = {
        "rows": min(rows, costs.block_rows) if weights <= half < rows * row_step else rows,
        "prefetch": int((rows if min_rows is None else min_rows) <= costs.prefetched_rows and weights > half),
    }
    blocks = (costs.block_rows // 2, *(costs.block_rows << step for step in range(3)))
    others = [{**guess, "rows": block} for block in (rows, *blocks) if block == rows or 2 * block <= rows]
    return distinct([guess, {**guess, "prefetch": 1 - guess["prefetch"]}, *others])


def product_choices(has_tile_products: bool) -> dict[str, Choice]:
    """Return the choices for the `tiles` of a product: blocks of any number of rows; tile registers where possible."""
    found = {"rows": Choice(range(1, UNBOUNDED + 1)), "prefetch": Choice(YES_OR_NO)}
    return {**found, TILE_PRODUCTS: Choice(YES_OR_NO)} if has_tile_products else found


def emit_gemm(
    b: Builder,
    operands: ProductOperands,
    m: Index,
    n: Index,
    k: Index,
    lda: Index,
    ldc: Index,
    *,
    accumulate: bool = False,
    options: GemmOptions | None = None,
) -> None:
    """
    Emit `C = A * B + bias`, with the epilogue applied to each element; the axes of its extra operands are `[m, n]`.

    A is `[m, k]` with rows `lda` elements apart, C `[m, n]` with rows `ldc` apart; the weights are
    `[ceil(n / panel), k, panel]` as `layouts.matrix_panels` has them. With `accumulate` the product is added to C, and
    the bias is not read.
    """
    options, dot = options or GemmOptions(), operands.dot
    tile = options.tile or dot.tile(b.target)
    moves = [extra.strides[-2] != 0 for extra in operands.extras]
    sizes = SumSizes.of(dot, tile, b.target, (), (1, 0), k, (lda, ldc))
    product = Product.of(
        *(b, operands, tile, ((), k), dot.panel_rows(k, k), moves),
        sizes=sizes,
        prefetch=options.prefetch,
        accumulate=accumulate,
    )
    steps = (ldc, *(extra.strides[-2] for extra in operands.extras))
    by_blocks, by_tiles = options.shares_of_rows(m)

    def block(first: Index, rows: Index) -> None:
        emission = _Block(b, product, options, first, rows, options.whole_rows or m, lda, steps, by_tiles)
        emit_panels(b, operands.weights, n, product.panel_rows, tile, dot.right_group, emission.panel, options.columns)

    emit_blocks(b, m, tile.rows, options.block_rows, block, by_blocks)


@dataclass(frozen=True)
class _Block:
    """
    The tiles of `rows` rows from `first` on, of `whole_rows`. Rows of the left operand are `lda` elements apart, those
    of the result and the extra operands `steps`.
    """

    b: Builder
    product: Product
    options: GemmOptions
    first: Index
    rows: Index
    whole_rows: Index
    lda: Index
    steps: tuple[Index, ...]
    share: Partition

    def panel(self, columns: Columns) -> None:
        """Emit the tiles of a panel, which the first of them packs, or code in front of it, if it is not packed yet."""
        b, options, kernel, rows, done = self.b, self.options, self.product.kernel, self.rows, 0
        if (unpacked := options.unpacked) is not None:
            columns = replace(columns, weights=self.product.operands.weights)
            if isinstance(rows, int) and self._packs(unpacked, columns, rows):
                done = min(kernel.tile.rows, rows)
                source = unpacked.start.at(columns.start, kernel.dot.right_group), unpacked.pitch
                self._tiles(columns, self.first, done, 1, source)
            else:
                unpacked.pack(columns)

        def tiles(row: Index, count: int, together: int) -> None:
            self._tiles(columns, row, count, together)

        if (wants := options.wants) is None:
            emit_runs_of_tiles(b, kernel, self.first + done, rows - done, tiles, self.share)
            return

        def wanted(row: Index, count: int) -> None:
            with b.when(wants(row, count)):
                tiles(row, count, 1)

        emit_row_tiles(b, self.first, rows, kernel.tile.rows, wanted, self.share)

    def _packs(self, unpacked: UnpackedMatrix, columns: Columns, rows: int) -> bool:
        """Whether the first tile packs a panel: rows of a whole one, which takes no time beside the tile's products."""
        kernel = self.product.kernel
        is_whole = not unpacked.turned and not columns.partial and columns.count == kernel.tile.panel
        is_plain = kernel.sizes is None and kernel.dot.group == 1 and not kernel.loops(self.b.target, rows)
        return is_whole and is_plain and self.options.wants is None and kernel.tile.lanes > 1

    def _tiles(
        self,
        columns: Columns,
        row: Index,
        height: int,
        together: int,
        source: tuple[Value, Index] | None = None,
    ) -> None:
        """Emit `together` tiles of some height from a row on; one that packs takes the panel from `source`."""
        product = self.product
        target = tuple(row * step for step in self.steps)
        offsets = TileOffsets(row * self.lda, target, self.lda, self.steps)
        variant = product.variant(columns, height, self.whole_rows, (self.rows, together))
        ahead = product.ahead(columns, self.rows)
        number = row - self.first
        product.call(variant, columns, offsets, ahead, number, columns.start, count=together, unpacked=source)

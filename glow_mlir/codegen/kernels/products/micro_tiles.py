"""
The micro-kernel of products in tile registers, as two functions. The first computes the accumulators of up to two
strips and two tiles of columns. The second finishes a strip: it passes the accumulators through the epilogue.

In between, the accumulators are in a buffer `[2, 16, 64]`, which stays in the L1 cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.amx import MAX_ROWS, load_tile, multiply_tiles, store_tile, zero_tile
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.tile_products import TILE_COLUMNS, TileProduct
from glow_mlir.codegen.kernels.products.tile_store import StoredTile, TileStore
from glow_mlir.codegen.kernels.products.tiles import line_elements
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import bit_width, byte_width
from glow_mlir.support.dataclass import dataclass

TOGETHER = 2
"""The number of strips, and of tiles of columns, that are computed together: they use all eight registers."""

ACCUMULATORS_ROW = 2 * TOGETHER * TILE_COLUMNS
"""Elements of a row of the buffer of accumulators: as many as the widest vectors have bytes."""

ACCUMULATORS_STRIP = MAX_ROWS * ACCUMULATORS_ROW
"""Elements of a strip of the buffer."""

_LEFT, _RIGHT = 4, 6
"""The first registers of left and right elements; the accumulators are in the registers before."""


@dataclass(frozen=True)
class TileAccumulators(SharedFunction):
    """
    The function that multiplies some strips by some tiles of columns, along the whole depth.

    The strips begin at `input` and `second`, with rows `input_step` elements apart. `depth` is the number of tile
    products per run of the depth; each advances the input by `step` elements and the panel by `weights_step` dot
    groups. `prefetch` is the number of cache lines that each product prefetches.
    """

    product: TileProduct
    strips: int
    columns: int
    segment_loops: int = 0
    prefetch: int = 0

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        names: list[tuple[str, Attribute]] = [("accumulators", ptr), ("input", ptr), ("weights", ptr)]
        names += [("second", ptr)] * (self.strips > 1)
        names += [(name, index_type) for name in ("input_step", "depth", "step", "weights_step")]
        for loop in range(self.segment_loops):
            names += [(f"count{loop}", index_type), (f"stride{loop}", index_type)]
        return names + ([("ahead", ptr), ("ahead_step", index_type)] if self.prefetch else [])

    @property
    def readable(self) -> str:
        words = ["tiles", self.product.instruction, f"{self.strips}x{self.columns}"]
        return ".".join([*words, "prefetch"] if self.prefetch else words)

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        tiles = [(strip, column) for strip in range(self.strips) for column in range(self.columns)]
        for strip, column in tiles:
            zero_tile(b, strip * TOGETHER + column)
        state = [given["weights"], *([given["ahead"]] if self.prefetch else [])]
        self._segments(b, given, 0, b.index(0), state)
        size = byte_width(self.product.dot.accumulators)
        for strip, column in tiles:
            address = given["accumulators"].at(
                strip * ACCUMULATORS_STRIP + column * TILE_COLUMNS, self.product.dot.accumulators
            )
            store_tile(b, strip * TOGETHER + column, address, ACCUMULATORS_ROW * size)

    def _segments(
        self, b: Builder, given: dict[str, Value], loop: int, start: Value, state: Sequence[Value]
    ) -> list[Value]:
        """Add the products of all runs of the depth; return the state after them."""
        if loop == self.segment_loops:
            return self._run(b, given, start, state)
        with b.loop(0, given[f"count{loop}"], carried=state) as steps:
            steps.set(*self._segments(b, given, loop + 1, start + steps.index * given[f"stride{loop}"], steps.values))
        return steps.results

    def _run(self, b: Builder, given: dict[str, Value], start: Value, state: Sequence[Value]) -> list[Value]:
        """Add the products of one run."""
        dot, product = self.product.dot, self.product
        strips = [given[name].at(start, dot.memory) for name in ("input", "second")[: self.strips]]
        left_step = given["input_step"] * byte_width(dot.left)
        with b.loop(0, given["depth"], carried=[*strips, *state]) as steps:
            weights, *ahead = steps.values[self.strips :]
            for column in range(self.columns):
                load_tile(
                    b,
                    _RIGHT + column,
                    weights.at(column * TILE_COLUMNS, dot.right_group),
                    product.panel * DOT_GROUP_BYTES,
                )
            for strip in range(self.strips):
                load_tile(b, _LEFT + strip, steps.values[strip], left_step)
                for column in range(self.columns):
                    multiply_tiles(b, product.instruction, strip * TOGETHER + column, _LEFT + strip, _RIGHT + column)
            if ahead:
                for line in range(self.prefetch):
                    b.prefetch(ahead[0].at(line * line_elements(b.target, dot.right_group), dot.right_group), level=2)
                ahead = [ahead[0].at(given["ahead_step"], dot.right_group)]
            following = [address.at(given["step"], dot.memory) for address in steps.values[: self.strips]]
            steps.set(*following, weights.at(given["weights_step"], dot.right_group), *ahead)
        return steps.results[self.strips :]


@dataclass(frozen=True)
class StripStore(StoredTile, SharedFunction):
    """
    The function that finishes a strip: it turns `count` rows of accumulators into results, row by row.

    If rows continue from line to line, `position` is the index of the first row within its line, `width` the length of
    a line with its border, and `stored` the number of its pixels. The `vectors` of a row are its tiles of columns.
    """

    bias: bool = False

    @property
    def lanes(self) -> int:
        """The number of columns of a row."""
        return self.vectors * TILE_COLUMNS

    @property
    def moving(self) -> list[int]:
        """The indices of the extra operands that move from row to row."""
        return [index for index, kind in enumerate(self.extras) if kind.moves]

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        names: list[tuple[str, Attribute]] = [("accumulators", ptr), ("output", ptr)]
        names += [(name, index_type) for name in ("count", "output_step")]
        names += [("bias", ptr)] * self.bias
        names += [("columns", index_type)] * self.partial
        names += [(f"extra{index}", ptr) for index in range(len(self.extras))]
        names += [(f"extra_step{index}", index_type) for index in self.moving]
        if self.wraps:
            names += [(name, index_type) for name in ("position", "width", "stored", "output_jump")]
            names += [(f"extra_jump{index}", index_type) for index in self.moving]
        return names

    @property
    def readable(self) -> str:
        flags = [flag for flag in ("partial", "bias", "wraps", "epilogue") if getattr(self, flag)]
        return ".".join(["strip", self.dot.readable, f"{self.lanes}", *flags])

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        mask = b.mask(given["columns"], self.lanes, bit_width(self.element)) if self.partial else None
        row_type = vector(self.element, self.lanes)
        bias = None
        if self.bias:
            bias = given["bias"].load(row_type) if mask is None else b.load_masked(given["bias"], row_type, mask)
        store = TileStore(b, self, given, [mask])
        fixed = store.fixed_extras(self.lanes, mask)
        carried = [given["accumulators"], given["output"], *(given[f"extra{index}"] for index in self.moving)]
        carried += [given["position"]] if self.wraps else []
        with b.loop(0, given["count"], carried=carried) as rows:
            accumulators, *moved = rows.values
            addresses = [moved[0], *(given[f"extra{index}"] for index in range(len(self.extras)))]
            for address, index in zip(moved[1:], self.moving, strict=False):
                addresses[1 + index] = address

            def row(accumulators: Value = accumulators, addresses: Sequence[Value] = addresses) -> None:
                value = accumulators.load(row_type)
                store.store_vector(value if bias is None else value + bias, addresses, 0, mask, dict(fixed), 0)

            if self.wraps:
                with b.when(moved[-1] < given["stored"]):
                    row()
            else:
                row()
            rows.set(accumulators.at(ACCUMULATORS_ROW, self.element), *store.next_row(moved, self.moving))

"""Functions of products that read a matrix in place: their sums stay in a nearby cache, and rows pass by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, integer_of_width, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.dot_products import DotGroupProduct, DotProduct, Parts
from glow_mlir.codegen.kernels.products.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.math.half import to_accumulators
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

STREAMS = 8
"""Rows of the matrix that pass by together: as many streams as prefetchers follow, and sums that are seldom loaded."""

STREAMED_ROWS = 8
"""The maximum number of rows of the left operand that share a vector of the matrix."""


def vectors_of(b: Builder, columns: Index, lanes: int, bits: int, body: Callable[[Index, Value | None], None]) -> None:
    """Run `body(first column, mask)` for vectors that cover some columns; `None` is the mask of a whole vector."""
    whole = columns // lanes * lanes
    with b.loop(0, whole, lanes) as column:
        body(column, None)
    rest = columns - whole
    if rest != 0:
        with b.when(b.index(rest) > 0):
            body(whole, b.mask(b.index(rest), lanes, bits))


@dataclass(frozen=True)
class StreamedSums(SharedFunction):
    """
    Adds the products of `rows` rows of the left operand and `steps` rows of the matrix to sums in memory.

    `sums` has rows of whole vectors, `sums_step` elements apart; those of the left operand, which are contiguous along
    the depth, begin `input_step` elements apart, and those of the matrix `weights_step` apart. Each sum adds its
    products in the order of the depth, as the tiles of packed products do. Dot groups are interleaved in registers;
    `steps` is a multiple of their size.
    """

    dot: DotProduct
    rows: int
    steps: int
    lanes: int

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        pointers = [(name, ptr) for name in ("sums", "input", "weights")]
        return [*pointers, *((name, index_type) for name in ("sums_step", "input_step", "weights_step", "columns"))]

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"streamed.{self.dot.readable}.{self.rows}x{self.steps}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        lanes, columns = self.lanes, given["columns"]
        factors = self._kept(b, given)
        together = vectors_together(b.target, self.rows) * lanes
        whole = columns // together * together
        if together > lanes:
            with b.loop(0, whole, together) as column:
                self._add(b, given, factors, column, together // lanes, None)
        else:
            whole = b.index(0)

        def one(column: Index, mask: Value | None) -> None:
            self._add(b, given, factors, b.index(column) + whole, 1, mask)

        vectors_of(b, columns - whole, lanes, bit_width(self.dot.accumulators), one)

    @property
    def _groups(self) -> range:
        """The first rows of the matrix of all dot groups."""
        return range(0, self.steps, self.dot.group)

    def _factor(self, b: Builder, given: dict[str, Value], row: int, step: int) -> Parts:
        """Load a dot group of the left operand for all lanes."""
        start = given["input"].at(given["input_step"] * row, self.dot.memory)
        return self.dot.spread(b, self.dot.read(b, start.at(step, self.dot.memory)), self.lanes)

    def _kept(self, b: Builder, given: dict[str, Value]) -> Sequence[Sequence[Parts]] | None:
        """Load all elements of the left operand if registers hold them; else `None`."""
        taken = self.rows * (self.steps // self.dot.group + vectors_together(b.target, self.rows))
        if taken + 2 > b.target.vector_registers:
            return None
        return [[self._factor(b, given, row, step) for step in self._groups] for row in range(self.rows)]

    def _add(
        self,
        b: Builder,
        given: dict[str, Value],
        factors: Sequence[Sequence[Parts]] | None,
        column: Index,
        vectors: int,
        mask: Value | None,
    ) -> None:
        """Add the products of some vectors of columns."""
        dot, lanes, right = self.dot, self.lanes, self.dot.singly.right_group
        type_ = vector(dot.accumulators, lanes)
        rows = [given["sums"].at(given["sums_step"] * row + column, dot.accumulators) for row in range(self.rows)]
        addresses = [address.at(v * lanes, dot.accumulators) for address in rows for v in range(vectors)]
        sums = [address.load(type_) for address in addresses]
        for number, first in enumerate(self._groups):
            steps = range(first, first + dot.group)
            sources = [given["weights"].at(given["weights_step"] * step + column, right) for step in steps]
            matrix = [
                self._columns(b, [source.at(v * lanes, right) for source in sources], mask) for v in range(vectors)
            ]
            for row in range(self.rows):
                factor = factors[row][number] if factors is not None else self._factor(b, given, row, first)
                for v, parts in enumerate(matrix):
                    sums[row * vectors + v] = dot.multiply_add(b, factor, parts, sums[row * vectors + v])
        for value, address in zip(sums, addresses, strict=True):
            address.store(value)

    def _columns(self, b: Builder, addresses: Sequence[Value], mask: Value | None) -> Parts:
        """Load a vector of each row of the matrix of a dot group."""
        dot, type_ = self.dot, vector(self.dot.singly.right_group, self.lanes)
        loaded = [address.load(type_) if mask is None else b.load_masked(address, type_, mask) for address in addresses]
        if isinstance(dot, DotGroupProduct):
            return dot.instruction.parts(b, interleaved(b, loaded), signed=True)
        return (to_accumulators(b, loaded[0], dot.right, dot.accumulators),)


def interleaved(b: Builder, rows: Sequence[Value]) -> Value:
    """Return a dot group for each lane: its elements in all rows side by side, as one integer."""
    values, bits = list(rows), rows[0].info.bits
    while len(values) > 1:
        pairs = [number for lane in range(values[0].lanes) for number in (lane, lane + values[0].lanes)]
        joined = [b.shuffle(low, high, pairs) for low, high in zip(values[::2], values[1::2], strict=True)]
        bits *= 2
        values = [b.bitcast(value, integer_of_width(bits)) for value in joined]
    return values[0]


def vectors_together(target: Target, rows: int) -> int:
    """Return the vectors of columns whose sums are in registers together: at most half of all registers."""
    return max(1, min(4, target.vector_registers // 2 // rows))


@dataclass(frozen=True)
class StreamedStore(StoredTile, SharedFunction):
    """Applies the epilogue to a tile of finished sums, which has rows `sums_step` elements apart, and stores it."""

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        names: list[tuple[str, Attribute]] = [("output", ptr), ("sums", ptr)]
        names += [("output_step", index_type), ("sums_step", index_type)]
        if self.partial:
            names.append(("columns", index_type))
        for index, extra in enumerate(self.extras):
            names.append((f"extra{index}", ptr))
            if extra.moves:
                names.append((f"extra_step{index}", index_type))
        return names

    @property
    def readable(self) -> str:
        """A readable name of the function."""
        return f"streamed.store.{self.rows}x{self.vectors}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        lanes, type_ = self.tile.lanes, vector(self.element, self.tile.lanes)
        masks: list[Value | None] = [None] * self.vectors
        if self.partial:
            bits = bit_width(self.element)
            masks = [b.mask(given["columns"] - v * lanes, lanes, bits) for v in range(self.vectors)]
        sums = [
            address.at(v * lanes, self.element).load(type_)
            for address in row_addresses(b, self, given, "sums", self.element)
            for v in range(self.vectors)
        ]
        TileStore(b, self, given, masks).run(sums)

"""
The micro-kernel of matrix product and convolution: one tile of the output, from packed weights.

One function of the module per `MicroKernel`; everything about sizes is an argument, so that all layers share a few
functions. A row of the tile is an output pixel: its inputs start at a step from those of the row above, plus a jump
where the image's own row ends (`wraps`). The sum runs over segments, contiguous runs of input elements, which up to
three loops step through: kernel depth, height and width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import index_type, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.dot_products import DotProduct, Parts
from glow_mlir.codegen.kernels.sized_sums import SizedSums, SumSizes
from glow_mlir.codegen.kernels.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.kernels.tiles import Columns, Tile, balanced, line_elements
from glow_mlir.dialects.element_types import bit_width, is_float
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

FEWEST_LANES = 4
"""Vectors of fewer lanes are not halved: of two, half is no vector."""


def partial_accumulators(tile: Tile, rows: int, vectors: int) -> int:
    """
    How many partial accumulators each output of a tile has, of which `rows` and `vectors` are used: fewer leave gaps.
    """
    return max(1, min(4, tile.accumulators // (rows * vectors)))


MAX_TERMS, FEWEST_TERMS = 64, 32
"""
How many products are summed on their own in one order of accumulators, at most, and at least where there are as many.
"""


def own_accumulators(loops: Sequence[tuple[Index, Index]], run: Index) -> int:
    """How many of the innermost loops over segments are summed on their own: as many as it takes for some products."""
    terms, inner = run, 0
    for count, _ in reversed(loops):
        if not isinstance(terms, int) or terms >= FEWEST_TERMS or not isinstance(count, int):
            break
        terms, inner = terms * count, inner + 1
    return inner


@dataclass(frozen=True)
class MicroKernel(StoredTile, SharedFunction):
    """
    Which variant of the kernel.

    `rows` and `vectors` may be less than the tile's; where `narrow`, the last vector of each row is half as wide.
    `accumulate` adds to what the output holds, otherwise the sum starts at the bias, or at zero. Runs of the depth end
    with `rest` elements of a dot group, or with a whole one that has elements `shared` with the one before. `prefetch`
    is how many lines of the cache each step fetches ahead. `partial_accumulators` is how many each output has, by
    default what suits the tile. With `sizes` the code is for these alone: they are no arguments. Where `looped`, it
    computes
    `count` tiles of rows that follow each other; where `widened`, from a copy of the panel's `dot_groups` in their
    parts.

    With `own_accumulators`, accumulators have one order, whatever the tile is: there are no partial accumulators, but
    products are summed some at a time, those of so many of the innermost loops together, or `MAX_TERMS` of a segment,
    and their accumulators added up.
    """

    narrow: bool = False
    bias: bool = False
    accumulate: bool = False
    segment_loops: int = 0
    rest: int = 0
    shared: bool = False
    prefetch: int = 0
    partial_accumulators: int | None = None
    own_accumulators: int | None = None
    sizes: SumSizes | None = None
    looped: bool = False
    widened: bool = False

    @property
    def ways(self) -> int:
        """How many partial accumulators each output has."""
        if self.own_accumulators is not None:
            return 1
        return self.partial_accumulators or partial_accumulators(self.tile, self.rows, self.vectors)

    def loops(self, target: Target, rows: Index) -> bool:
        """Whether a machine has it go through the tiles of some rows by itself, where it is for no sizes alone."""
        together = kernel_costs(target).called_tiles > 1
        return together and isinstance(rows, int) and not self.prefetch and self.sizes is None

    def together(self, target: Target, rows: Index, tiles: int, panel_rows: Index) -> MicroKernel:
        """The variant that computes `tiles` by itself where it may, of a panel with so many rows of dot groups."""
        if not self.loops(target, rows):
            return self
        costs = kernel_costs(target)
        fits = isinstance(panel_rows, int) and panel_rows * self.tile.panel <= costs.widened_groups
        widened = fits and tiles >= costs.widened_tiles and self.dot.widened is not None
        return dataclasses.replace(self, looped=True, widened=widened)

    def of_tile(self, rows: int, columns: Columns, whole_rows: Index) -> MicroKernel:
        """
        The variant for one tile of some columns of a product with `whole_rows` rows.

        Sums of floats are one after the other, whatever the rows: results depend neither on how many there are, nor on
        which tiles and blocks they are cut into. Those of integers are exact in any order, and cut where rows are few.

        A last vector of which only half is needed is half as wide: many machines split their widest vectors, and
        without lanes to be left out no masks are needed. A looped epilogue needs vectors of one width.
        """
        fewest = balanced(whole_rows, self.tile.rows)[-1][1] if isinstance(whole_rows, int) and whole_rows else rows
        lanes, vectors = self.tile.lanes, columns.vectors
        rest = columns.count % lanes if isinstance(columns.count, int) else 0
        even = self.epilogue is None or self.epilogue.is_light
        halved = lanes >= FEWEST_LANES and self.dot.has_vectors_of(lanes // 2)
        narrow = even and halved and 0 < rest <= lanes // 2
        return dataclasses.replace(
            self,
            rows=rows,
            vectors=vectors,
            narrow=narrow,
            partial=columns.partial and not (narrow and rest == lanes // 2),
            partial_accumulators=1
            if is_float(self.dot.accumulators)
            else partial_accumulators(self.tile, fewest, vectors),
        )

    def lanes_of(self, vector_: int) -> int:
        """How many lanes a vector of a row has, counted from 0."""
        return self.tile.lanes // 2 if self.narrow and vector_ == self.vectors - 1 else self.tile.lanes

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and types of the function's parameters, in order."""
        names: list[tuple[str, Attribute]] = [
            ("output", ptr),
            ("input", ptr),
            ("weights", ptr),
        ]
        if self.sizes is None:
            together = ("count", "dot_groups") if self.widened else ("count",) if self.looped else ()
            names += [(name, index_type) for name in ("depth", "input_step", "output_step", *together)]
        if self.bias:
            names.append(("bias", ptr))
        if self.shared:
            names.append(("last", index_type))
        if self.partial:
            names.append(("columns", index_type))
        if self.wraps:
            names += [(name, index_type) for name in ("position", "width", "input_jump", "output_jump")]
        for loop in range(self.segment_loops if self.sizes is None else 0):
            names += [(f"count{loop}", index_type), (f"stride{loop}", index_type)]
        if self.prefetch:
            names += [("ahead", ptr), ("ahead_step", index_type)]
        for index, extra in enumerate(self.extras):
            names.append((f"extra{index}", ptr))
            if extra.moves:
                names += [
                    (f"extra_step{index}", index_type),
                    *([(f"extra_jump{index}", index_type)] if self.wraps else []),
                ]
        return names

    @property
    def readable(self) -> str:
        """What the function is called."""
        flags = ("looped", "widened", "narrow", "partial", "shared", "bias", "accumulate", "wraps", "prefetch", "sizes")
        words = [
            "gemm",
            self.dot.readable,
            f"{self.rows}x{self.vectors}",
            *(flag for flag in flags if getattr(self, flag)),
        ]
        return ".".join([*words, "epilogue"] if self.epilogue else words)

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        if not self.looped:
            self._tile(b, given)
            return
        if self.widened and (dot := self.dot.widened):
            given = given | {"weights": _widened(b, self, given, dot)}
            dataclasses.replace(self, dot=dot)._tiles(b, given)
            return
        self._tiles(b, given)

    def _tiles(self, b: Builder, given: dict[str, Value]) -> None:
        """The tiles of rows that follow each other."""
        steps = {"input": ("input_step", self.dot.memory), "output": ("output_step", self.output_element)}
        for index, extra in enumerate(self.extras):
            if extra.moves:
                steps[f"extra{index}"] = (f"extra_step{index}", extra.element)
        with b.loop(0, given["count"], carried=[given[name] for name in steps]) as tiles:
            self._tile(b, given | dict(zip(steps, tiles.values, strict=True)))
            following = zip(tiles.values, steps.values(), strict=True)
            tiles.set(*(place.at(given[step] * self.rows, element) for place, (step, element) in following))

    def _tile(self, b: Builder, given: dict[str, Value]) -> None:
        """One tile."""
        if self.sizes is not None:
            given = {**given, "output_step": b.index(self.sizes.output_step)}
        masks = _masks(b, self, given)
        first = _initial(b, self, given, masks)
        if self.sizes is None:
            inputs = row_addresses(b, self, given, "input", self.dot.memory)
            accumulators = _sum(b, self, given, inputs, first)
        else:
            sized = SizedSums(b, self.dot, self.tile, self.rows, self.vectors, self.sizes)
            accumulators = sized.added(given["input"], given["weights"], first)
        TileStore(b, self, given, masks).run(accumulators)


def _widened(b: Builder, kernel: MicroKernel, given: dict[str, Value], dot: DotProduct) -> Value:
    """Return a copy of a panel, the parts of each dot group in a row: all tiles read them."""
    panel = b.stack(dot.right_group, kernel_costs(b.target).widened_groups, align=8)
    with b.loop(0, given["dot_groups"]) as dot_group:
        parts = kernel.dot.columns(b, given["weights"].at(dot_group, kernel.dot.right_group), 1)
        for part, value in enumerate(parts):
            panel.at(dot_group, dot.right_group).at(part, value.type).store(value)
    return panel


def _masks(b: Builder, kernel: MicroKernel, given: dict[str, Value]) -> list[Value | None]:
    """Return for each vector the mask of its lanes that exist, None where all do."""
    lanes, bits = kernel.tile.lanes, bit_width(kernel.element)
    if not kernel.partial:
        return [None] * kernel.vectors
    columns = given["columns"]
    if lanes == 1:
        return [columns > index for index in range(kernel.vectors)]
    return [b.mask(columns - index * lanes, kernel.lanes_of(index), bits) for index in range(kernel.vectors)]


def _read(b: Builder, kernel: MicroKernel, address: Value, lanes: int, mask: Value | None) -> Value:
    type_ = vector(kernel.element, lanes)
    if mask is None:
        return address.load(type_)
    if lanes == 1:
        zero = b.constant(0.0, type_)
        return b.either(mask, lambda: [address.load(type_)], lambda: [zero])[0]
    return b.load_masked(address, type_, mask)


def _initial(b: Builder, kernel: MicroKernel, given: dict[str, Value], masks: Sequence[Value | None]) -> list[Value]:
    """Return what the accumulators start from, row by row."""
    lanes = [kernel.lanes_of(v) for v in range(kernel.vectors)]

    def row(address: Value) -> list[Value]:
        places = [address.at(v * kernel.tile.lanes, kernel.element) for v in range(kernel.vectors)]
        return [_read(b, kernel, *vector_) for vector_ in zip(places, lanes, masks, strict=True)]

    if kernel.accumulate:
        return [v for address in row_addresses(b, kernel, given, "output", kernel.element) for v in row(address)]
    zeros = [b.constant(0.0, vector(kernel.element, width)) for width in lanes]
    first = row(given["bias"]) if kernel.bias else zeros
    if kernel.dot.start:
        places = [given["weights"].at(v * kernel.tile.lanes, kernel.element) for v in range(kernel.vectors)]
        accumulators = [place.load(zero.type) for place, zero in zip(places, zeros, strict=True)]
        first = [x + y if kernel.dot.start > 0 else x - y for x, y in zip(first, accumulators, strict=True)]
    return first * kernel.rows


def _sum(
    b: Builder, kernel: MicroKernel, given: dict[str, Value], inputs: Sequence[Value], accumulators: Sequence[Value]
) -> list[Value]:
    """Return the accumulators with all products added."""

    own = None if not kernel.own_accumulators else kernel.segment_loops - kernel.own_accumulators

    def segments(loop: int, start: Value, state: Sequence[Value]) -> list[Value]:
        return (
            _own_accumulators(b, accumulators, state, partial(inner, loop, start))
            if loop == own
            else inner(loop, start, state)
        )

    def inner(loop: int, start: Value, state: Sequence[Value]) -> list[Value]:
        if loop == kernel.segment_loops:
            return _segment(b, kernel, given, [row.at(start, kernel.dot.memory) for row in inputs], state)
        with b.loop(0, given[f"count{loop}"], carried=state) as steps:
            steps.set(*segments(loop + 1, start + steps.index * given[f"stride{loop}"], steps.values))
        return steps.results

    zeros = [b.constant(0.0, value.type) for value in accumulators] * (kernel.ways - 1)
    weights = given["weights"].at(kernel.tile.panel if kernel.dot.start else 0, kernel.dot.right_group)
    state = [*accumulators, *zeros, weights, *([given["ahead"]] if kernel.prefetch else [])]
    finished = segments(0, b.constant(0, index_type), state)
    totals = finished[: len(accumulators)]
    for way in range(1, kernel.ways):
        totals = [total + finished[way * len(accumulators) + i] for i, total in enumerate(totals)]
    return totals


def _own_accumulators(
    b: Builder,
    accumulators: Sequence[Value],
    state: Sequence[Value],
    added: Callable[[Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """
    A state with what `added` makes of accumulators that begin at zero added to its `accumulators`; what is behind them
    moves on.
    """
    count = len(accumulators)
    zeros = [b.constant(0.0, value.type) for value in accumulators]
    found = added([*zeros, *state[count:]])
    return [*(total + own for total, own in zip(state, found[:count], strict=False)), *found[count:]]


def _segment(
    b: Builder, kernel: MicroKernel, given: dict[str, Value], inputs: Sequence[Value], state: Sequence[Value]
) -> list[Value]:
    """Add the products of one segment, and of the rest of a dot group behind it."""
    depth = given["depth"]
    if kernel.own_accumulators == 0 and not kernel.shared:
        accumulators = state[: kernel.rows * kernel.vectors]
        with b.loop(0, depth, MAX_TERMS, carried=state) as loop:
            first, count = loop.index, b.min(depth - loop.index, MAX_TERMS)
            moved = [row.at(first, kernel.dot.left_group) for row in inputs]
            loop.set(*_own_accumulators(b, accumulators, loop.values, partial(_run, b, kernel, given, moved, count)))
        results = loop.results
    else:
        results = _run(b, kernel, given, inputs, depth, state)
    return _step(b, kernel, given, inputs, depth, results, 1, kernel.rest) if kernel.rest else results


def _run(
    b: Builder,
    kernel: MicroKernel,
    given: dict[str, Value],
    inputs: Sequence[Value],
    depth: Value,
    state: Sequence[Value],
) -> list[Value]:
    """Add the products of so many dot groups, some at a time, then those left one by one."""
    dot_groups = max(kernel.ways, kernel_costs(b.target).unrolled_groups)
    whole = depth if dot_groups == 1 else depth // dot_groups * dot_groups
    with b.loop(0, whole, dot_groups, carried=state) as loop:
        loop.set(*_step(b, kernel, given, inputs, loop.index, loop.values, dot_groups))
    results = loop.results
    if dot_groups > 1:
        with b.loop(whole, depth, carried=results) as rest:
            rest.set(*_step(b, kernel, given, inputs, rest.index, rest.values, 1))
        results = rest.results
    return results


def _step(
    b: Builder,
    kernel: MicroKernel,
    given: dict[str, Value],
    inputs: Sequence[Value],
    first: Value,
    state: Sequence[Value],
    dot_groups: int,
    rest: int | None = None,
) -> list[Value]:
    """
    Return the state after some dot groups: for each a row of the panel, and one spread input per row.

    Of the last one, there may be only the `rest`.
    """
    lanes, dot, dot_group, panel = kernel.tile.lanes, kernel.dot, kernel.dot.right_group, kernel.tile.panel
    size, last = kernel.rows * kernel.vectors, given["last"] if kernel.shared else None
    places = [] if last is None else [b.min((first + way) * dot.group, last) for way in range(dot_groups)]
    accumulators, (weights, *ahead) = list(state[: size * kernel.ways]), state[size * kernel.ways :]
    for way in range(dot_groups):

        def column(v: int, way: int = way) -> Parts:
            return dot.columns(b, weights.at(way * panel + v * lanes, dot_group), kernel.lanes_of(v))

        # Scalars are read where they are used first: there are few registers for what is made of a dot group.
        columns = {v: column(v) for v in range(kernel.vectors) if lanes > 1}
        for row, address in enumerate(inputs):
            place = address.at(first + way, dot.left_group) if last is None else address.at(places[way], dot.memory)
            value = dot.read(b, place, rest)
            spread = {
                width: dot.spread(b, value, width)
                for width in dict.fromkeys(map(kernel.lanes_of, range(kernel.vectors)))
            }
            for v in range(kernel.vectors):
                if v not in columns:
                    columns[v] = column(v)
                place = way % kernel.ways * size + row * kernel.vectors + v
                accumulators[place] = dot.multiply_add(b, spread[kernel.lanes_of(v)], columns[v], accumulators[place])
    if ahead:
        for line in range(kernel.prefetch):
            b.prefetch(ahead[0].at(line * line_elements(b.target, dot_group), dot_group), level=2)
        ahead = [ahead[0].at(given["ahead_step"] * dot_groups, dot_group)]
    return [*accumulators, weights.at(dot_groups * panel, dot_group), *ahead]

"""
The micro-kernel of matrix product and convolution: one tile of the output, from packed weights.

The module has one function per `MicroKernel`. Sizes are arguments, so that all layers share a few functions. A row of
the tile is an output pixel: its inputs start one step after those of the previous row, plus a jump where a line of the
image ends (`wraps`). The sum runs over segments, contiguous runs of input elements; up to three loops go through them:
kernel depth, height and width.
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
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, Parts
from glow_mlir.codegen.kernels.products.sized_sums import SizedSums, SumSizes
from glow_mlir.codegen.kernels.products.tile_store import StoredTile, TileStore, row_addresses
from glow_mlir.codegen.kernels.products.tiles import Columns, Tile, balanced, line_elements
from glow_mlir.dialects.element_types import bit_width, is_float
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

MIN_LANES = 4
"""Vectors of fewer lanes are not halved, since half of two lanes is no vector."""


def partial_accumulators(tile: Tile, rows: int, vectors: int) -> int:
    """
    Return the number of partial accumulators per output of a tile with `rows` and `vectors` in use: small tiles need
    several, so that instructions do not wait for each other.
    """
    return max(1, min(4, tile.accumulators // (rows * vectors)))


MAX_TERMS, MIN_TERMS = 64, 32
"""
The largest and smallest number of products that are summed separately where sums have a fixed order.
"""


def own_accumulators(loops: Sequence[tuple[Index, Index]], run: Index) -> int:
    """Return how many of the innermost loops over segments are summed separately: enough for `MIN_TERMS` products."""
    terms, inner = run, 0
    for count, _ in reversed(loops):
        if not isinstance(terms, int) or terms >= MIN_TERMS or not isinstance(count, int):
            break
        terms, inner = terms * count, inner + 1
    return inner


def is_far(target: Target, dot: DotProduct, tile: Tile, panel_rows: Index) -> bool:
    """Return whether rows of a panel are fetched ahead: it is larger than the nearest cache, as far as is known."""
    if not isinstance(panel_rows, int) or kernel_costs(target).fetched_rows == 1 or not target.l1_bytes:
        return False
    lines = panel_rows * tile.panel // line_elements(target, dot.right_group)
    return lines * target.line_bytes > target.l1_bytes


@dataclass(frozen=True)
class MicroKernel(StoredTile, SharedFunction):
    """
    A variant of the kernel.

    `rows` and `vectors` may be less than the tile's. If `narrow`, the last vector of each row is half as wide. With
    `accumulate` the products are added to the output; otherwise the sum starts at the bias, or at zero. Runs of the
    depth end with `rest` elements of a dot group, or, if `shared`, with a whole dot group that overlaps the one before.
    `prefetch` is the number of cache lines that each step prefetches. `partial_accumulators` is the number per output;
    by default it suits the tile. With `sizes`, the code is for these sizes alone, and they are no arguments. If
    `looped`, the function computes `count` tiles of consecutive rows; if `widened`, it first makes a widened copy of
    the panel's `dot_groups`. If `far`, the panel is larger than the nearest cache, and its next rows are fetched. A
    step takes two dot groups of a `long` run. If it `packs`, it writes the panel first, row by row, from rows of a
    matrix that begin at `source`.

    With `own_accumulators`, sums have the same order for any tile. There are no partial accumulators; instead, the
    products of this number of innermost loops, or of `MAX_TERMS` elements of a segment, are summed separately, and
    these sums are added up.
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
    far: bool = False
    long: bool = False
    packs: bool = False

    @property
    def ways(self) -> int:
        """The number of partial accumulators per output."""
        if self.own_accumulators is not None:
            return 1
        return self.partial_accumulators or partial_accumulators(self.tile, self.rows, self.vectors)

    def loops(self, target: Target, rows: Index) -> bool:
        """Whether the function itself loops over the tiles of `rows` on a target; not with fixed `sizes`."""
        together = kernel_costs(target).called_tiles > 1
        return together and isinstance(rows, int) and not self.prefetch and self.sizes is None

    def together(self, target: Target, rows: Index, tiles: int, panel_rows: Index) -> MicroKernel:
        """Return the variant that loops over `tiles` itself where possible, for a panel with `panel_rows` rows."""
        if not self.loops(target, rows):
            return self
        costs = kernel_costs(target)
        fits = isinstance(panel_rows, int) and panel_rows * self.tile.panel <= costs.widened_groups
        widened = fits and tiles >= costs.widened_tiles and self.dot.widened is not None
        return dataclasses.replace(self, looped=True, widened=widened)

    def of_tile(self, rows: int, columns: Columns, whole_rows: Index) -> MicroKernel:
        """
        Return the variant for one tile of some columns of a product with `whole_rows` rows.

        Sums of floats have no partial accumulators: results depend neither on the number of rows nor on their division
        into tiles and blocks. Sums of integers are exact in any order, and use partial ones if there are few rows.

        If only half of the last vector is needed, it is half as wide: many machines split their widest vectors, and
        full lanes need no mask. A looped epilogue needs vectors of equal width.
        """
        min_rows = balanced(whole_rows, self.tile.rows)[-1][1] if isinstance(whole_rows, int) and whole_rows else rows
        lanes, vectors = self.tile.lanes, columns.vectors
        rest = columns.count % lanes if isinstance(columns.count, int) else 0
        even = self.epilogue is None or self.epilogue.is_light
        halved = lanes >= MIN_LANES and self.dot.has_vectors_of(lanes // 2)
        narrow = even and halved and 0 < rest <= lanes // 2
        return dataclasses.replace(
            self,
            rows=rows,
            vectors=vectors,
            narrow=narrow,
            far=self.far and rows >= self.tile.min_rows and vectors == self.tile.vectors,
            long=self.long and rows >= self.tile.min_rows,
            partial=columns.partial and not (narrow and rest == lanes // 2),
            partial_accumulators=1
            if is_float(self.dot.accumulators)
            else partial_accumulators(self.tile, min_rows, vectors),
        )

    def lanes_of(self, vector_: int) -> int:
        """Return the number of lanes of a vector of a row."""
        return self.tile.lanes // 2 if self.narrow and vector_ == self.vectors - 1 else self.tile.lanes

    @property
    def moving(self) -> list[str]:
        """The addresses, besides that of the panel, that move with its rows."""
        return ["source"] * self.packs + ["ahead"] * bool(self.prefetch)

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
        names += [item for name in self.moving for item in ((name, ptr), (f"{name}_step", index_type))]
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
        """A readable name of the function."""
        flags = (
            *("looped", "widened", "narrow", "partial", "shared", "bias", "accumulate", "wraps", "prefetch", "sizes"),
            *("far", "long", "packs"),
        )
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
        """Emit the loop over tiles of consecutive rows."""
        steps = {"input": ("input_step", self.dot.memory), "output": ("output_step", self.output_element)}
        for index, extra in enumerate(self.extras):
            if extra.moves:
                steps[f"extra{index}"] = (f"extra_step{index}", extra.element)
        with b.loop(0, given["count"], carried=[given[name] for name in steps]) as tiles:
            self._tile(b, given | dict(zip(steps, tiles.values, strict=True)))
            following = zip(tiles.values, steps.values(), strict=True)
            tiles.set(*(address.at(given[step] * self.rows, element) for address, (step, element) in following))

    def _tile(self, b: Builder, given: dict[str, Value]) -> None:
        """Emit one tile."""
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
    """Return a copy of a panel with widened dot groups, which all tiles read."""
    panel = b.stack(dot.right_group, kernel_costs(b.target).widened_groups, align=8)
    with b.loop(0, given["dot_groups"]) as dot_group:
        parts = kernel.dot.columns(b, given["weights"].at(dot_group, kernel.dot.right_group), 1)
        for part, value in enumerate(parts):
            panel.at(dot_group, dot.right_group).at(part, value.type).store(value)
    return panel


def _masks(b: Builder, kernel: MicroKernel, given: dict[str, Value]) -> list[Value | None]:
    """Return for each vector the mask of its existing lanes, `None` if all exist."""
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
    """Return the initial accumulators, row by row."""
    lanes = [kernel.lanes_of(v) for v in range(kernel.vectors)]

    def row(address: Value) -> list[Value]:
        addresses = [address.at(v * kernel.tile.lanes, kernel.element) for v in range(kernel.vectors)]
        return [_read(b, kernel, *vector_) for vector_ in zip(addresses, lanes, masks, strict=True)]

    if kernel.accumulate:
        return [v for address in row_addresses(b, kernel, given, "output", kernel.element) for v in row(address)]
    zeros = [b.constant(0.0, vector(kernel.element, width)) for width in lanes]
    first = row(given["bias"]) if kernel.bias else zeros
    if kernel.dot.start:
        addresses = [given["weights"].at(v * kernel.tile.lanes, kernel.element) for v in range(kernel.vectors)]
        accumulators = [address.load(zero.type) for address, zero in zip(addresses, zeros, strict=True)]
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
    state = [*accumulators, *zeros, weights, *(given[name] for name in kernel.moving)]
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
    Apply `added` to a state with zero accumulators, and add its results to the accumulators of `state`.

    The rest of the state is taken from the result of `added`.
    """
    count = len(accumulators)
    zeros = [b.constant(0.0, value.type) for value in accumulators]
    found = added([*zeros, *state[count:]])
    return [*(total + own for total, own in zip(state, found[:count], strict=False)), *found[count:]]


def _segment(
    b: Builder, kernel: MicroKernel, given: dict[str, Value], inputs: Sequence[Value], state: Sequence[Value]
) -> list[Value]:
    """Add the products of one segment, and of the partial dot group at its end."""
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
    """Add the products of `depth` dot groups, several at a time, then the remaining ones one by one."""
    dot_groups = max(kernel.ways, kernel_costs(b.target).unrolled_groups, 2 if kernel.long else 1)
    whole = depth if dot_groups == 1 else depth // dot_groups * dot_groups
    with b.loop(0, whole, dot_groups, carried=state) as loop:
        if kernel.far:
            weights, *moving = loop.values[kernel.rows * kernel.vectors * kernel.ways :]
            step = given["source_step"] if kernel.packs else kernel.tile.panel
            _fetch_rows(b, kernel, moving[0] if kernel.packs else weights, step, dot_groups)
        loop.set(*_step(b, kernel, given, inputs, loop.index, loop.values, dot_groups))
    results = loop.results
    if dot_groups > 1:
        with b.loop(whole, depth, carried=results) as rest:
            rest.set(*_step(b, kernel, given, inputs, rest.index, rest.values, 1))
        results = rest.results
    return results


def _fetch_rows(b: Builder, kernel: MicroKernel, first: Value, step: Index, count: int) -> None:
    """Fetch `count` rows of a panel, `step` dot groups apart, that are some rows behind the `first` one of a step."""
    dot_group, panel = kernel.dot.right_group, kernel.tile.panel
    ahead = kernel_costs(b.target).fetched_rows
    for row in range(ahead, ahead + count):
        for start in range(0, panel, line_elements(b.target, dot_group)):
            b.prefetch(first.at(step * row, dot_group).at(start, dot_group))


def _pack_row(b: Builder, kernel: MicroKernel, source: Value, row: Value) -> None:
    """Copy a row of a matrix to a row of a panel."""
    dot_group, lanes = kernel.dot.right_group, kernel.tile.lanes
    for start in range(0, kernel.tile.panel, lanes):
        row.at(start, dot_group).store(source.at(start, dot_group).load(vector(dot_group, lanes)))


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
    Return the state after `dot_groups` dot groups: each takes a row of the panel, and one broadcast input per row.

    The last one may have only `rest` elements.
    """
    lanes, dot, dot_group, panel = kernel.tile.lanes, kernel.dot, kernel.dot.right_group, kernel.tile.panel
    size, last = kernel.rows * kernel.vectors, given["last"] if kernel.shared else None
    starts = [] if last is None else [b.min((first + way) * dot.group, last) for way in range(dot_groups)]
    accumulators, (weights, *moving) = list(state[: size * kernel.ways]), state[size * kernel.ways :]
    packed, ahead = moving[: int(kernel.packs)], moving[int(kernel.packs) :]
    for way in range(dot_groups):
        for source in packed:
            _pack_row(b, kernel, source.at(given["source_step"] * way, dot_group), weights.at(way * panel, dot_group))

        def column(v: int, way: int = way) -> Parts:
            return dot.columns(b, weights.at(way * panel + v * lanes, dot_group), kernel.lanes_of(v))

        # Scalars are loaded at their first use: there are few registers for the factors of a dot group.
        columns = {v: column(v) for v in range(kernel.vectors) if lanes > 1}
        for row, address in enumerate(inputs):
            start = address.at(first + way, dot.left_group) if last is None else address.at(starts[way], dot.memory)
            value = dot.read(b, start, rest)
            spread = {
                width: dot.spread(b, value, width)
                for width in dict.fromkeys(map(kernel.lanes_of, range(kernel.vectors)))
            }
            for v in range(kernel.vectors):
                if v not in columns:
                    columns[v] = column(v)
                index = way % kernel.ways * size + row * kernel.vectors + v
                accumulators[index] = dot.multiply_add(b, spread[kernel.lanes_of(v)], columns[v], accumulators[index])
    if ahead:
        for line in range(kernel.prefetch):
            b.prefetch(ahead[0].at(line * line_elements(b.target, dot_group), dot_group), level=2)
        ahead = [ahead[0].at(given["ahead_step"] * dot_groups, dot_group)]
    packed = [source.at(given["source_step"] * dot_groups, dot_group) for source in packed]
    return [*accumulators, weights.at(dot_groups * panel, dot_group), *packed, *ahead]

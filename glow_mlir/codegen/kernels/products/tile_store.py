"""The end of the micro-kernel: the accumulators of a tile pass through the epilogue and are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, ExtraOperand, write_masked
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.builder.x86 import MAX_PACKED, packs_to_bytes
from glow_mlir.codegen.kernels.products.clipped_store import Grid, clips_numbers, store_clipped
from glow_mlir.codegen.kernels.products.dot_products import DotProduct
from glow_mlir.codegen.kernels.products.tiles import Tile
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ExtraKind:
    """
    The properties of an extra operand that code depends on: whether it `moves` from row to row, or is `spread`.
    """

    element: Attribute
    moves: bool
    spread: bool

    def extra(self, pointer: Value) -> ExtraOperand:
        """Return an extra operand of this kind whose row begins at `pointer`."""
        return ExtraOperand(pointer, self.element, (0 if self.spread else 1,))


@dataclass(frozen=True)
class StoredTile:
    """
    The properties of a tile that its code depends on: `rows` and `vectors` of it are used, with accumulators of `dot`.

    If it is `partial`, only its first `columns` exist; if it `wraps`, it continues from line to line. `extras` are the
    extra operands of the epilogue, those that it writes first.
    """

    dot: DotProduct
    tile: Tile
    rows: int
    vectors: int
    partial: bool = False
    wraps: bool = False
    epilogue: Epilogue | None = None
    extras: tuple[ExtraKind, ...] = ()

    @property
    def element(self) -> Attribute:
        """The element type of the accumulators."""
        return self.dot.accumulators

    @property
    def output_element(self) -> Attribute:
        """The element type of the output."""
        return self.element if self.epilogue is None else self.epilogue.element


def row_addresses(
    b: Builder, kernel: StoredTile, given: Mapping[str, Value], name: str, element: Attribute
) -> list[Value]:
    """Return the address of the first column of each row of the input, the output, or an extra operand that moves."""
    number = name.removeprefix("extra")
    step, jump = (f"extra_step{number}", f"extra_jump{number}") if number != name else (f"{name}_step", f"{name}_jump")
    rows = [given[name]]
    position = given.get("position")
    for row in range(1, kernel.rows):
        if position is None:
            rows.append(given[name].at(given[step] * row, element))
            continue
        position = position + 1
        ends = position.eq(given["width"])
        rows.append(rows[-1].at(b.select(ends, given[jump], given[step]), element))
        position = b.select(ends, 0, position)
    return rows


def _joined(b: Builder, values: Sequence[Value]) -> Value:
    """Join 1, 2 or 4 vectors or scalars to one vector."""
    if len(values) > 1 and values[0].lanes == 1:
        joined = b.splat(values[0], len(values))
        for lane, value in enumerate(values[1:], 1):
            joined = b.insert(joined, value, lane)
        return joined
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [b.shuffle(low, high, range(low.lanes + high.lanes)) for low, high in pairs]
    return values[0]


@dataclass(frozen=True)
class TileStore:
    """Stores one tile of results; `masks` has the existing lanes of each vector of columns, `None` for all."""

    b: Builder
    kernel: StoredTile
    given: Mapping[str, Value]
    masks: Sequence[Value | None]

    def run(self, accumulators: Sequence[Value]) -> None:
        """Store the accumulators, row by row."""
        if self.kernel.epilogue is None or self.kernel.epilogue.is_light:
            self._unrolled(accumulators)
        else:
            self._looped(accumulators)

    def _unrolled(self, accumulators: Sequence[Value]) -> None:
        """Emit a copy of the epilogue for each vector, in registers."""
        kernel = self.kernel
        clips_at = None if kernel.epilogue is None else kernel.epilogue.clips_at
        is_even = not kernel.wraps and not any(self.masks)
        if clips_at is not None and is_even and clips_numbers(self.b, accumulators, clips_at):
            grid = Grid(self.given["output"], kernel.rows, kernel.vectors, self.given["output_step"], 1)
            store_clipped(self.b, accumulators, grid, clips_at)
            return
        outputs = row_addresses(self.b, kernel, self.given, "output", self.kernel.output_element)
        extras = [self._extra_rows(index) for index in range(len(kernel.extras))]
        loaded: dict[tuple[int, int], Value] = {}
        groups = self._groups([value.lanes for value in accumulators[: kernel.vectors]])
        for row, output in enumerate(outputs):
            addresses = [output, *(rows[row] for rows in extras)]
            for v, count in groups:
                mask, first = self.masks[v], row * kernel.vectors + v
                value = _joined(self.b, accumulators[first : first + count])
                if mask is not None and kernel.tile.lanes == 1:
                    with self.b.when(mask):
                        self.store_vector(value, addresses, v * kernel.tile.lanes, None, {}, v)
                else:
                    self.store_vector(value, addresses, v * kernel.tile.lanes, mask, loaded, v)

    def _groups(self, lanes: Sequence[int]) -> list[tuple[int, int]]:
        """Return the vectors of a row that pass the epilogue together, as (first, count)."""
        groups: list[tuple[int, int]] = []
        while (first := sum(count for _, count in groups)) < len(lanes):
            groups.append(
                (
                    first,
                    next(count for count in (MAX_PACKED, MAX_PACKED // 2, 1) if self._is_group(first, lanes, count)),
                )
            )
        return groups

    def _is_group(self, first: int, lanes: Sequence[int], count: int) -> bool:
        """
        Whether `count` vectors are whole and of one type, and become bytes that one instruction packs; or are scalars
        that fill a vector.
        """
        if count == 1:
            return True
        members = slice(first, first + count)
        whole = lanes[members] == [lanes[first]] * count and all(mask is None for mask in self.masks[members])
        if self._scalars_fill(count):
            return whole
        return (
            whole and bit_width(self.kernel.output_element) == 8 and packs_to_bytes(self.b.target, sum(lanes[members]))
        )

    def _scalars_fill(self, count: int) -> bool:
        """Whether accumulators are scalars on a target with vectors of `count` of them."""
        kernel = self.kernel
        return kernel.tile.lanes == 1 and self.b.target.vector_width(kernel.element) == count

    def _extra_rows(self, index: int) -> list[Value]:
        """Return the address of an extra operand for each row."""
        kind, name = self.kernel.extras[index], f"extra{index}"
        if not kind.moves:
            return [self.given[name]] * self.kernel.rows
        return row_addresses(self.b, self.kernel, self.given, name, kind.element)

    def store_vector(
        self,
        value: Value,
        addresses: Sequence[Value],
        column: Index,
        mask: Value | None,
        loaded: dict[tuple[int, int], Value],
        v: int,
    ) -> None:
        """Pass one vector through the epilogue; `loaded` keeps vectors of extra operands that all rows share."""
        b, kernel = self.b, self.kernel
        if kernel.epilogue is None:
            write_masked(b, value, addresses[0].at(column, self.kernel.output_element), mask)
            return
        sources: list[Value] = []
        for index in range(kernel.epilogue.targets, len(kernel.extras)):
            kind = kernel.extras[index]
            found = None if kind.moves else loaded.get((index, v))
            if found is None:
                found = loaded[index, v] = self._read(index, addresses[1 + index], column, value.lanes, mask)
            sources.append(found)
        results = kernel.epilogue.apply(b, value, sources)
        types = [self.kernel.output_element, *(kind.element for kind in kernel.extras)]
        for result, address, element in zip(results, addresses, types, strict=False):
            write_masked(b, result, address.at(column, element), mask)

    def _read(self, index: int, address: Value, column: Index, lanes: int, mask: Value | None) -> Value:
        """Load columns of an extra operand whose row begins at an address."""
        kind = self.kernel.extras[index]
        step = int(not kind.spread)
        return kind.extra(address).read(self.b, column if step else 0, step, lanes, mask)

    def fixed_extras(self, lanes: int, mask: Value | None) -> dict[tuple[int, int], Value]:
        """Load the first `lanes` columns of extra operands that all rows share, as `loaded` of `store_vector`."""
        kernel = self.kernel
        first = kernel.epilogue.targets if kernel.epilogue else 0
        fixed = (index for index in range(first, len(kernel.extras)) if not kernel.extras[index].moves)
        return {(index, 0): self._read(index, self.given[f"extra{index}"], 0, lanes, mask) for index in fixed}

    def _looped(self, accumulators: Sequence[Value]) -> None:
        """
        Emit one copy of the epilogue, in loops over a copy of the tile on the stack, which stays in the L1 cache.

        The vectors of a row become wide vectors: a long epilogue is a chain of operations, and several chains side by
        side keep the processor busy.
        """
        b, kernel, lanes = self.b, self.kernel, self.kernel.tile.lanes
        wide = 1 if lanes == 1 else kernel.vectors & -kernel.vectors
        tile = b.stack(kernel.element, len(accumulators) * lanes)
        for index, value in enumerate(accumulators):
            tile.at(index * lanes, kernel.element).store(value)
        moving = [index for index, kind in enumerate(kernel.extras) if kind.moves]
        carried = [self.given["output"], *(self.given[f"extra{index}"] for index in moving)]
        if kernel.wraps:
            carried.append(self.given["position"])
        with b.loop(0, kernel.rows, carried=carried) as rows:
            addresses = [rows.values[0], *(self.given[f"extra{index}"] for index in range(len(kernel.extras)))]
            for position, index in enumerate(moving):
                addresses[1 + index] = rows.values[1 + position]
            with b.loop(0, kernel.vectors, wide) as v:
                offset = (rows.index * kernel.vectors + v) * lanes
                value = tile.at(offset, kernel.element).load(vector(kernel.element, lanes * wide))
                self._looped_group(value, addresses, b.index(v * lanes))
            rows.set(*self.next_row(rows.values, moving))

    def _looped_group(self, value: Value, addresses: Sequence[Value], column: Value) -> None:
        lanes = value.lanes
        if not self.kernel.partial:
            self.store_vector(value, addresses, column, None, {}, 0)
            return
        left = self.given["columns"] - column
        if lanes == 1:
            with self.b.when(left > 0):
                self.store_vector(value, addresses, column, None, {}, 0)
        else:
            self.store_vector(value, addresses, column, self.b.mask(left, lanes, bit_width(self.kernel.element)), {}, 0)

    def next_row(self, values: Sequence[Value], moving: Sequence[int]) -> list[Value]:
        """Return the addresses of the next row, and its position in its line."""
        b, given = self.b, self.given
        elements = [self.kernel.output_element, *(self.kernel.extras[index].element for index in moving)]
        steps = [given["output_step"], *(given[f"extra_step{index}"] for index in moving)]
        if not self.kernel.wraps:
            return [v.at(step, element) for v, step, element in zip(values, steps, elements, strict=True)]
        *pointers, position = values
        jumps = [given["output_jump"], *(given[f"extra_jump{index}"] for index in moving)]
        position = position + 1
        ends = position.eq(given["width"])
        following = [
            pointer.at(b.select(ends, jump, step), element)
            for pointer, step, jump, element in zip(pointers, steps, jumps, elements, strict=True)
        ]
        return [*following, b.select(ends, 0, position)]

"""Kernels that run another kernel tile by tile, which adds bodies, run-time sizes and tasks for threads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import combinations
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation

from glow_mlir.analysis.cost import is_profitable, work
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.instruction_functions import instruction_function, symbols_of
from glow_mlir.codegen.kernels.elements.elementwise import StackKernel
from glow_mlir.codegen.selection.acceptance import executes
from glow_mlir.codegen.selection.form import Latest
from glow_mlir.codegen.selection.kernel import Buffer, Choice, Kernel, KernelCall, Operand, Tiles, operands_of, tiles_of
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.tile import Tile
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.forms import at_largest
from glow_mlir.dialects.glow_low.memory import buffer_type, byte_size
from glow_mlir.dialects.shapes import is_empty
from glow_mlir.dialects.sizes import largest, static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

ROWS = "tile"
"""The key in the `tiles` of an instruction for the number of indices of the last parallel axis in a tile."""

MIN_TILES = 32
"""The smallest number of tiles, if there are as many indices, so that threads have even shares."""

MIN_CUT = 8
"""The smallest number of tiles of an instruction that is worth several threads."""

MIN_BYTES = 1 << 10
"""The smallest size of a tile in bytes; for smaller ones, calls take too long."""

SUFFIX = "-tiled"
"""The suffix that the name of a tiled kernel adds to the name of its inner kernel."""


class TiledKernel(Kernel):
    """
    The loops over the tiles of an instruction; each tile is computed by another kernel.

    It is chosen for instructions that the inner kernel does not execute as a whole, and for several threads if the
    inner kernel has no axis to divide. The functions of a tile, up to three, are shared by all instructions with equal
    tiles.
    """

    AXES = ("tiles",)
    EPILOGUE = True
    PROLOGUE = True
    RUN_TIME_SIZES = True

    def __init__(self, inner: Kernel) -> None:
        self.inner = inner
        self._tiles = Latest[Tile | None]()
        self._choices = Latest[ChosenTile]()

    def tile_of(self, op: Operation, tiles: Sequence[Tile] | None = None) -> Tile | None:
        """
        Return the tile of one index of an instruction that the inner kernel executes, or `None`.

        A caller that asks several kernels computes the possible `tiles` once.
        """
        return self._tiles.of(op, lambda: tile_of(tiles_for(op) if tiles is None else tiles, self.inner))

    def accepts(self, op: Operation) -> bool:
        return self.tile_of(op) is not None

    def candidates(self, op: Operation, storage: Storage, target: Target) -> Sequence[Tiles]:
        tile = self.tile_of(op)
        if tile is None:
            return ()
        sized = replace(tile, rows=_rows(tile, target))
        if not executes(self.inner, sized.plain):
            return ()
        return [{ROWS: sized.rows, **tiles} for tiles in self.inner.candidates(sized.plain, storage, target)]

    def is_worth(self, tile: Tile, target: Target) -> bool:
        """
        Whether stacks within tiles are faster than separate stacks.

        They save the memory traffic in between, since tiles stay near the core, but read again, for each tile, the
        operands that every tile reads as a whole. A single tile or tiny tiles save nothing. The number of threads does
        not matter, so that results do not depend on it.
        """
        tile = replace(tile, rows=_rows(tile, target))
        staged_bytes = sum(map(byte_size, tile.staged.values()))
        count = math.prod(map(largest, tile.extents)) // tile.rows
        min_count = MIN_CUT if self.inner.AXES and _is_much(tile.op, target) else 2
        is_tiny = staged_bytes + sum(map(byte_size, tile.moved())) < MIN_BYTES
        if is_tiny or staged_bytes > target.l2_bytes // 2 or count < min_count:
            return False
        repeated = (count - 1) * sum(map(byte_size, tile.unmoved()))
        return is_profitable(2 * count * staged_bytes - repeated)

    def packed(self, op: Instruction, target: Target) -> Mapping[str, PackedForm]:
        chosen = self._chosen(op)
        forms, tile = self.inner.packed(chosen.inner, target), chosen.tile
        is_whole = all(axis is None for name in forms for axis in tile.operand_axes[name][0])
        return forms if is_whole else {}

    def choices(self, op: Instruction, target: Target) -> Mapping[str, Choice]:
        chosen = self._chosen(op)
        extents = chosen.tile.extents
        extent = largest(extents[-1]) if extents else 1
        rows = {ROWS: Choice(range(1, max(extent, 1) + 1), needed=True)}
        return {**self.inner.choices(chosen.prepared(self.inner, target), target), **rows}

    def scratch(self, op: Instruction, target: Target) -> Sequence[Buffer]:
        chosen = self._chosen(op)
        return [*chosen.tile.scratch(), *self.inner.scratch(chosen.inner, target)]

    def private(self, op: Instruction) -> Sequence[int]:
        return range(len(operands_of(op, "scratch")))

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        tile = self._chosen(op).tile
        *outer, last = static(tile.extents) or (1,)
        return {"tiles": max(1, math.prod(outer) * -(-last // tile.rows))}

    def emit(self, call: KernelCall) -> None:
        assert isinstance(call.op, DerivedInstruction)
        tile = self._chosen(call.op).tile
        *outer, last = call.extents(tile.extents) or (1,)
        whole = last // tile.rows
        Emission(self, call, tile).run((*outer, whole))
        rest = last - whole * tile.rows
        if rest != 0:
            Emission(self, call, replace(tile, rows=1), whole * tile.rows).run((*outer, rest))

    def _chosen(self, op: Operation) -> ChosenTile:
        """Return the tile that was chosen for an instruction."""
        return self._choices.of(op, lambda: self._choose(op))

    def _choose(self, op: Operation) -> ChosenTile:
        tile = self.tile_of(op)
        assert tile is not None, "what is selected was accepted"
        return ChosenTile(replace(tile, rows=tiles_of(op).get(ROWS, 1)))


@dataclass(frozen=True)
class ChosenTile:
    """The tile that was chosen for an instruction."""

    tile: Tile

    @cached_property
    def properties(self) -> dict[str, DictionaryAttr]:
        """The properties of the tile's instruction that the whole instruction determines."""
        tiles = {name: to_attribute(size) for name, size in tiles_of(self.tile.op).items() if name != ROWS}
        return {"tiles": DictionaryAttr(tiles)} if tiles else {}

    @cached_property
    def inner(self) -> DerivedInstruction:
        """The instruction of the tile, with its `tiles`, without scratch."""
        return self.tile.inner(self.properties)

    def prepared(self, kernel: Kernel, target: Target) -> DerivedInstruction:
        """Return the instruction of the tile, with its `tiles` and the scratch buffers that a kernel needs."""
        buffers = kernel.scratch(self.inner, target)
        return self.tile.inner(self.properties, [buffer_type(*buffer) for buffer in buffers]) if buffers else self.inner


def tiles_for(op: Operation) -> Sequence[Tile]:
    """
    Return the tiles of one index that kernels may execute instead of an instruction: first with all of its bodies, then
    with stacks in place of some or all of them.
    """
    if not isinstance(op, DerivedInstruction) or "image_lines" in op.properties or any(map(is_empty, op.operands)):
        return ()
    present = op.present_bodies
    kept = (part for count in range(len(present), -1, -1) for part in combinations(present, count))
    tiles = (Tile(op, 1, frozenset(part)) for part in kept)
    return [tile for tile in tiles if len(tile.kept) < len(present) or tile.axes.count]


def tile_of(tiles: Sequence[Tile], kernel: Kernel) -> Tile | None:
    """Return the first tile that a kernel executes, or `None`."""
    return next((tile for tile in tiles if executes(kernel, tile.plain)), None)


def _rows(tile: Tile, target: Target) -> int:
    """
    Return how many indices of the last parallel axis fit in half of the L1 cache, and leave `MIN_TILES` tiles.

    It does not depend on the number of threads, since a kernel may sum in another order for fewer rows.
    """
    if not tile.extents:
        return 1
    extent = tile.extents[-1]
    tile_bytes = sum(map(byte_size, (*tile.moved(), *tile.staged.values())))
    rows = max(1, target.l1_bytes // 2 // max(1, tile_bytes))
    outer = math.prod(map(largest, tile.extents[:-1]))
    rows = min(rows, -(-largest(extent) * outer // MIN_TILES))
    if not isinstance(extent, int):
        return max(1, min(rows, largest(extent)))
    # Tiles of equal size share one function.
    return next(size for size in range(min(rows, extent), 0, -1) if extent % size == 0)


def is_worth_parts(op: Instruction, target: Target) -> bool:
    """Whether an instruction is enough work for several threads to be faster."""
    return target.policy.threads > 1 and _is_much(op, target)


def _is_much(op: Instruction, target: Target) -> bool:
    """Whether an instruction is enough work for two threads."""
    costs = kernel_costs(target)
    return work(at_largest(op), costs) >= 2 * costs.part_operations


@dataclass(frozen=True)
class Emission:
    """Emits loops over tiles of one size, the first of which begins at index `first` of the last parallel axis."""

    kernel: TiledKernel
    call: KernelCall
    tile: Tile
    first: Index = 0

    def run(self, extents: Extents) -> None:
        """Emit the calls of all tiles, or of a share of them."""
        nest(self.call.b, extents, self._at, self.call.share("tiles"))

    def _at(self, indices: list[Index]) -> None:
        """Call the stack before the instruction, the instruction, and the stack after it, for one tile."""
        *outer, last = indices
        position = [*outer, last * self.tile.rows + self.first][: len(self.tile.extents)]
        groups = {
            name: [self._moved(name, number, operand, position).pointer for number, operand in enumerate(group)]
            for name, group in self.call.operands.items()
            if name != "scratch"
        }
        own = [operand.pointer for operand in self.call.many("scratch")]
        staged = dict(zip(self.tile.staged, own, strict=False))
        result, first = self.tile.op.FIRST_RESULT, self.tile.op.FIRST_INPUT
        inner = dict(groups)
        if "prologue" in staged:
            self._stack("prologue", [staged["prologue"], groups[first][0], *groups.get("prologue_sources", ())])
            inner[first] = [staged["prologue"], *groups[first][1:]]
        if "epilogue" in staged:
            inner[result] = [staged["epilogue"]]
        op = self._inner
        inner["scratch"] = own[len(staged) :]
        names = dict.fromkeys(name for name, _, _ in op.named_uses())
        self._call(self.kernel.inner, op, [pointer for name in names for pointer in inner[name]])
        if "epilogue" in staged:
            targets, sources = (groups.get(f"epilogue_{ends}", ()) for ends in ("targets", "sources"))
            self._stack("epilogue", [*groups[result], *targets, staged["epilogue"], *sources])

    @cached_property
    def _inner(self) -> DerivedInstruction:
        return ChosenTile(self.tile).prepared(self.kernel.inner, self.call.target)

    def _moved(self, name: str, number: int, operand: Operand, position: Sequence[Index]) -> Operand:
        """Return an operand with its pointer moved to the tile at a position."""
        offset = linear(position, self.tile.steps(name, number, operand.value))
        return replace(operand, pointer=operand.pointer.at(offset, signless(operand.element)))

    def _stack(self, body: str, pointers: Sequence[Value]) -> None:
        self._call(StackKernel(), self.tile.stack(body), pointers)

    def _call(self, kernel: Kernel, op: Instruction, pointers: Sequence[Value]) -> None:
        """Call the function of an instruction; if it fails, the whole instruction fails."""
        call = self.call
        symbols = [call.symbols[name] for name in symbols_of(op)]
        behind = [call.cancelled] if call.cancelled is not None and kernel.TIME_BY_VALUES else []
        function = instruction_function(call.module, kernel, op, bool(behind))
        failed = call.b.call(function, [*pointers, *symbols, *behind])
        if failed is not None:
            with call.b.when(failed.ne(0)):
                call.fail()


def tiled(kernel: Kernel) -> TiledKernel:
    """Return the kernel that runs another one tile by tile."""
    names = ("operators", "passes", "STRICT", "LEAN", "SUMMING", "ONLY_PACKED", "READS_ZERO_POINTS", "TIME_BY_VALUES")
    kept = tuple((name, getattr(kernel, name)) for name in names)
    return _tiled_kind(type(kernel).__name__, kernel.name + SUFFIX, kept)(kernel)


@cache
def _tiled_kind(kind: str, name: str, kept: tuple[tuple[str, Any], ...]) -> type[TiledKernel]:
    """Return the class that runs a kernel of some class tile by tile, with the constants `kept` of that class."""
    return type(f"Tiled{kind}", (TiledKernel,), {"name": name, **dict(kept)})

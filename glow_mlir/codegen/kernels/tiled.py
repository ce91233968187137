"""Kernels that run another one tile by tile, and so have what that lacks: bodies, run-time sizes, parts for threads."""

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
from glow_mlir.codegen.kernels.elementwise import StackKernel
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
"""The name among the tiles of an instruction of how many indices of the last parallel axis a tile has."""

FEWEST_TILES = 32
"""How many tiles there are, if there are as many indices, so that threads have even shares."""

FEWEST_CUT = 8
"""Into how many tiles at least an instruction goes that is worth several threads."""

MIN_BYTES = 1 << 10
"""Bytes of a tile, for fewer of which its calls take too long."""

SUFFIX = "-tiled"
"""What the name of a kernel has behind that of the kernel which it runs."""


class TiledKernel(Kernel):
    """
    The loops over the tiles of an instruction, each of which another kernel computes.

    It is chosen for what that kernel does not execute whole, and for several threads where it has no axis to cut. The
    functions of a tile, of which there are up to three, are shared by all instructions with equal tiles.
    """

    AXES = ("tiles",)
    EPILOGUE = True
    PROLOGUE = True
    RUN_TIME_SIZES = True

    def __init__(self, inner: Kernel) -> None:
        self.inner = inner
        self._tiles = Latest[Tile | None]()
        self._choices = Latest[Choosing]()

    def tile_of(self, op: Operation, tiles: Sequence[Tile] | None = None) -> Tile | None:
        """
        The tile of one index of an instruction that it executes; `None` where there is none.

        Who asks several kernels makes the tiles that there may be once.
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
        Whether the stacks of tiles are faster than stacks of their own.

        They save the bytes in between, which have to stay near the core, and repeat those of operands that each tile
        reads whole. What is one tile, or tiny ones, saves nothing. How many threads there are does not matter, so that
        results do not depend on it.
        """
        tile = replace(tile, rows=_rows(tile, target))
        room = sum(map(byte_size, tile.staged.values()))
        count = math.prod(map(largest, tile.extents)) // tile.rows
        fewest = FEWEST_CUT if self.inner.AXES and _is_much(tile.op, target) else 2
        is_tiny = room + sum(map(byte_size, tile.moved())) < MIN_BYTES
        if is_tiny or room > target.l2_bytes // 2 or count < fewest:
            return False
        repeated = (count - 1) * sum(map(byte_size, tile.unmoved()))
        return is_profitable(2 * count * room - repeated)

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

    def _chosen(self, op: Operation) -> Choosing:
        """What was chosen for an instruction."""
        return self._choices.of(op, lambda: self._choosing(op))

    def _choosing(self, op: Operation) -> Choosing:
        tile = self.tile_of(op)
        assert tile is not None, "what is selected was accepted"
        return Choosing(replace(tile, rows=tiles_of(op).get(ROWS, 1)))


@dataclass(frozen=True)
class Choosing:
    """The tile that was chosen for an instruction."""

    tile: Tile

    @cached_property
    def properties(self) -> dict[str, DictionaryAttr]:
        """What the instruction says of the one of the tile."""
        tiles = {name: to_attribute(size) for name, size in tiles_of(self.tile.op).items() if name != ROWS}
        return {"tiles": DictionaryAttr(tiles)} if tiles else {}

    @cached_property
    def inner(self) -> DerivedInstruction:
        """The instruction of the tile, with its tiles, and without scratch."""
        return self.tile.inner(self.properties)

    def prepared(self, kernel: Kernel, target: Target) -> DerivedInstruction:
        """The instruction of the tile, with its tiles and the scratch that a kernel needs for it."""
        buffers = kernel.scratch(self.inner, target)
        return self.tile.inner(self.properties, [buffer_type(*buffer) for buffer in buffers]) if buffers else self.inner


def tiles_for(op: Operation) -> Sequence[Tile]:
    """
    What kernels may be asked for in place of an instruction, in tiles of one index: with its own bodies, if it has any,
    then with stacks for these.
    """
    if not isinstance(op, DerivedInstruction) or "image_lines" in op.properties or any(map(is_empty, op.operands)):
        return ()
    present = op.present_bodies
    kept = (part for count in range(len(present), -1, -1) for part in combinations(present, count))
    tiles = (Tile(op, 1, frozenset(part)) for part in kept)
    return [tile for tile in tiles if len(tile.kept) < len(present) or tile.axes.count]


def tile_of(tiles: Sequence[Tile], kernel: Kernel) -> Tile | None:
    """The first tile that a kernel executes; `None` where there is none."""
    return next((tile for tile in tiles if executes(kernel, tile.plain)), None)


def _rows(tile: Tile, target: Target) -> int:
    """
    How many indices of the last parallel axis fit into half of the first cache, and leave `FEWEST_TILES`.

    It does not depend on the number of threads: a kernel may sum in another order where it has fewer rows.
    """
    if not tile.extents:
        return 1
    extent = tile.extents[-1]
    room = sum(map(byte_size, (*tile.moved(), *tile.staged.values())))
    rows = max(1, target.l1_bytes // 2 // max(1, room))
    outer = math.prod(map(largest, tile.extents[:-1]))
    rows = min(rows, -(-largest(extent) * outer // FEWEST_TILES))
    if not isinstance(extent, int):
        return max(1, min(rows, largest(extent)))
    # Tiles of one size have one function.
    return next(size for size in range(min(rows, extent), 0, -1) if extent % size == 0)


def is_worth_parts(op: Instruction, target: Target) -> bool:
    """Whether an instruction is so much work that several threads are faster."""
    return target.policy.threads > 1 and _is_much(op, target)


def _is_much(op: Instruction, target: Target) -> bool:
    """Whether an instruction is work enough for two threads."""
    costs = kernel_costs(target)
    return work(at_largest(op), costs) >= 2 * costs.part_operations


@dataclass(frozen=True)
class Emission:
    """The loops over tiles of one size, the first of which begins at an index of the last parallel axis."""

    kernel: TiledKernel
    call: KernelCall
    tile: Tile
    first: Index = 0

    def run(self, extents: Extents) -> None:
        """Run the functions of a tile for each, or for a share of them."""
        nest(self.call.b, extents, self._at, self.call.share("tiles"))

    def _at(self, indices: list[Index]) -> None:
        """The stack in front, the instruction, and the stack behind, of one tile."""
        *outer, last = indices
        place = [*outer, last * self.tile.rows + self.first][: len(self.tile.extents)]
        groups = {
            name: [self._moved(name, number, operand, place).pointer for number, operand in enumerate(group)]
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
        return Choosing(self.tile).prepared(self.kernel.inner, self.call.target)

    def _moved(self, name: str, number: int, operand: Operand, place: Sequence[Index]) -> Operand:
        """What the tile at a place has of an operand."""
        offset = linear(place, self.tile.steps(name, number, operand.value))
        return replace(operand, pointer=operand.pointer.at(offset, signless(operand.element)))

    def _stack(self, body: str, pointers: Sequence[Value]) -> None:
        self._call(StackKernel(), self.tile.stack(body), pointers)

    def _call(self, kernel: Kernel, op: Instruction, pointers: Sequence[Value]) -> None:
        """Call the function of an instruction; where it fails, the whole one does."""
        call = self.call
        symbols = [call.symbols[name] for name in symbols_of(op)]
        behind = [call.cancelled] if call.cancelled is not None and kernel.TIME_BY_VALUES else []
        function = instruction_function(call.module, kernel, op, bool(behind))
        failed = call.b.call(function, [*pointers, *symbols, *behind])
        if failed is not None:
            with call.b.when(failed.ne(0)):
                call.fail()


def tiled(kernel: Kernel) -> TiledKernel:
    """The kernel that runs another one tile by tile."""
    names = ("operators", "passes", "STRICT", "LEAN", "SUMMING", "ONLY_PACKED", "READS_ZERO_POINTS", "TIME_BY_VALUES")
    kept = tuple((name, getattr(kernel, name)) for name in names)
    return _tiled_kind(type(kernel).__name__, kernel.name + SUFFIX, kept)(kernel)


@cache
def _tiled_kind(kind: str, name: str, kept: tuple[tuple[str, Any], ...]) -> type[TiledKernel]:
    """The class of a kernel that runs one of a kind tile by tile, and has some of its constants."""
    return type(f"Tiled{kind}", (TiledKernel,), {"name": name, **dict(kept)})

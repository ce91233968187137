"""
A tile of an instruction: some indices of its parallel axes, computed by a separate instruction.

Tiles add abilities that a kernel lacks. A prologue is a stack that fills a scratch tile before the instruction, an
epilogue is one after it. Sizes that are known only at run time become the number of tiles, of which each thread has a
share. Bodies that the kernel applies itself stay with the instruction of the tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from glow_mlir.dialects.glow_high.base import to_segments
from glow_mlir.dialects.glow_high.interfaces import ParallelAxes
from glow_mlir.dialects.glow_low.derive import BODIES, DerivedInstruction
from glow_mlir.dialects.glow_low.memory import Buffer, ViewOp, WeightOp, buffer_type, strides_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import Shape, element_of, largest_shape, rank_of, sizes_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.operations import cloned_operation, cloned_region

CHOSEN = ("kernel", "partitions", "tiles", "operandSegmentSizes")
"""Properties of an instruction that its tiles do not have."""


@dataclass(frozen=True)
class Tile:
    """
    The instruction for `rows` indices of the last parallel axis, and for one of each other axis; the whole instruction
    if there is no parallel axis.

    Each body that is not `kept` by the instruction of the tile is a stack.
    """

    op: DerivedInstruction
    rows: int
    kept: frozenset[str] = frozenset()

    @cached_property
    def axes(self) -> ParallelAxes:
        """
        The parallel axes of the instruction.

        If a stack makes the first operand, these are only the axes that move it, so that none of its elements is made
        twice.
        """
        found = self.op.unpacked().parallel_axes()
        if not self.is_staged("prologue"):
            return found
        first, sizes = found.operands.get(self.op.FIRST_INPUT, ()), sizes_of(self.op.inputs()[0])
        results = sizes_of(self.op.outputs()[0])
        own = [axis is not None and sizes[axis] == size for axis, size in zip(first, results, strict=False)]
        count = own.index(False) if False in own else len(own)
        return ParallelAxes(count, {name: axes[:count] for name, axes in found.operands.items()})

    @cached_property
    def extents(self) -> Sizes:
        """The sizes of the parallel axes."""
        return sizes_of(self.op.outputs()[0])[: self.axes.count]

    @cached_property
    def operand_axes(self) -> dict[str, Sequence[Sequence[int | None]]]:
        """For each operand of the whole instruction, by name: its axes that correspond to the parallel axes."""
        found: dict[str, list[Sequence[int | None]]] = {}
        whole: Sequence[int | None] = [None] * self.axes.count
        results = range(self.axes.count)
        first = self.axes.operands.get(self.op.FIRST_INPUT, whole)
        maps = {
            "prologue_sources": (self.op.prologue, first),
            "epilogue_targets": (self.op.epilogue, results),
            "epilogue_sources": (self.op.epilogue, results),
        }
        for name, _, _ in self.op.named_uses():
            group = found.setdefault(name, [])
            if name in maps:
                body, axes = maps[name]
                assert body is not None
                behind = len(body.targets) if name == "epilogue_sources" else 0
                group.append(_mapped(body.maps[behind + len(group)], axes))
            else:
                group.append(results if name in self.op.OPERATOR_RESULTS else self.axes.operands.get(name, whole))
        return dict(found)

    def steps(self, name: str, number: int, value: SSAValue) -> Shape:
        """The strides of operand `number` of a name along the parallel axes."""
        strides = strides_of(value)
        return tuple(0 if axis is None else strides[axis] for axis in self._walked(name, number, value))

    def part(self, name: str, number: int, value: SSAValue) -> Buffer:
        """The type of the tile's part of an operand."""
        sizes = list(sizes_of(value))
        for position, axis in enumerate(self._walked(name, number, value), 1):
            if axis is not None:
                sizes[axis] = self.rows if position == self.axes.count else 1
        return buffer_type(tuple(sizes), element_of(value), strides_of(value))

    def _walked(self, name: str, number: int, value: SSAValue) -> Iterator[int | None]:
        """
        For each parallel axis, the corresponding axis of an operand; `None` where the operand broadcasts along it.
        """
        sizes = sizes_of(value)
        for axis, extent in zip(self.operand_axes[name][number], self.extents, strict=True):
            yield None if axis is None or (sizes[axis] == 1 and extent != 1) else axis

    @cached_property
    def parts(self) -> dict[str, list[Buffer]]:
        """The tile's part of each operand of the whole instruction except scratch, by name."""
        found: dict[str, list[Buffer]] = {}
        for name, _, value in self.op.named_uses():
            if name != "scratch":
                group = found.setdefault(name, [])
                group.append(self.part(name, len(group), value))
        return found

    def moved(self) -> list[Buffer]:
        """The tile's parts of the operands that differ between tiles."""
        return [part for name, number, part in self._all_parts() if self.is_moved(name, number)]

    def unmoved(self) -> list[Buffer]:
        """The operands that all tiles read whole."""
        return [part for name, number, part in self._all_parts() if not self.is_moved(name, number)]

    def _all_parts(self) -> Iterator[tuple[str, int, Buffer]]:
        """Name, number and type of the tile's part of each operand."""
        for name, group in self.parts.items():
            for number, part in enumerate(group):
                yield name, number, part

    def is_moved(self, name: str, number: int) -> bool:
        """Whether the parts of an operand differ between tiles."""
        return any(axis is not None for axis in self.operand_axes[name][number])

    @cached_property
    def staged(self) -> dict[str, Buffer]:
        """The scratch tiles, by body: the buffers between its stack and the instruction."""
        found: dict[str, Buffer] = {}
        if self.is_staged("prologue"):
            first = self.parts[self.op.FIRST_INPUT][0]
            found["prologue"] = buffer_type(sizes_of(first), element_of(first))
        if self.is_staged("epilogue"):
            computed, *_ = self.op.inferred_types()
            found["epilogue"] = buffer_type(sizes_of(self.parts[self.op.FIRST_RESULT][0]), computed.element_type)
        return found

    def is_staged(self, body: str) -> bool:
        """Whether the instruction has this body, and that of the tile does not."""
        return body in self.op.present_bodies and body not in self.kept

    def scratch(self) -> list[tuple[Shape, Attribute]]:
        """Shapes and element types of the scratch tiles."""
        return [(largest_shape(type_), element_of(type_)) for type_ in self.staged.values()]

    @cached_property
    def plain(self) -> DerivedInstruction:
        """The instruction of the tile, before a kernel is chosen."""
        return self.inner({})

    def inner(self, properties: Mapping[str, Attribute], scratch: Sequence[Buffer] = ()) -> DerivedInstruction:
        """The instruction of the tile, with these properties and this scratch; constants can still be recognized."""
        groups: dict[str, list[SSAValue]] = {}
        for name, _, value in self.op.named_uses():
            if name == "scratch":
                continue
            group = groups.setdefault(name, [])
            part, is_moved = self.parts[name][len(group)], self.is_moved(name, len(group))
            group.append(Block(arg_types=[part]).args[0] if is_moved else _alike(value))
        scratch_groups = {"scratch": Block(arg_types=scratch).args}
        return self._without_staged({**groups, **scratch_groups}, properties, not self.axes.count)

    def whole(self) -> DerivedInstruction:
        """The whole instruction as a separate one, without the bodies that are stacks of tiles."""
        groups: dict[str, list[SSAValue]] = {}
        for name, _, value in self.op.named_uses():
            groups.setdefault(name, []).append(_alike(value))
        return self._without_staged(groups, {}, True)

    def _without_staged(
        self, groups: Mapping[str, Sequence[SSAValue]], properties: Mapping[str, Attribute], is_whole: bool
    ) -> DerivedInstruction:
        """
        The instruction on these operands; buffers replace bodies that are stacks, and the operands of these bodies.
        """
        groups = dict(groups)
        for body, name in (("prologue", self.op.FIRST_INPUT), ("epilogue", self.op.FIRST_RESULT)):
            if self.is_staged(body):
                value = groups[name][0]
                type_ = buffer_type(sizes_of(value), element_of(self.staged[body]))
                groups[name] = [Block(arg_types=[type_]).args[0], *groups[name][1:]]
                groups |= {f"{body}_targets": [], f"{body}_sources": []}
        left_out = {*CHOSEN, *(f"{body}_maps" for body in BODIES if self.is_staged(body))}
        if not is_whole:
            left_out.add("samples")
        own = {name: value for name, value in self.op.properties.items() if name not in left_out}
        names = [name for name, _ in self.op.get_irdl_definition().operands]
        lists = [groups.get(name, ()) for name in names]
        bodies = zip(self.op.present_bodies, self.op.bodies, strict=True)
        kept = [region for body, region in bodies if not self.is_staged(body)]
        return type(self.op).create(
            operands=[value for group in lists for value in group],
            properties={**own, **properties, "operandSegmentSizes": to_segments([len(group) for group in lists])},
            regions=[cloned_region(region) for region in (*self.op.own_regions, *kept)],
            location=self.op.location,
        )

    def stack(self, body: str) -> StackOp:
        """
        The stack for a body: from the operand, or the instruction's result, to scratch, or the stored result.

        The operands of a prologue are the scratch tile, the first operand and further sources; those of an epilogue are
        the result, further targets, the scratch tile and further sources.
        """
        found = self.op.prologue if body == "prologue" else self.op.epilogue
        assert found is not None
        targets, sources = self.parts.get(f"{body}_targets", []), self.parts.get(f"{body}_sources", [])
        own = self.parts[self.op.FIRST_INPUT if body == "prologue" else self.op.FIRST_RESULT][0]
        ends = [self.staged[body], own] if body == "prologue" else [own, self.staged[body]]
        rank, count = rank_of(own), len(targets)
        into, out_of = Block(arg_types=[ends[0], *targets]).args, Block(arg_types=[ends[1], *sources]).args
        itself = AffineMap.identity(rank)
        maps = [itself, *found.maps[:count], itself, *found.maps[count:]]
        region = cloned_region(self.op.bodies[0 if body == "prologue" else -1])
        return StackOp.over(into, out_of, maps, rank, self.op.location, region)


def _alike(value: SSAValue) -> SSAValue:
    """A value like a buffer, without uses: storage and views of it are cloned, of others only the type is kept."""
    owner = value.owner
    if isinstance(owner, WeightOp):
        return cloned_operation(owner).results[0]
    if isinstance(owner, ViewOp):
        return ViewOp.of(_alike(owner.source), cast("Buffer", value.type)).result
    return Block(arg_types=[value.type]).args[0]


def _mapped(affine: AffineMap, axes: Sequence[int | None]) -> list[int | None]:
    """
    The axes of a body's operand that correspond to the parallel axes, which are given as axes of the body's index
    space.
    """
    positions = {
        expression.position: axis
        for axis, expression in enumerate(affine.results)
        if isinstance(expression, AffineDimExpr)
    }
    return [None if axis is None else positions.get(axis) for axis in axes]

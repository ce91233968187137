"""`stack`: put neighbouring elementwise instructions into one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import each_user
from glow_mlir.analysis.regions import region_of, regions_overlap
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.body import YieldOp, broadcast_map
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, ViewOp, WeightOp, root_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.scalar_body import append_body, is_elementwise
from glow_mlir.dialects.shapes import Shape, element_of, shape_of, size_of
from glow_mlir.pass_statistics import tally
from glow_mlir.transforms.rewriting import fuse_locations, low_functions


@dataclass(frozen=True)
class StackPass(ModulePass):
    """
    Replace runs of elementwise instructions over one index space by a `glow_low.stack` (paper §5.2, operator stacking).

    Chains of dependent instructions stay in registers: what nothing reads behind the run is never stored. Splats become
    constants of the body.
    """

    name = "stack"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            stack_block(function.block)


MOST_MEMBERS = 128
"""Instructions in one stack; a longer run becomes several, so that their code stays of reasonable size."""

MOST_BUFFERS = 64
"""Buffers that the members of one stack read from outside or write (Glow's kArgLimit)."""


@dataclass
class Run:
    """Consecutive elementwise instructions over one index space; `splats` has the known contents of the block."""

    space: Shape
    splats: Mapping[SSAValue, Operation]
    members: list[DerivedInstruction] = field(default_factory=list[DerivedInstruction])
    sources: dict[Place, SSAValue] = field(default_factory=dict["Place", SSAValue])
    """The buffers that the members read from outside, in order."""
    written: dict[Place, SSAValue] = field(default_factory=dict["Place", SSAValue])
    """The buffers that the members write, in order."""
    touched: dict[SSAValue, list[tuple[SSAValue, bool]]] = field(
        default_factory=dict[SSAValue, list[tuple[SSAValue, bool]]]
    )
    """Allocation or weight → the buffers of it that the members use, and whether they write them."""

    def accepts(self, op: DerivedInstruction) -> bool:
        """Whether `op` may join: same index space, and it meets what the run wrote only element by element."""
        output = op.outputs()[0]
        if shape_of(output) != self.space or len(self.members) == MOST_MEMBERS:
            return False
        inputs = op.inputs()
        if len(self.sources) + len(self.written) + len(inputs) + 1 > MOST_BUFFERS:
            return False
        return all(map(self._meets_evenly, (*inputs, output))) and self._is_unread(output)

    def _meets_evenly(self, value: SSAValue) -> bool:
        """Whether a buffer is apart from all that the run wrote, but for one that it is itself."""
        touched = self.touched.get(root_of(value), ())
        return not any(
            written and other.type != value.type and regions_overlap(region_of(other), region_of(value))
            for other, written in touched
        )

    def _is_unread(self, value: SSAValue) -> bool:
        """Whether the run read nothing of a buffer."""
        touched = self.touched.get(root_of(value), ())
        return all(written or not regions_overlap(region_of(other), region_of(value)) for other, written in touched)

    def _touch(self, value: SSAValue, writes: bool) -> None:
        self.touched.setdefault(root_of(value), []).append((value, writes))

    def add(self, op: DerivedInstruction) -> None:
        """Append `op`; what it reads comes from outside unless an earlier member wrote it."""
        for value in op.inputs():
            if place_of(value) not in self.written and splat_behind(value, self.splats) is None:
                self.sources.setdefault(place_of(value), value)
            self._touch(value, writes=False)
        output = op.outputs()[0]
        self.written.setdefault(place_of(output), output)
        self._touch(output, writes=True)
        self.members.append(op)

    def targets(self) -> list[SSAValue]:
        """The buffers that the run must store: those used by anything else."""
        members = set(self.members)
        return [
            value
            for (root, _), value in self.written.items()
            if not isinstance(root.owner, AllocOp) or any(user not in members for user in each_user(root))
        ]


Place = tuple[SSAValue, Attribute]
"""An allocation or weight, and the type of a buffer of it: two values with one place are one buffer."""


def place_of(value: SSAValue) -> Place:
    """The place of a buffer."""
    return root_of(value), value.type


def stack_block(block: Block) -> None:
    """Stack all runs of one block."""
    splats = known_splats(block)
    run: Run | None = None
    for op in list(block.ops):
        if isinstance(op, AllocOp | ViewOp | WeightOp) or is_constant_splat(op, splats):
            continue
        if isinstance(op, DerivedInstruction) and is_elementwise(op):
            if run is not None and not run.accepts(op):
                emit_stack(run)
                run = None
            if run is None:
                run = Run(shape_of(op.outputs()[0]), splats)
            run.add(op)
        elif run is not None:
            emit_stack(run)
            run = None
    if run is not None:
        emit_stack(run)
    remove_unused_splats(block)


def known_splats(block: Block) -> dict[SSAValue, Operation]:
    """The allocations of a block that one splat alone writes, each with its splat."""
    writers: dict[SSAValue, Operation | None] = {}
    for op in block.ops:
        if not isinstance(op, DeallocOp):
            for root in written_roots(op):
                writers[root] = None if root in writers else op
    return {root: op for root, op in writers.items() if isinstance(root.owner, AllocOp) and is_splat(op)}


def is_splat(op: Operation | None) -> TypeGuard[DerivedInstruction]:
    """Whether `op` fills a buffer with one value."""
    return isinstance(op, DerivedInstruction) and op.OPERATOR is SplatOp


def is_constant_splat(op: Operation, splats: Mapping[SSAValue, Operation]) -> bool:
    """Whether `op` is a splat, and its buffer has no other content ever; it may then move and stay."""
    return is_splat(op) and splat_behind(op.outputs()[0], splats) is op


def splat_behind(value: SSAValue, splats: Mapping[SSAValue, Operation]) -> Operation | None:
    """The splat that alone writes the buffer `value`, or `None`."""
    root = root_of(value)
    return None if size_of(root.type) < size_of(value.type) else splats.get(root)


def written_roots(op: Operation) -> set[SSAValue]:
    """The allocations and weights that an instruction writes."""
    uses = op.uses() if isinstance(op, Instruction) else ()
    return {root_of(value) for qualifier, value in uses if qualifier.writes}


@dataclass
class StackBuilder:
    """Builds the stack of a run."""

    run: Run
    registers: dict[Place, SSAValue] = field(default_factory=dict[Place, SSAValue])
    constants: dict[tuple[object, object], SSAValue] = field(default_factory=dict[tuple[object, object], SSAValue])

    def build(self, targets: Sequence[SSAValue]) -> StackOp:
        """The stack, which stores `targets`."""
        space, sources = self.run.space, list(self.run.sources.values())
        maps = [broadcast_map(shape_of(value), space) for value in (*targets, *sources)]
        location = fuse_locations(member.location for member in self.run.members)
        op = StackOp.over(targets, sources, maps, len(space), location)
        for source, argument in zip(sources, op.block.args, strict=True):
            self.registers[place_of(source)] = argument
        for member in self.run.members:
            arguments = [self._argument(value, op.block) for value in member.inputs()]
            self.registers[place_of(member.outputs()[0])] = append_body(member, op.block, arguments)
        op.block.add_op(
            YieldOp.create(operands=[self.registers[place_of(value)] for value in targets], location=location)
        )
        return op

    def _argument(self, value: SSAValue, block: Block) -> SSAValue:
        if place_of(value) in self.registers:
            return self.registers[place_of(value)]
        splat = splat_behind(value, self.run.splats)
        assert splat is not None
        attribute = splat.properties["value"]
        type_ = signless(element_of(value))
        key = (attribute, type_)
        if key not in self.constants:
            constant = arith.ConstantOp.create(
                properties={"value": as_signless(attribute, type_)}, result_types=[type_], location=splat.location
            )
            block.add_op(constant)
            self.constants[key] = constant.results[0]
        return self.constants[key]


def as_signless(attribute: Attribute, type_: Attribute) -> Attribute:
    """An element's attribute in the type that `arith` computes in."""
    if not isinstance(type_, IntegerType):
        return attribute
    integer = cast(IntegerType, type_)
    width = integer.width.data
    number = cast("IntegerAttr[IntegerType]", attribute).value.data & ((1 << width) - 1)
    return IntegerAttr(number - (1 << width) if width > 1 and number >> (width - 1) else number, integer)


def emit_stack(run: Run) -> None:
    """Replace a run by its stack, in the place of its last member."""
    last = run.members[-1]
    block = last.parent_block()
    assert block is not None
    targets = run.targets()
    if targets:
        block.insert_op_before(StackBuilder(run).build(targets), last)
        tally("stacks made")
        tally("instructions stacked", len(run.members))
    for member in run.members:
        block.erase_op(member)


def remove_unused_splats(block: Block) -> None:
    """Erase splats whose buffer nothing reads."""
    for root, op in known_splats(block).items():
        if all(user is op for user in each_user(root)):
            block.erase_op(op)

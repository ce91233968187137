"""`stack`: fuse elementwise instructions that share buffers into one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeGuard, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import accesses_of, each_user
from glow_mlir.dialects.affine_maps import broadcast_map
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, ViewOp, WeightOp, root_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.scalar_body import append_body, is_elementwise
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import fuse_locations, low_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.rewriting.elementwise_runs import (
    MAX_MEMBERS,
    BufferKey,
    Buffers,
    ElementwiseRun,
    Use,
    merged,
    splat_behind,
)
from glow_mlir.rewriting.open_elementwise_runs import OpenRuns
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class StackPass(ModulePass):
    """
    Replace elementwise instructions by `glow_low.stack`s (paper §5.2, operator stacking).

    Instructions over one index space that share buffers become one stack, unless instructions between them prevent it.
    Intermediate values stay in registers, and are stored only if something behind the stack reads them. Splats become
    constants of the body. `members` is the maximum number of instructions in a stack; 1 gives each its own loop.
    """

    name = "stack"

    members: int = MAX_MEMBERS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            for block in blocks(function):
                stack_block(block, self.members)


class Stacking:
    """The stacking of one block."""

    def __init__(self, block: Block, most: int) -> None:
        self.block = block
        self.most = most
        self.splats = known_splats(block)
        self.buffers = Buffers()
        self.open = OpenRuns(self.buffers)

    def run(self) -> None:
        """Visit the block once; each run is closed in front of the first instruction that must come after it."""
        time = 0
        for op in list(own_operations(self.block)):
            if type(op) in (AllocOp, ViewOp, WeightOp) or is_constant_splat(op, self.splats):
                continue
            time += 1
            if isinstance(op, DerivedInstruction) and is_elementwise(op):
                self._visit(time, op)
            else:
                uses = [(access.value, access.writes) for access in accesses_of(op)]
                self._close(uses + ([(op.buffer, True)] if isinstance(op, DeallocOp) else []), ())
        for run in self.open.all():
            emit_stack(run)
        remove_unused_splats(self.block)

    def _visit(self, time: int, op: DerivedInstruction) -> None:
        """Let an elementwise instruction join the runs that it shares buffers with, or begin a new one."""
        uses = [(access.value, access.writes) for access in accesses_of(op)]
        joined = self.open.accepting(op, time, self.most)
        run = merged(joined, self.most) if joined else self._new_run(op)
        if run is None:
            joined = joined[-1:]
            run = joined[0]
        self._close(uses, joined)
        for old in joined:
            if old is not run:
                self.open.drop(old)
        self.open.add(run, time, op)

    def _new_run(self, op: DerivedInstruction) -> ElementwiseRun:
        """A new run without members for an instruction."""
        return ElementwiseRun(self.block, sizes_of(op.outputs()[0]), self.splats, self.buffers)

    def _close(self, uses: Sequence[Use], kept: Sequence[ElementwiseRun]) -> None:
        """Emit the runs, except `kept`, that must come before an instruction with these uses."""
        for run in self.open.conflicting(uses):
            if run not in kept:
                self.open.drop(run)
                emit_stack(run)


def stack_block(block: Block, most: int = MAX_MEMBERS) -> None:
    """Stack the elementwise instructions of one block, up to `most` into one."""
    Stacking(block, most).run()


def known_splats(block: Block) -> dict[SSAValue, Operation]:
    """The allocations of a block whose only writer is a splat, each with this splat."""
    if not any(is_splat(op) for op in own_operations(block)):
        return {}
    writers: dict[SSAValue, Operation | None] = {}
    for op in own_operations(block):
        for root in written_roots(op):
            writers[root] = None if root in writers else op
    own = {root: op for root, op in writers.items() if isinstance(root.owner, AllocOp) and root.owner.parent is block}
    return {root: op for root, op in own.items() if is_splat(op)}


def is_splat(op: Operation | None) -> TypeGuard[DerivedInstruction]:
    """Whether `op` fills a buffer with one value."""
    return getattr(op, "OPERATOR", None) is SplatOp


def is_constant_splat(op: Operation, splats: Mapping[SSAValue, Operation]) -> bool:
    """Whether `op` is the only writer of its buffer, and a splat: it may then be moved and kept."""
    return is_splat(op) and splat_behind(op.outputs()[0], splats) is op


def written_roots(op: Operation) -> set[SSAValue]:
    """The allocations and weights that an instruction writes, nested regions included."""
    return {root_of(access.value) for access in accesses_of(op) if access.writes}


@dataclass
class StackBuilder:
    """Builds the stack of a run."""

    run: ElementwiseRun
    registers: dict[BufferKey, SSAValue] = field(default_factory=dict[BufferKey, SSAValue])
    constants: dict[tuple[object, object], SSAValue] = field(default_factory=dict[tuple[object, object], SSAValue])

    def build(self, targets: Sequence[SSAValue]) -> StackOp:
        """The stack, with `targets` as stored buffers."""
        space, sources = self.run.space, list(self.run.sources.values())
        maps = [broadcast_map(sizes_of(value), space) for value in (*targets, *sources)]
        location = fuse_locations(member.location for _, member in self.run.members)
        op = StackOp.over(targets, sources, maps, len(space), location)
        for source, argument in zip(sources, op.block.args, strict=True):
            self.registers[self._buffer_key(source)] = argument
        for _, member in self.run.members:
            arguments = [self._argument(value, op.block) for value in member.inputs()]
            self.registers[self._buffer_key(member.outputs()[0])] = append_body(member, op.block, arguments)
        op.block.add_op(
            YieldOp.create(operands=[self.registers[self._buffer_key(value)] for value in targets], location=location)
        )
        return op

    def _buffer_key(self, value: SSAValue) -> BufferKey:
        return self.run.buffers.buffer_key(value)

    def _argument(self, value: SSAValue, block: Block) -> SSAValue:
        if (known := self.registers.get(self._buffer_key(value))) is not None:
            return known
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
    """The attribute of an element in the signless type that `arith` uses."""
    if not isinstance(type_, IntegerType):
        return attribute
    integer = cast(IntegerType, type_)
    width = integer.width.data
    number = cast("IntegerAttr[IntegerType]", attribute).value.data & ((1 << width) - 1)
    return IntegerAttr(number - (1 << width) if width > 1 and number >> (width - 1) else number, integer)


def emit_stack(run: ElementwiseRun) -> None:
    """Replace a run by its stack, at the position of its last member."""
    _, last = run.members[-1]
    block = last.parent_block()
    assert block is not None
    targets = run.targets()
    if targets:
        block.insert_op_before(StackBuilder(run).build(targets), last)
        statistics.count("stacks made")
        statistics.count("instructions stacked", len(run.members))
    for _, member in run.members:
        block.erase_op(member)


def remove_unused_splats(block: Block) -> None:
    """Erase splats whose buffers are never read."""
    for root, op in known_splats(block).items():
        if all(user is op for user in each_user(root)):
            block.erase_op(op)

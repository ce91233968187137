"""`stack`: put neighbouring elementwise instructions into one loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import AllocOp, ViewOp, WeightOp, root_of
from glow_mlir.dialects.glow_low.stack import StackOp, YieldOp, broadcast_map
from glow_mlir.dialects.scalar_body import append_body, is_elementwise
from glow_mlir.dialects.shapes import Shape, element_of, shape_of, size_of
from glow_mlir.transforms.eliminate_copies import users_of
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


@dataclass
class Run:
    """Consecutive elementwise instructions over one index space."""

    space: Shape
    members: list[DerivedInstruction] = field(default_factory=list[DerivedInstruction])

    def accepts(self, op: DerivedInstruction) -> bool:
        """Whether `op` may join: same index space, and it meets what the run wrote only element by element."""
        if shape_of(op.outputs()[0]) != self.space:
            return False
        written = {root_of(member.outputs()[0]): member.outputs()[0] for member in self.members}
        return all(written.get(root_of(value), value) is value for value in (*op.inputs(), *op.outputs())) and not any(
            root_of(op.outputs()[0]) is root_of(value) for m in self.members for value in m.inputs()
        )


def stack_block(block: Block) -> None:
    """Stack all runs of one block."""
    run: Run | None = None
    for op in list(block.ops):
        if isinstance(op, AllocOp | ViewOp | WeightOp) or is_constant_splat(op):
            continue
        if isinstance(op, DerivedInstruction) and is_elementwise(op):
            if run is not None and run.accepts(op):
                run.members.append(op)
                continue
            if run is not None:
                emit_stack(run)
            run = Run(shape_of(op.outputs()[0]), [op])
        elif run is not None:
            emit_stack(run)
            run = None
    if run is not None:
        emit_stack(run)
    remove_unused_splats(block)


def splat_value(op: Operation) -> Operation | None:
    """`op` if it fills a buffer with one value."""
    return op if isinstance(op, DerivedInstruction) and op.OPERATOR is SplatOp else None


def is_constant_splat(op: Operation) -> bool:
    """Whether `op` is a splat, and its buffer has no other content ever; it may then move and stay."""
    return isinstance(op, DerivedInstruction) and known_splat(op.outputs()[0]) is op


def known_splat(value: SSAValue) -> Operation | None:
    """The splat that alone writes the whole buffer `value`, or `None`."""
    root = root_of(value)
    if not isinstance(root.owner, AllocOp) or size_of(root.type) < size_of(value.type):
        return None
    writers = [op for op in users_of(root) if root in written_roots(op)]
    return splat_value(writers[0]) if len(writers) == 1 else None


def written_roots(op: Operation) -> set[SSAValue]:
    """The allocations and weights that an instruction writes."""
    uses = op.uses() if isinstance(op, Instruction) else ()
    return {root_of(value) for qualifier, value in uses if qualifier.writes}


@dataclass
class StackBuilder:
    """Collects operands and body of one stack."""

    run: Run
    sources: list[SSAValue] = field(default_factory=list[SSAValue])
    registers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    constants: dict[tuple[object, object], SSAValue] = field(default_factory=dict[tuple[object, object], SSAValue])

    def collect(self) -> None:
        """Find the buffers that the run reads from outside."""
        written = {member.outputs()[0] for member in self.run.members}
        for member in self.run.members:
            for value in member.inputs():
                if value not in written and value not in self.sources and known_splat(value) is None:
                    self.sources.append(value)

    def targets(self) -> list[SSAValue]:
        """The buffers that the run must store: those used by anything else."""
        members = set(self.run.members)
        outputs = [member.outputs()[0] for member in self.run.members]
        return [
            value
            for value in dict.fromkeys(outputs)
            if not isinstance(root_of(value).owner, AllocOp)
            or any(user not in members for user in users_of(root_of(value)))
        ]

    def build(self) -> StackOp:
        """The stack."""
        self.collect()
        targets = self.targets()
        space = self.run.space
        maps = [broadcast_map(shape_of(value), space) for value in (*targets, *self.sources)]
        location = fuse_locations(member.location for member in self.run.members)
        op = StackOp.over(targets, self.sources, maps, len(space), location)
        for source, argument in zip(self.sources, op.block.args, strict=True):
            self.registers[source] = argument
        for member in self.run.members:
            arguments = [self._argument(value, op.block) for value in member.inputs()]
            self.registers[member.outputs()[0]] = append_body(member, op.block, arguments)
        op.block.add_op(YieldOp.create(operands=[self.registers[value] for value in targets], location=location))
        return op

    def _argument(self, value: SSAValue, block: Block) -> SSAValue:
        if value in self.registers:
            return self.registers[value]
        splat = known_splat(value)
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
    builder = StackBuilder(run)
    if builder.targets():
        block.insert_op_before(builder.build(), last)
    for member in run.members:
        block.erase_op(member)


def remove_unused_splats(block: Block) -> None:
    """Erase splats whose buffer nothing reads."""
    for op in list(block.ops):
        if is_constant_splat(op) and users_of(next(iter(written_roots(op)))) == [op]:
            block.erase_op(op)

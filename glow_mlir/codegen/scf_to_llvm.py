"""`scf-to-llvm`: converts loops and branches of functions of the `llvm` dialect to blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.llvm import AddOp, BrOp, CondBrOp, ConstantOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.codegen.builder.arithmetic import INT_PREDICATES, NO_OVERFLOW
from glow_mlir.codegen.builder.types import i1, i32_array
from glow_mlir.dialects.early_return import ReturnIfOp
from glow_mlir.dialects.llvm_ops.values import ICmpOp
from glow_mlir.driver.pipelines import STAGE
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.creation import append, created


@dataclass(frozen=True)
class ScfToLlvmPass(ModulePass):
    """
    Replace `scf.for`, `scf.while`, `scf.if` and `glow.return_if` by blocks and jumps of the `llvm` dialect.

    Each loop is tested at the end of its trips, and before the first one unless constants show that it runs. The
    operations that compute the condition of a `scf.while` are therefore duplicated.
    """

    name = "scf-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        flattened(op)
        op.attributes.pop(STAGE, None)


def flattened(module: ModuleOp) -> ModuleOp:
    """The module, after blocks and jumps have replaced the regions in its functions, and in those of modules in it."""
    for op in module.body.block.ops:
        if isinstance(op, ModuleOp):
            flattened(op)
        elif isinstance(op, FuncOp) and op.body.blocks:
            check_cancellation()
            entry = op.body.blocks[0]
            _Flattening(op.body).append(tuple(own_operations(entry)), entry)
    return module


class _Flattening:
    """The blocks of one function under construction."""

    def __init__(self, body: Region) -> None:
        self._body = body

    def append(self, ops: Iterable[Operation], block: Block) -> Block:
        """Append operations to a block, which may contain some of them already; return the block where they end."""
        for op in ops:
            rule = _RULES.get(type(op))
            if rule is not None:
                block = self._behind(op, rule(self, op, block))
            elif op.parent is not block:
                op.detach()
                append(block, op)
        return block

    def _behind(self, op: Operation, after: Block) -> Block:
        """Remove an operation that blocks replace; `after` follows these, and its arguments are the results."""
        for result, argument in zip(op.results, after.args, strict=True):
            result.replace_all_uses_with(argument)
        op.detach()
        op.drop_all_references()
        self._body.add_block(after)
        return after

    def _moved(self, region: Region) -> tuple[Block, Sequence[SSAValue]]:
        """Move the block of a region into the function; return the block where it ends, and the yielded values."""
        first = region.block
        region.detach_block(first)
        self._body.add_block(first)
        last = self.append(tuple(own_operations(first)), first)
        return last, _without_end(last)

    def for_loop(self, op: Operation, block: Block) -> Block:
        """Convert a counting loop; it is tested before its first trip only if constants do not show that it runs."""
        first, limit, step, *carried = op.operands
        (region,) = op.regions
        body, after = region.block, _after(op)
        if _runs(first, limit):
            _jump(block, body, [first, *carried])
        else:
            _branch(block, _is_less(block, first, limit), body, [first, *carried], after, carried)
        last, passed = self._moved(region)
        following = created(AddOp, [body.args[0], step], [step.type], NO_OVERFLOW)
        append(last, following)
        index = following.results[0]
        _branch(last, _is_less(last, index, limit), body, [index, *passed], after, passed)
        return after

    def while_loop(self, op: Operation, block: Block) -> Block:
        """Convert a loop with a condition, which is tested before the first trip and at the end of each."""
        before, region = op.regions
        body, after = region.block, _after(op)
        self._test(before.block, tuple(op.operands), block, body, after)
        last, passed = self._moved(region)
        self._test(before.block, passed, last, body, after)
        return after

    def _test(self, before: Block, values: Sequence[SSAValue], block: Block, body: Block, after: Block) -> None:
        """Compute the condition of a loop for `values`, at the end of a block, and branch by it."""
        known: dict[SSAValue, SSAValue] = dict(zip(before.args, values, strict=True))
        copies = Block([op.clone(known) for op in own_operations(before)])
        last = self.append(tuple(own_operations(copies)), block)
        condition, *passed = _without_end(last)
        _branch(last, condition, body, passed, after, passed)

    def branch(self, op: Operation, block: Block) -> Block:
        """Convert a branch of two regions, or of one."""
        ways, after = [region for region in op.regions if region.blocks], _after(op)
        yes, no = ways[0].block, ways[1].block if len(ways) > 1 else after
        _branch(block, op.operands[0], yes, (), no, ())
        for way in ways:
            last, passed = self._moved(way)
            _jump(last, after, passed)
        return after

    def early_return(self, op: Operation, block: Block) -> Block:
        """Convert a conditional return to a block that returns, and one for the operations that follow."""
        condition, *values = op.operands
        leave, after = Block([created(ReturnOp, values)]), _after(op)
        self._body.add_block(leave)
        _branch(block, condition, leave, (), after, ())
        return after


_RULES: Mapping[type[Operation], Callable[[_Flattening, Operation, Block], Block]] = {
    scf.ForOp: _Flattening.for_loop,
    scf.WhileOp: _Flattening.while_loop,
    scf.IfOp: _Flattening.branch,
    ReturnIfOp: _Flattening.early_return,
}
"""
Operation → the method that converts it at the end of a block, and returns the block for the operations that follow.
"""


def _after(op: Operation) -> Block:
    """An empty block with an argument for each result."""
    return Block(arg_types=[result.type for result in op.results])


def _without_end(block: Block) -> Sequence[SSAValue]:
    """Remove the terminator of a block, and return its operands."""
    end = block.last_op
    assert end is not None
    operands = tuple(end.operands)
    end.detach()
    end.drop_all_references()
    return operands


def _runs(first: SSAValue, limit: SSAValue) -> bool:
    """Whether constants show that a loop runs at least once."""
    begin, behind = _number(first), _number(limit)
    return begin is not None and behind is not None and begin < behind


def _number(value: SSAValue) -> int | None:
    """The number of a constant; `None` for any other value."""
    op = value.owner
    attribute = op.properties["value"] if isinstance(op, ConstantOp) else None
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _is_less(block: Block, left: SSAValue, right: SSAValue) -> SSAValue:
    op = created(ICmpOp, [left, right], [i1], INT_PREDICATES["lt"])
    append(block, op)
    return op.results[0]


def _jump(block: Block, to: Block, values: Sequence[SSAValue]) -> None:
    append(block, created(BrOp, values, successors=(to,)))


def _branch(
    block: Block,
    condition: SSAValue,
    yes: Block,
    yes_values: Sequence[SSAValue],
    no: Block,
    no_values: Sequence[SSAValue],
) -> None:
    sizes = {"operandSegmentSizes": i32_array(1, len(yes_values), len(no_values))}
    append(block, created(CondBrOp, [condition, *yes_values, *no_values], properties=sizes, successors=(yes, no)))

"""
`verify-structured`: checks that functions of the `llvm` dialect have loops and branches, and no blocks to jump to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.llvm import FuncOp, GlobalOp, LLVMVoidType, ReturnOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass

from glow_mlir.dialects.early_return import ReturnIfOp
from glow_mlir.ir.checks import CheckFailed
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifyStructuredPass(ModulePass):
    """
    Check that a module has only functions and globals of the `llvm` dialect, and that each function is one block that
    returns at its end, with `scf.for`, `scf.while`, `scf.if` and `glow.return_if` inside.

    Loops count with integers; values that regions yield have the types that are expected.
    """

    name = "verify-structured"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in own_operations(op.body.block):
            if isinstance(inner, ModuleOp):
                self.apply(ctx, inner)
            elif isinstance(inner, FuncOp):
                _check_function(inner)
            elif not isinstance(inner, GlobalOp):
                raise CheckFailed(inner, f"{inner.name} is neither a function nor a global of the llvm dialect")


def _check_function(function: FuncOp) -> None:
    """Check the body of a function, if it has one."""
    name = f"@{function.sym_name.data}"
    if not function.body.blocks:
        return
    if len(function.body.blocks) > 1:
        raise CheckFailed(function, f"{name} has several blocks: loops and branches are scf.for, scf.while and scf.if")
    output = function.function_type.output
    given = () if isinstance(output, LLVMVoidType) else (output,)
    block = function.body.block
    if not isinstance(block.last_op, ReturnOp):
        raise CheckFailed(function, f"{name} does not end with {ReturnOp.name}")
    _check_block(block, given)


def _check_block(block: Block, given: Sequence[Attribute]) -> None:
    """Check the operations of a block, in a function that returns values of those types."""
    for op in own_operations(block):
        rule = _RULES.get(type(op))
        if rule is not None:
            rule(op, given)
        elif op.regions:
            raise CheckFailed(op, f"{op.name} is no structured control flow: scf.for, scf.while and scf.if are")


def _check_for(op: Operation, given: Sequence[Attribute]) -> None:
    body = op.regions[0].block
    if not isinstance(body.arg_types[0], IntegerType):
        raise CheckFailed(op, f"it counts with integers, not {body.arg_types[0]}")
    _check_block(body, given)


def _check_while(op: Operation, given: Sequence[Attribute]) -> None:
    before, after = (region.block for region in op.regions)
    end = before.last_op
    if not isinstance(end, scf.ConditionOp):
        raise CheckFailed(op, f"the region before 'do' has to end with {scf.ConditionOp.name}")
    passed = [value.type for value in end.args]
    _check_types(op, "its condition passes on", passed, after.arg_types)
    _check_types(op, "its condition passes on", passed, op.result_types)
    _check_types(op, "its trips yield", _yielded(op, after), before.arg_types)
    _check_block(before, given)
    _check_block(after, given)


def _check_if(op: Operation, given: Sequence[Attribute]) -> None:
    for region in op.regions:
        for block in region.blocks:
            _check_types(op, "its branches yield", _yielded(op, block), op.result_types)
            _check_block(block, given)
    if op.results and not op.regions[1].blocks:
        raise CheckFailed(op, "a branch with results needs two regions")


def _check_return(op: Operation, given: Sequence[Attribute]) -> None:
    if not isinstance(op.parent_op(), FuncOp) or op.next_op is not None:
        raise CheckFailed(op, f"a function returns at its end: {ReturnIfOp.name} returns from a loop or branch")
    _check_types(op, "it returns", [value.type for value in op.operands], given)


def _check_return_if(op: Operation, given: Sequence[Attribute]) -> None:
    _check_types(op, "it returns", [value.type for value in op.operands[1:]], given)


_RULES: Mapping[type[Operation], Callable[[Operation, Sequence[Attribute]], None]] = {
    scf.ForOp: _check_for,
    scf.WhileOp: _check_while,
    scf.IfOp: _check_if,
    ReturnOp: _check_return,
    ReturnIfOp: _check_return_if,
}
"""Operation → its check beyond that of its verifier, in a function that returns values of those types."""


def _yielded(op: Operation, block: Block) -> Sequence[Attribute]:
    end = block.last_op
    if not isinstance(end, scf.YieldOp):
        raise CheckFailed(op, f"its regions end with {scf.YieldOp.name}")
    return [value.type for value in end.operands]


def _check_types(op: Operation, what: str, found: Sequence[Attribute], wanted: Sequence[Attribute]) -> None:
    if list(found) != list(wanted):
        listed, others = (f"({', '.join(map(str, types))})" for types in (found, wanted))
        raise CheckFailed(op, f"{what} {listed}, where {others} is expected")

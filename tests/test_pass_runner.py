"""A module is verified behind passes that change it, whatever they change, and behind no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.test import TestOp as SomeOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.driver import pass_runner
from glow_mlir.driver.pass_runner import PassRunner


def module() -> ModuleOp:
    """A function with two operations that name the same argument."""
    block = Block(arg_types=[f32, f32])
    first = SomeOp([block.args[0]], result_types=[f32], properties={"prop1": IntegerAttr(1, i32)})
    block.add_ops([first, SomeOp([block.args[0]], attributes={"word": IntegerAttr(2, i32)}), ReturnOp()])
    return ModuleOp([FuncOp("main", ([f32, f32], []), Region(block))])


def body(module: ModuleOp) -> Block:
    """The block of the function."""
    (function,) = module.ops
    return function.regions[0].block


def first(module: ModuleOp) -> SomeOp:
    """The first operation of the function."""
    found = body(module).first_op
    assert isinstance(found, SomeOp)
    return found


def change_operand(module: ModuleOp) -> None:
    first(module).operands[0] = body(module).args[1]


def change_property(module: ModuleOp) -> None:
    first(module).properties["prop1"] = IntegerAttr(3, i32)


def change_attribute(module: ModuleOp) -> None:
    first(module).attributes["word"] = IntegerAttr(3, i32)


def change_type(module: ModuleOp) -> None:
    Rewriter.replace_value_with_new_type(first(module).results[0], i32)


def change_argument(module: ModuleOp) -> None:
    Rewriter.replace_value_with_new_type(body(module).args[1], i32)


def erase(module: ModuleOp) -> None:
    body(module).erase_op(first(module))


def insert(module: ModuleOp) -> None:
    body(module).insert_op_before(SomeOp([]), first(module))


def move(module: ModuleOp) -> None:
    op = first(module)
    after = op.next_op
    assert after is not None
    op.detach()
    body(module).insert_op_after(op, after)


def add_block(module: ModuleOp) -> None:
    (function,) = module.ops
    function.regions[0].add_block(Block())


def nothing(module: ModuleOp) -> None:
    """Change nothing."""


def count_verifications(monkeypatch: pytest.MonkeyPatch, changes: list[Callable[[ModuleOp], None]]) -> int:
    """How often a module is verified as passes change it."""

    class Change(ModulePass):
        name = "change"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            changes.pop(0)(op)

    verified: list[ModuleOp] = []
    monkeypatch.setattr(pass_runner, "verify_module", verified.append)
    PassRunner(Context(), verify_each=True).run([Change()] * len(changes), module())
    return len(verified)


def test_passes_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_verifications(monkeypatch, [nothing] * 3) == 1
    assert count_verifications(monkeypatch, [nothing, insert, nothing, erase, nothing]) == 3


CHANGES = [
    change_operand,
    change_property,
    change_attribute,
    change_type,
    change_argument,
    erase,
    insert,
    move,
    add_block,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(monkeypatch: pytest.MonkeyPatch, change: Callable[[ModuleOp], None]) -> None:
    assert count_verifications(monkeypatch, [nothing, change, nothing]) == 2

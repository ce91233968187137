"""Rewriting helpers: replacement that keeps names and locations, and erasure of dead operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, ModuleOp, NoneAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, MemoryEffect, NoMemoryEffect, SymbolOpInterface
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from glow_mlir.dialects.glow_high.control_flow import YieldOp
from glow_mlir.dialects.glow_high.storage import FuncOp, FunctionOp
from glow_mlir.dialects.glow_low.memory import FuncOp as LowFuncOp
from glow_mlir.dialects.glow_low.memory import ViewOp
from glow_mlir.ir.traversal import Scope, operations_backward, own_operations
from glow_mlir.support.identity import subclasses_of

Op = TypeVar("Op", bound=Operation)


def functions(module: ModuleOp) -> list[FunctionOp]:
    """The functions of a module, of both dialects."""
    return _of_kind(module, FunctionOp)


def high_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions of `glow_high` in a module."""
    return _of_kind(module, FuncOp)


def low_functions(module: ModuleOp) -> list[LowFuncOp]:
    """The functions of `glow_low` in a module."""
    return _of_kind(module, LowFuncOp)


def _of_kind(module: ModuleOp, kind: type[Op]) -> list[Op]:
    """The operations of a kind directly inside a module; skips the storage ops quickly."""
    found: list[Op] = []
    is_wanted = subclasses_of(kind)
    op = module.body.block.first_op
    while op is not None:
        if is_wanted[type(op)]:
            found.append(cast("Op", op))
        op = op.next_op
    return found


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Replace the results of `op` by `values` and erase it; the values take its names."""
    for result, value in zip(op.results, values, strict=True):
        if result.name_hint and not value.name_hint:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)


def copied(block: Block, arguments: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
    """Copies of the operators of a body with these arguments, and the values it then yields."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    copies: list[Operation] = []
    for op in own_operations(block):
        if isinstance(op, YieldOp):
            return copies, [values.get(value, value) for value in op.values]
        copies.append(op.clone(values))
        for new, old in zip(copies[-1].results, op.results, strict=True):
            new.name_hint = old.name_hint
    raise AssertionError("a body ends with what it yields")


def fuse_locations(locations: Iterable[LocationAttr]) -> LocationAttr:
    """Fuse the locations of several ops into one, without repetition."""
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        members = cast("ArrayAttr[Any]", location.locations).data if isinstance(location, FusedLoc) else (location,)
        parts.update((member, None) for member in members if not isinstance(member, UnknownLoc))
    if not parts:
        return UnknownLoc()
    return next(iter(parts)) if len(parts) == 1 else FusedLoc(ArrayAttr(parts), NoneAttr())


@cache
def is_pure(kind: type[Operation]) -> bool:
    """Whether traits declare that operations of a kind have no effects, so that none need be queried."""
    effects = kind.get_traits_of_type(MemoryEffect)
    return bool(effects) and all(getattr(type(effect), "get_effects").__func__ is _NO_EFFECTS for effect in effects)


_NO_EFFECTS = getattr(NoMemoryEffect, "get_effects").__func__


@cache
def _dies_unused(kind: type[Operation]) -> bool:
    """Whether operations of a kind are dead once their results are unused."""
    stays = any(kind.has_trait(trait, value_if_unregistered=False) for trait in (IsTerminator, SymbolOpInterface))
    return is_pure(kind) and not stays


def is_dead(op: Operation) -> bool:
    """Whether an operation has no effect, and unused results."""
    for result in op.results:
        if result.first_use is not None:
            return False
    return _dies_unused(type(op)) or is_trivially_dead(op)


def erase_dead(scope: Scope) -> bool:
    """Erase effect-free ops with unused results, in one backward walk; returns whether there were any."""
    changed = False
    for op in operations_backward(scope):
        if op.results and is_dead(op):
            Rewriter.erase_op(op)
            changed = True
    return changed


def erase_unused(values: Iterable[SSAValue]) -> None:
    """Erase unused views behind values."""
    for value in values:
        if isinstance(value.owner, ViewOp) and not value.uses:
            Rewriter.erase_op(value.owner)

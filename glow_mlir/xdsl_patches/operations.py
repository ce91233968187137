"""
Operations of ours that cost little to make and to read.

xDSL's `IRDLOperation` finds out anew, at each access, what never changes: that a class is a plain one, where an operand
lies, which properties have defaults. A compilation asks some hundred thousand times.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, cast

from xdsl.ir import Attribute, Block, Operation, OpOperands, OpResult, Region, SSAValue, SSAValues
from xdsl.irdl import BeforeVariadicSingleAccessor, IRDLOperation, UniqueVariadicAccessor, VarIRConstruct

from glow_mlir.xdsl_patches.creation import Values, created, give_operands, set_defaults

operands_of: Callable[[Operation], SSAValues] = attrgetter("_operands")
"""The operands of an operation as they are now: not the view through which xDSL changes them."""


class OperationKind(ABCMeta):
    """
    The class of classes of operations.

    Operands and results at a known position are read without a search. Nothing registers other classes as one of
    these, so that whether an operation is of a class follows from its own class alone: compilations ask half a million
    times.
    """

    value_list = Values
    """What holds the operands and the results of such operations."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __setattr__(cls, name: str, value: object) -> None:
        reader = _READERS.get(type(value))
        super().__setattr__(name, reader(value) if reader else value)


def _single(declared: BeforeVariadicSingleAccessor) -> Any:
    """What reads an operand or result in front of variadic ones; regions are left to xDSL."""
    index = declared.idx
    if declared.construct is VarIRConstruct.OPERAND:
        return property(lambda op: op._operands[index])
    if declared.construct is VarIRConstruct.RESULT:
        return property(lambda op: op.results[index])
    return declared


def _several(declared: UniqueVariadicAccessor) -> Any:
    """What reads the only variadic operand or result; regions are left to xDSL."""
    first, others = declared.idx, declared.num_defs - 1

    def operands(op: LeanOperation) -> Values[SSAValue]:
        values = operands_of(op)
        return Values(values[first : first + len(values) - others])

    def results(op: LeanOperation) -> Values[OpResult]:
        return Values(op.results[first : first + len(op.results) - others])

    if declared.construct is VarIRConstruct.OPERAND:
        return property(operands)
    if declared.construct is VarIRConstruct.RESULT:
        return property(results)
    return declared


_READERS: dict[type, Callable[[Any], Any]] = {
    BeforeVariadicSingleAccessor: _single,
    UniqueVariadicAccessor: _several,
}
"""xDSL's way to an operand or result → ours."""


class LeanOperation(IRDLOperation, metaclass=OperationKind):
    """The base of our operations. It has xDSL's interface."""

    if TYPE_CHECKING:
        _view: OpOperands
    else:

        def __new__(cls, *_: object, **__: object) -> Self:
            op = object.__new__(cls)
            op._view = _Operands(op)
            return op

        create = classmethod(created)

    def __post_init__(self) -> None:
        set_defaults(self)

    def set_results(self, types: Sequence[Attribute]) -> None:
        """Give the operation results of these types, in place of those that it has, which nothing uses."""
        self.results = Values([OpResult(type_, self, index) for index, type_ in enumerate(types)])

    def _set_operands(self, values: Sequence[SSAValue]) -> None:
        """Give the operation other operands."""
        for operand, use in zip(self._operands, self._operand_uses, strict=False):  # An erased one has no uses.
            operand.remove_use(use)
        give_operands(self, Values(values))

    def exchange_operand(self, index: int, operand: SSAValue) -> None:
        """Give the operation another operand at a place."""
        operands, use = list(self._operands), self._operand_uses[index]
        operands[index].remove_use(use)
        operand.add_use(use)
        operands[index] = operand
        self._operands = Values(operands)

    if not TYPE_CHECKING:
        operands = property(attrgetter("_view"), _set_operands)


class _Operands(OpOperands):
    """The operands of an operation, by which they are changed."""

    if not TYPE_CHECKING:

        def __getitem__(self, idx: int | slice) -> SSAValue | Values:
            found = self._op._operands[idx]
            return found if type(idx) is int else Values(found)

    def __setitem__(self, idx: int, operand: SSAValue) -> None:
        cast("LeanOperation", self._op).exchange_operand(idx, operand)


def cloned_region(region: Region, values: dict[SSAValue, SSAValue] | None = None) -> Region:
    """
    A copy of a region, as `Region.clone` makes it in twice the time.

    In a region of one block, every value is defined in front of its uses.
    """
    known: dict[SSAValue, SSAValue] = {} if values is None else values
    copy = Region()
    if len(region.blocks) != 1:
        region.clone_into(copy, value_mapper=known)
        return copy
    block = region.block
    new_block = Block(arg_types=block.arg_types)
    copy.add_block(new_block)
    for old, new in zip(block.args, new_block.args, strict=True):
        new.location = old.location
        _follow(old, new, known)
    op = block.first_op
    while op is not None:
        new_block.add_op(cloned_operation(op, known))
        op = op.next_op
    return copy


def cloned_operation(op: Operation, copies: dict[SSAValue, SSAValue] | None = None) -> Operation:
    """A copy of an operation, which reads the copies of values that there are, and adds those of its results."""
    values: dict[SSAValue, SSAValue] = {} if copies is None else copies
    if not isinstance(op, IRDLOperation) or op.successors:
        return op.clone(values)
    operands = [values.get(operand, operand) for operand in operands_of(op)]
    types = [result.type for result in op.results]
    new = created(type(op), operands, types, op.properties, op.attributes, op.location)
    for region in op.regions:
        new.add_region(cloned_region(region, values))
    for old_result, new_result in zip(op.results, new.results, strict=True):
        _follow(old_result, new_result, values)
    return new


def _follow(old: SSAValue, new: SSAValue, values: dict[SSAValue, SSAValue]) -> None:
    """Let a value be the copy of another one."""
    values[old] = new
    if old.name_hint is not None:
        new.name_hint = old.name_hint

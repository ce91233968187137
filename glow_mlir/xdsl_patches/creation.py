"""Creation of operations, which compilations do tens of thousands of times, in a third of the time that xDSL takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import IRDLOperation, OptionalDef

Created = TypeVar("Created", bound=Operation)
ValueT = TypeVar("ValueT", bound=SSAValue)


class Values(SSAValues[ValueT]):
    """
    Operands or results of an operation whose class says so by `value_list`; to take one is no call of Python.

    Several are a plain tuple, which what xDSL derives from a declaration cannot read.
    """

    if not TYPE_CHECKING:
        __getitem__ = tuple.__getitem__


def created(
    kind: type[Created],
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    location: LocationAttr | None = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> Created:
    """The operation that `kind.create` of xDSL makes."""
    op = kind.__new__(kind)
    value_list, defaults = _known_of(kind)
    give_operands(op, value_list(operands))
    op.results = value_list([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    op.properties = {**properties} if properties else {}
    op.attributes = {**attributes} if attributes else {}
    op.location = location or UNKNOWN_LOC
    if successors:
        op.successors = successors
    for region in regions:
        op.add_region(region)
    if defaults is None:
        op.__post_init__()
        return op
    for name, value in defaults[0]:
        op.properties.setdefault(name, value)
    for name, value in defaults[1]:
        op.attributes.setdefault(name, value)
    return op


@cache
def _known_of(kind: type[Operation]) -> tuple[type[SSAValues[Any]], tuple[_Defaults, _Defaults] | None]:
    """What holds operands and results of a kind, and `_defaults` of one that does nothing else once it is made."""
    value_list: type[SSAValues[Any]] = getattr(kind, "value_list", SSAValues)
    is_plain = issubclass(kind, IRDLOperation) and kind.__post_init__ is IRDLOperation.__post_init__
    return value_list, _defaults(kind) if is_plain else None


def append(block: Block, op: Operation) -> None:
    """
    What `Block.add_op` of xDSL does with an operation that is in no block, in a fifth of the time.

    Emission appends every operation, `scf-to-llvm` most of them once more: 12 ms of those of MobileNet V2.
    """
    last = block._last_op  # pyright: ignore[reportPrivateUsage]
    op.parent = block
    if last is None:
        block._first_op = op  # pyright: ignore[reportPrivateUsage]
    else:
        last._next_op, op._prev_op = op, last  # pyright: ignore[reportPrivateUsage]
    block._last_op = op  # pyright: ignore[reportPrivateUsage]


def give_operands(op: Operation, operands: SSAValues) -> None:
    """Give an operation that has none its operands; uses come in the order in which xDSL adds them."""
    uses = tuple([Use(op, index) for index in range(len(operands))])
    op._operands, op._operand_uses = operands, uses  # pyright: ignore[reportPrivateUsage]
    for operand, use in zip(operands, uses, strict=True):
        operand.add_use(use)


def set_defaults(op: IRDLOperation) -> None:
    """Give an operation the properties and attributes that it has where they are not given."""
    properties, attributes = _defaults(type(op))
    for name, value in properties:
        op.properties.setdefault(name, value)
    for name, value in attributes:
        op.attributes.setdefault(name, value)


_Defaults = tuple[tuple[str, Attribute], ...]


@cache
def _defaults(kind: type[IRDLOperation]) -> tuple[_Defaults, _Defaults]:
    """The properties and the attributes that operations of a kind have where they are not given."""
    definition = kind.get_irdl_definition()
    properties, attributes = (
        tuple(
            (name, declared.default_value)
            for name, declared in declarations.items()
            if not isinstance(declared, OptionalDef) and declared.default_value is not None
        )
        for declarations in (definition.properties, definition.attributes)
    )
    return properties, attributes

"""Creation of operations, which compilations do tens of thousands of times, in a third of the time that xDSL takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

Created = TypeVar("Created", bound=Operation)


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
    op.operands = operands
    op.results = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    op.properties = {**properties} if properties else {}
    op.attributes = {**attributes} if attributes else {}
    op.location = location or UNKNOWN_LOC
    if successors:
        op.successors = successors
    for region in regions:
        op.add_region(region)
    defaults = _defaults(kind)
    if defaults is None:
        op.__post_init__()
    else:
        for name, value in defaults:
            op.properties.setdefault(name, value)
    return op


@cache
def _defaults(kind: type[Operation]) -> Sequence[tuple[str, Attribute]] | None:
    """The properties that operations of a kind have where none are given; `None` for one that does more besides."""
    if not issubclass(kind, IRDLOperation) or kind.__post_init__ is not IRDLOperation.__post_init__:
        return None
    definition = kind.get_irdl_definition()
    if any(declared.default_value is not None for declared in definition.attributes.values()):
        return None
    return tuple(
        (name, declared.default_value)
        for name, declared in definition.properties.items()
        if not isinstance(declared, OptionalDef) and declared.default_value is not None
    )

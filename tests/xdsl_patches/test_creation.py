"""Operations that are created quickly are those that xDSL creates."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    successor_def,
    var_operand_def,
    var_region_def,
    var_result_def,
    var_successor_def,
)

from glow_mlir.xdsl_patches.creation import created
from glow_mlir.xdsl_patches.definitions import op_definition


class Fields(IRDLOperation):
    """Any number of everything, and properties with defaults."""

    inputs = var_operand_def()
    outputs = var_result_def()
    bodies = var_region_def()
    targets = var_successor_def()
    label = prop_def(StringAttr, default_value=StringAttr("none"))
    count = opt_prop_def(IntAttr)


@irdl_op_definition
class Plain(Fields):
    """One that xDSL creates."""

    name = "test.plain"


@irdl_op_definition
class Marked(IRDLOperation):
    """One with an attribute that has a default."""

    name = "test.marked"
    mark = attr_def(StringAttr, default_value=StringAttr("yes"))


@irdl_op_definition
class Counted(IRDLOperation):
    """One that does more when it is made."""

    name = "test.counted"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.attributes["made"] = IntAttr(1)


def described(op: Operation) -> tuple[object, ...]:
    """All that an operation has, as far as two of them may have it in common."""
    assert all(region.parent is op for region in op.regions)
    assert [(result.op, result.index) for result in op.results] == [(op, i) for i in range(len(op.results))]
    return (
        *(type(op), tuple(op.operands), op.result_types, list(op.properties.items()), op.attributes, op.location),
        *(tuple(op.successors), len(op.regions), op.parent, op.next_op, op.prev_op),
    )


def arguments(number: int) -> dict[str, Any]:
    """Arguments of `create`, new ones each time, from none to all."""
    operands = AnyOp(result_types=[i32, i32]).results
    everything: dict[str, Any] = {
        "operands": [*operands, operands[0]],
        "result_types": [i32, i32],
        "properties": {"count": IntAttr(2)},
        "attributes": {"further": StringAttr("here")},
        "location": FileLineColLoc(StringAttr("file"), IntAttr(1), IntAttr(2)),
        "successors": [Block(), Block()],
        "regions": [Region(), Region(Block())],
    }
    return dict(list(everything.items())[:number])


@pytest.mark.parametrize("number", range(8))
def test_operations_have_what_xdsl_gives_them(number: int) -> None:
    given = arguments(number)
    copies: dict[str, Any] = {**given, "regions": [each.clone() for each in given.get("regions", ())]}
    theirs = Plain.create(**copies)
    ours = created(Plain, **given)
    assert described(ours) == described(theirs)
    assert ours.location is theirs.location
    for value in given.get("operands", ()):
        uses = [(use.operation, use.index) for use in value.uses]
        assert len(uses) == 2 * sum(value is other for other in given["operands"])
        assert [index for op, index in uses if op is ours] == [index for op, index in uses if op is theirs]
    for block in given.get("successors", ()):
        assert sum(use.operation is ours for use in block.uses) == 1


def test_what_is_given_is_not_changed_with_the_operation() -> None:
    properties: dict[str, Attribute] = {"count": IntAttr(1)}
    first, second = created(Plain, properties=properties), created(Plain, properties=properties)
    first.properties["count"] = IntAttr(2)
    first.attributes["new"] = IntAttr(3)
    assert properties == {"count": IntAttr(1)}
    assert second.properties["count"] == IntAttr(1)
    assert not second.attributes


@pytest.mark.parametrize("kind", [Marked, Counted])
def test_kinds_that_do_more_do_it(kind: type[Operation]) -> None:
    assert created(kind).attributes == kind.create().attributes != {}


def test_a_region_that_belongs_to_another_one_is_refused() -> None:
    region = Region()
    created(Plain, regions=[region])
    with pytest.raises(ValueError, match="already attached"):
        created(Plain, regions=[region])


def test_classes_that_are_defined_when_needed_create_quickly() -> None:
    @op_definition
    class Late(IRDLOperation):
        """One of ours."""

        name = "test.late"
        body = region_def()
        target = successor_def()

    first = Late.create(regions=[Region()], successors=[Block()])
    assert Late.create.__func__ is created
    second = Late.create(regions=[Region()], successors=[Block()])
    assert isinstance(second.body, Region)
    assert described(first)[0] is described(second)[0] is Late

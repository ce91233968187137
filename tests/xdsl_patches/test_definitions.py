"""Definitions of operations that are made when needed are those of xDSL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from xdsl.dialects.builtin import IntAttr, StringAttr, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import PyRDLOpDefinitionError, VerifyException

from glow_mlir.xdsl_patches.definitions import op_definition

Decorator = Callable[[Any], Any]


class Base(IRDLOperation):
    """What operations have in common."""

    T: ClassVar = VarConstraint("T", AnyAttr())

    traits = traits_def(Pure())
    first = operand_def(T)
    result = result_def(T)


def sample(decorator: Decorator) -> Any:
    """A class with each kind of member."""

    @decorator
    class Sample(Base):
        """A sample."""

        LIMIT: ClassVar[int] = 3

        name = "test.sample"
        irdl_options = (ParsePropInAttrDict(),)
        further = var_operand_def()
        label = prop_def(StringAttr, default_value=StringAttr("none"))
        count = opt_prop_def(IntAttr)
        traits = traits_def(IsTerminator())

        assembly_format = "$first (`,` $further^ `:` type($further))? attr-dict `:` type($first) `to` type($result)"

        def twice(self) -> int:
            return 2 * self.LIMIT

        def verify_(self) -> None:
            if len(self.further) > self.LIMIT:
                raise VerifyException("too many")

    return Sample


def is_defined(kind: type[IRDLOperation]) -> bool:
    """Whether the definition of a class is made."""
    return isinstance(vars(kind)["get_irdl_definition"], classmethod)


def op_of(kind: Any, further: int = 2) -> Any:
    """An operation of a class."""
    value = AnyOp(result_types=[i32]).results[0]
    return kind.create(operands=[value] * (1 + further), result_types=[i32])


def test_members_are_those_that_xdsl_makes() -> None:
    theirs: type[IRDLOperation] = sample(irdl_op_definition)
    ours: type[IRDLOperation] = sample(op_definition)
    assert not is_defined(ours)
    assert callable(ours.parse)
    definitions = theirs.get_irdl_definition(), ours.get_irdl_definition()
    assert is_defined(ours)
    assert definitions[0] == definitions[1]
    members: dict[str, type] = {name: type(member) for name, member in vars(ours).items()}
    assert members.pop("create") is classmethod
    assert members == {name: type(member) for name, member in vars(theirs).items()}
    assert [kind.get_traits_of_type(IsTerminator) for kind in (theirs, ours)] == [[IsTerminator()]] * 2


@pytest.mark.parametrize("name", ["get_irdl_definition", "traits", "verify_"])
def test_a_member_of_the_class_that_is_looked_up_first_defines_it(name: str) -> None:
    kind = sample(op_definition)
    assert not is_defined(kind)
    told = getattr(kind, name)
    assert is_defined(kind)
    assert told == getattr(kind, name)


@pytest.mark.parametrize("name", ["parse", "print"])
def test_a_format_is_read_when_it_is_needed(name: str) -> None:
    kind: type[IRDLOperation] = sample(op_definition)
    kind.get_irdl_definition()
    assert not callable(vars(kind)["print"])
    told = getattr(kind, name)
    assert told == getattr(kind, name)
    assert callable(vars(kind)["print"])


def test_fields_of_operations_are_those_of_xdsl() -> None:
    theirs, ours = op_of(sample(irdl_op_definition)), op_of(sample(op_definition))
    for name in ("label", "count", "traits"):
        assert getattr(theirs, name) == getattr(ours, name)
    assert (ours.first, tuple(ours.further), ours.result) == (ours.operands[0], ours.operands[1:], ours.results[0])


def test_a_member_that_is_assigned_first_changes_the_operation() -> None:
    kind = sample(op_definition)
    op = kind.__new__(kind)
    op.properties = dict[str, Attribute]()
    op.count = IntAttr(5)
    assert op.properties == {"count": IntAttr(5)}
    assert "count" not in vars(op)


def test_verification_and_printing_are_those_of_xdsl() -> None:
    for further in (1, 4):
        outcomes: list[object] = []
        for kind in (sample(irdl_op_definition), sample(op_definition)):
            op = op_of(kind, further)
            try:
                op.verify()
                outcomes.append(str(op))
            except VerifyException as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_constants_and_methods_define_nothing() -> None:
    kind = sample(op_definition)
    assert (kind.name, kind.LIMIT, kind.twice(kind)) == ("test.sample", 3, 6)
    assert issubclass(kind, Base)
    assert not is_defined(kind)


def test_what_others_set_meanwhile_stays() -> None:
    kind = sample(op_definition)
    kind.FURTHER = 7
    kind.get_irdl_definition()
    assert kind.FURTHER == 7
    assert "__init_subclass__" not in vars(kind)


def test_a_subclass_finds_its_base_defined() -> None:
    for outer in (irdl_op_definition, op_definition):

        @op_definition
        class First(IRDLOperation):
            """A base."""

            name = "test.first"
            traits = traits_def(Pure())

        @outer
        class Second(First):
            """One with another name."""

            name = "test.second"
            traits = traits_def()

        assert is_defined(First)
        assert Second.get_irdl_definition().name == "test.second"
        assert Second.has_trait(Pure)


def test_mistakes_are_found_when_the_definition_is_made() -> None:
    @op_definition
    class Wrong(IRDLOperation):
        """One whose field is none."""

        name = "test.wrong"
        field = 3

    for _ in range(2):
        with pytest.raises(PyRDLOpDefinitionError, match="neither"):
            Wrong.get_irdl_definition()


def test_threads_find_one_definition() -> None:
    kind = sample(op_definition)
    ready, found = threading.Barrier(8), list[object]()

    def ask() -> None:
        ready.wait()
        found.append(kind.get_irdl_definition())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(each) for each in found}) == 1

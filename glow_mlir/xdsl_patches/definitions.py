"""
Definitions of operations that are made when they are needed.

`irdl_op_definition` of xDSL reads the fields of a class of operations and its format, and gives it accessors, a quarter
of a millisecond a class. A compilation imports four hundred of them, and most models have few. Operations of classes
that are defined here are created by `op_creation.created`, where they have no way of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from xdsl.irdl import IRDLOperation

    Kind = TypeVar("Kind", bound=type[IRDLOperation])

_TURN = threading.RLock()

_PLAIN = frozenset({"name", "assembly_format", "custom_directives", "irdl_options"})
"""What a class says of itself beside its fields."""

_OF_CLASS = frozenset({"__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"})
"""What Python adds to a class."""

_METHODS = (FunctionType, property, classmethod, staticmethod)


def op_definition(cls: Kind) -> Kind:
    """
    Define a class of operations as `irdl_op_definition` does, when one of its fields is first looked up.

    Its format is read when an operation is first parsed or printed. Raises what `irdl_op_definition` raises, at that
    time.
    """
    given = {name: value for name, value in vars(cls).items() if name not in _OF_CLASS}
    fields = {"get_irdl_definition", "traits", "verify_", *_fields(cls)}
    parts = [_Definition(cls, {**given, "assembly_format": None}, {*fields, "__init_subclass__"})]
    if cls.assembly_format is not None:
        parts.append(_Definition(cls, given, {"parse", "print"}))
    for part in parts:
        part.defer()

    def __init_subclass__(derived: type, **keywords: Any) -> None:
        for part in parts:
            part.make()
        super(cast("Any", cls), derived).__init_subclass__(**keywords)

    # What a subclass has of its own is told by what its bases have.
    setattr(cls, "__init_subclass__", classmethod(__init_subclass__))
    return cls


def _fields(cls: type) -> Iterator[str]:
    """The names of what a class of operations and its bases define that is no method and no constant."""
    from xdsl.irdl import IRDLOperation

    common = IRDLOperation.__mro__
    for each in cls.__mro__:
        if each not in common:
            for name, value in vars(each).items():
                is_field = not isinstance(value, _METHODS) and not name.startswith("_") and not name.isupper()
                if is_field and name not in _PLAIN:
                    yield name


class _Definition:
    """The definition of one class, as far as it gives it members of some names, which it replaces once it is made."""

    def __init__(self, cls: type[IRDLOperation], given: Mapping[str, Any], names: Collection[str]) -> None:
        self._cls = cls
        self._given = given
        """What the class defines itself."""
        self._names = names

    def defer(self) -> None:
        """Let the members stand for what makes them."""
        for name in self._names:
            setattr(self._cls, name, _Member(self, name))

    def make(self) -> None:
        """Give the class what xDSL gives it, member by member: other threads find either what was there, or that."""
        from xdsl.ir import Operation
        from xdsl.irdl import irdl_op_definition

        from glow_mlir.xdsl_patches.creation import created

        with _TURN:
            if not self._names:
                return
            kind: Any = type(self._cls)
            twin: type[IRDLOperation] = kind(self._cls.__name__, self._cls.__bases__, dict(self._given))
            made = vars(irdl_op_definition(twin))
            twin.get_irdl_definition().assembly_format = self._cls.assembly_format
            for name in self._names:
                if name in made:
                    setattr(self._cls, name, made[name])
                else:
                    delattr(self._cls, name)
            if getattr(self._cls.create, "__func__") is getattr(Operation.create, "__func__"):
                setattr(self._cls, "create", classmethod(created))
            self._names = ()


class _Member:
    """Stands for a member of a class until its definition is made."""

    def __init__(self, definition: _Definition, name: str) -> None:
        self._definition = definition
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._definition.make()
        return getattr(owner if instance is None else instance, self._name)

    def __set__(self, instance: object, value: object) -> None:
        self._definition.make()
        setattr(instance, self._name, value)

"""
Data classes whose methods are made when they are needed.

Python's own decorator writes the text of up to six methods of a class and compiles each, half a millisecond a class,
and a compilation imports hundreds of them. Here the text of `__init__` is written when it is first looked up, and the
other methods take the fields by their names, and need no text.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass


class _Absent:
    """Stands for an argument that is made when it is not given."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()

_Members = Iterator[tuple[str, Any]]
_Values = Callable[[Any], tuple[Any, ...]]


def _dataclass(
    cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True, order: bool = False
) -> Any:
    """
    A class with the methods that `dataclasses.dataclass` gives it, for the same fields and flags.

    All of `dataclasses` works with it: `field`, `fields`, `replace` and the like, and Python's own data classes as its
    bases and subclasses. Left out are a docstring for a class without one, `InitVar`, and fields by keyword alone.
    """
    decorate = partial(_decorated, frozen=frozen, eq=eq, repr=repr, order=order)
    return decorate if cls is None else decorate(cls)


def _decorated(cls: type, **flags: bool) -> type:
    """A class with all that it gets."""
    _declare(cls)
    setattr(cls, "__dataclass_params__", _parameters(**flags))
    own: dict[str, Any] = {**vars(cls)}
    # Where a class defines `__eq__`, Python itself says that it has no hash.
    if "__eq__" in own and own.get("__hash__", own) is None:
        del own["__hash__"]
    for name, member in _members(cls, **flags):
        if name not in own:
            setattr(cls, name, member)
    abc.update_abstractmethods(cls)
    return cls


if not TYPE_CHECKING:
    dataclass = _dataclass


@cache
def _parameters(**flags: bool) -> object:
    """What Python keeps of the flags of a data class."""
    plain = type("plain", (), {})
    return getattr(dataclasses.dataclass(**flags)(plain), "__dataclass_params__")


def _declare(cls: type) -> None:
    """Give a class what describes its fields, and their defaults as attributes."""
    own = vars(cls)
    annotations = inspect.get_annotations(cls)
    given = {name: own[name] for name in annotations if name in own}
    # Python reads the fields of a class that has nothing but them, and adds no method.
    described = {"__doc__": "Fields.", "__module__": cls.__module__, "__annotations__": annotations}
    bare = type(cls.__name__, (), given | described)
    dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(bare)
    for name in given:
        if name in vars(bare):
            setattr(cls, name, vars(bare)[name])
        else:
            delattr(cls, name)
    fields: dict[str, Any] = {}
    for each in (*reversed(cls.__mro__[1:]), bare):
        fields |= getattr(each, "__dataclass_fields__", {})
    setattr(cls, "__dataclass_fields__", fields)


def _members(cls: type, *, frozen: bool, eq: bool, repr: bool, order: bool) -> _Members:
    """The methods that a class gets where it does not define them, by name."""
    fields = dataclasses.fields(cls)
    yield "__match_args__", tuple(field.name for field in fields if field.init)
    yield "__init__", _Constructor(cls, fields, frozen)
    if repr:
        yield "__repr__", _representation([field.name for field in fields if field.repr])
    if eq:
        yield "__hash__", _hash([field.name for field in fields if _is_hashed(field)]) if frozen else None
        values = _values([field.name for field in fields if field.compare])
        yield "__eq__", _equality(values)
        for compare in (operator.lt, operator.le, operator.gt, operator.ge) if order else ():
            yield f"__{compare.__name__}__", _comparison(compare, values)
    if frozen:
        yield from _refusals(cls, frozenset(field.name for field in fields))


def _is_hashed(field: dataclasses.Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


def _values(names: Sequence[str]) -> _Values:
    """A function that takes attributes of an object, in order."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _representation(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _hash(names: Sequence[str]) -> Callable[[Any], int]:
    values = _values(names)
    return lambda self: hash(values(self))


def _equality(values: _Values) -> Callable[[Any, Any], Any]:
    return lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _comparison(compare: Callable[[Any, Any], Any], values: _Values) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: Any) -> Any:
        return compare(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    return compared


def _refusals(cls: type, names: frozenset[str]) -> _Members:
    """The methods that let no field of an instance change; an attribute that a subclass adds is no field."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    yield "__setattr__", __setattr__
    yield "__delattr__", __delattr__


class _Constructor:
    """The `__init__` of a class, which is compiled and takes the place of this when it is first looked up."""

    def __init__(self, cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> None:
        self._cls = cls
        self._fields = fields
        self._frozen = frozen

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., None]:
        function = _compiled(self._cls, self._fields, self._frozen)
        setattr(self._cls, "__init__", function)
        return function.__get__(instance, owner)


def _compiled(cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Any:
    """The `__init__` of a class with those fields."""
    known: dict[str, Any] = {"__name__": cls.__module__, "_absent": _ABSENT, "_put": object.__setattr__}
    parameters: list[str] = []
    defaults: list[Any] = []
    lines: list[str] = []
    for field in fields:
        name = value = field.name
        has_factory = field.default_factory is not dataclasses.MISSING
        has_default = has_factory or field.default is not dataclasses.MISSING
        if has_factory:
            known[f"_new_{name}"] = field.default_factory
            value = f"_new_{name}() if {name} is _absent else {name}" if field.init else f"_new_{name}()"
        if field.init:
            parameters.append(f"{name}=_absent" if has_default else name)
            defaults += [_ABSENT if has_factory else field.default] if has_default else []
        if field.init or has_factory:
            lines.append(f"_put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n {'; '.join(lines) or 'pass'}", known)
    function = known["__init__"]
    function.__defaults__ = tuple(defaults)
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return function

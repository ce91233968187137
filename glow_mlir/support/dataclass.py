"""
Data classes whose methods are made when they are needed.

Python's own decorator writes the text of up to six methods of a class and compiles each, half a millisecond a class,
and a compilation imports hundreds of them. Here the text of those that are called often is written when they are first
looked up, and the other ones take the fields by their names, and need no text.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, partial
from reprlib import recursive_repr
from types import CodeType, FunctionType
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
    cls: Any = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,
    order: bool = False,
    init: bool = True,
) -> Any:
    """
    A class with the methods that `dataclasses.dataclass` gives it, for the same fields and flags.

    All of `dataclasses` works with it: `field`, `fields`, `replace` and the like, and Python's own data classes as its
    bases and subclasses. Left out are a docstring for a class without one, and `InitVar`. Raises `TypeError` for a
    field without default behind one that has one, and where of a class and its base one is frozen.
    """
    decorate = partial(_decorated, frozen=frozen, eq=eq, repr=repr, order=order, init=init)
    return decorate if cls is None else decorate(cls)


def _decorated(cls: type, **flags: bool) -> type:
    """A class with all that it gets."""
    _declare(cls)
    _check(cls, **flags)
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
    plain = _bare("plain", {})
    made = copy(getattr(plain, "__dataclass_params__"))
    for name, flag in flags.items():
        setattr(made, name, flag)
    return made


def _bare(name: str, members: Mapping[str, Any]) -> type:
    """A data class that has nothing but fields: Python reads these, and adds no method."""
    made = type(name, (), {"__doc__": "Fields.", **members})
    return dataclasses.dataclass(init=False, repr=False, eq=False)(made)


def _declare(cls: type) -> None:
    """Give a class what describes its fields, and their defaults as attributes."""
    annotations = inspect.get_annotations(cls)
    given = {name: getattr(cls, name) for name in annotations if hasattr(cls, name)}
    described = {"__module__": cls.__module__, "__annotations__": annotations}
    bare = _bare(cls.__name__, given | described)
    for name, value in given.items():
        if isinstance(value, dataclasses.Field):
            if name in vars(bare):
                setattr(cls, name, vars(bare)[name])
            else:
                delattr(cls, name)
    fields: dict[str, Any] = {}
    for each in (*reversed(cls.__mro__[1:]), bare):
        fields |= getattr(each, "__dataclass_fields__", {})
    setattr(cls, "__dataclass_fields__", fields)


def _check(cls: type, *, frozen: bool, init: bool, **_: bool) -> None:
    """Raise `TypeError` where a class cannot be what it says."""
    is_optional = False
    for field in dataclasses.fields(cls) if init else ():
        is_given = field.init and not field.kw_only
        if is_optional and is_given and not _has_default(field):
            raise TypeError(f"field '{field.name}' without default is behind one that has one")
        is_optional |= is_given and _has_default(field)
    for base in cls.__mro__[1:]:
        parameters = vars(base).get("__dataclass_params__")
        if parameters is not None and parameters.frozen != frozen:
            raise TypeError(f"of '{cls.__name__}' and its base '{base.__name__}' one is frozen")


def _members(cls: type, *, frozen: bool, eq: bool, repr: bool, order: bool, init: bool) -> _Members:
    """The methods that a class gets where it does not define them, by name."""
    fields = dataclasses.fields(cls)
    yield "__replace__", dataclasses.replace  # As `copy.replace` of Python 3.13 asks for.
    yield "__match_args__", tuple(field.name for field in fields if field.init and not field.kw_only)
    if init:
        yield "__init__", _Made(cls, "__init__", partial(_constructor, cls, fields, frozen))
    if repr:
        yield "__repr__", _Made(cls, "__repr__", partial(_representation, fields))
    if eq:
        hashed = [field.name for field in fields if _is_hashed(field)]
        yield "__hash__", _Made(cls, "__hash__", partial(_of_fields, cls, "__hash__", hashed)) if frozen else None
        compared = [field.name for field in fields if field.compare]
        yield "__eq__", _Made(cls, "__eq__", partial(_of_fields, cls, "__eq__", compared))
        for compare in (operator.lt, operator.le, operator.gt, operator.ge) if order else ():
            yield f"__{compare.__name__}__", _comparison(compare, _values(compared))
    if frozen:
        yield from _refusals(cls, frozenset(field.name for field in fields))


def _has_factory(field: dataclasses.Field[Any]) -> bool:
    return field.default_factory is not dataclasses.MISSING


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return _has_factory(field) or field.default is not dataclasses.MISSING


def _is_hashed(field: dataclasses.Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


def _values(names: Sequence[str]) -> _Values:
    """A function that takes attributes of an object, in order."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _representation(fields: Sequence[dataclasses.Field[Any]]) -> Any:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return __repr__


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


class _Made:
    """A method of a class that is made, and takes the place of this, when it is first looked up."""

    def __init__(self, cls: type, name: str, make: Callable[[], FunctionType]) -> None:
        self._cls = cls
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        function = self._make()
        setattr(self._cls, self._name, function)
        return function.__get__(instance, owner)


def _of_fields(cls: type, name: str, fields: Sequence[str]) -> FunctionType:
    """The `__hash__` or the `__eq__` of a class, from the values of those fields."""
    names = {f"field{number}": field for number, field in enumerate(fields)}
    return FunctionType(_renamed(_code_of_fields(name, len(fields)), names, cls, name), {}, name)


def _renamed(code: CodeType, names: Mapping[str, str], cls: type, name: str) -> CodeType:
    """The code of a method of a class, with the fields by the names that they have there."""
    return code.replace(
        co_varnames=tuple([names.get(each, each) for each in code.co_varnames]),
        co_names=tuple([names.get(each, each) for each in code.co_names]),
        co_consts=tuple([names.get(each, each) for each in code.co_consts]),
        co_qualname=f"{cls.__qualname__}.{name}",
    )


def _constructor(cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> FunctionType:
    """The `__init__` of a class with those fields."""
    assigned = [field for field in fields if field.init or _has_factory(field)]
    kinds = tuple([(field.init, _has_factory(field), field.kw_only is True) for field in assigned])
    names = {f"field{number}": field.name for number, field in enumerate(assigned)}
    code = _code(kinds, frozen, hasattr(cls, "__post_init__"))
    code = _renamed(code, names, cls, "__init__")
    known = {"__name__": cls.__module__, "_absent": _ABSENT, "_put": object.__setattr__}
    known |= {f"_new{number}": field.default_factory for number, field in enumerate(assigned)}
    given = [field for field in assigned if field.init]
    defaults = {field.name: _ABSENT if _has_factory(field) else field.default for field in given if _has_default(field)}
    by_keyword = {field.name: defaults.pop(field.name) for field in given if field.kw_only and field.name in defaults}
    function = FunctionType(code, known, "__init__", tuple(defaults.values()))
    function.__kwdefaults__ = by_keyword or None
    function.__annotations__ = {field.name: field.type for field in given} | {"return": None}
    return function


@cache
def _code(kinds: Sequence[tuple[bool, bool, bool]], frozen: bool, has_post_init: bool) -> CodeType:
    """
    The code of an `__init__` whose fields are called `field0`, `field1` and so on.

    Of each field it is told whether it is a parameter, whether it has a factory, and whether it is given by its name
    alone. Classes share the code, since compiling it takes longer than giving it other names.
    """
    lines: list[str] = []
    parameters: tuple[list[str], list[str]] = ["self"], []
    for number, (is_given, has_factory, by_keyword) in enumerate(kinds):
        name = f"field{number}"
        made = f"_new{number}()"
        value = name if not has_factory else f"{made} if {name} is _absent else {name}" if is_given else made
        lines.append(f"_put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if is_given:
            parameters[by_keyword].append(name)
    if has_post_init:
        lines.append("self.__post_init__()")
    first, named = parameters
    listed = ", ".join([*first, "*", *named] if named else first)
    known: dict[str, Any] = {}
    exec(f"def __init__({listed}):\n {'; '.join(lines) or 'pass'}", known)
    return known["__init__"].__code__


@cache
def _code_of_fields(name: str, count: int) -> CodeType:
    """The code of a `__hash__` or an `__eq__` from the values of `count` fields, called `field0` and so on."""
    own, other = ("".join([f"{each}.field{number}, " for number in range(count)]) for each in ("self", "other"))
    text = f"def __hash__(self):\n return hash(({own}))"
    if name == "__eq__":
        equal = f"({own}) == ({other})"
        text = f"def __eq__(self, other):\n return {equal} if other.__class__ is self.__class__ else NotImplemented"
    known: dict[str, Any] = {}
    exec(text, known)
    return known[name].__code__

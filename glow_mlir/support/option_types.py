"""Type checks of options for untyped callers, with one-line errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from glow_mlir.errors import OptionError
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Kind:
    """The type of an option: a description, a test, and an example."""

    words: str
    accepts: Callable[[Any], bool]
    example: str
    is_optional: bool = True
    """Whether it may be `None`."""


def of(kind: type[Any] | tuple[type[Any], ...]) -> Callable[[Any], bool]:
    """A test for objects of a class."""
    return lambda value: isinstance(value, kind)


def made_by(module: str, name: str) -> Callable[[Any], bool]:
    """A test for objects of a named class without importing its module, which any such object has imported."""

    def test(value: Any) -> bool:
        found = sys.modules.get(module)
        return found is not None and isinstance(value, getattr(found, name))

    return test


def has(*names: str) -> Callable[[Any], bool]:
    """A test for objects with the named methods, without importing classes."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)


def is_function(value: object) -> bool:
    """Whether a value is callable, but not a class."""
    return callable(value) and not isinstance(value, type)


def lists(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test for lists of accepted values; iterators are rejected."""

    def test(given: Any) -> bool:
        is_list = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
        return is_list and all(map(accepts, cast("Collection[Any]", given)))

    return test


def is_flag(value: Any) -> bool:
    """Whether a value is a boolean, possibly numpy's."""
    return type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))


def is_words(value: Any) -> bool:
    """Whether a value maps strings to strings."""
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in cast("Mapping[Any, Any]", value).items() for text in pair
    )


TEXT = Kind("a text", of(str), "a name")
FLAG = Kind("a truth value", is_flag, "True", is_optional=False)
NUMBER = Kind("a whole number", lambda value: whole_number(value) is not None, "a number of bytes")
NAMES = Kind("a list of names", lambda value: lists(of(str))(value) or isinstance(value, str), "['name']", False)
PATH = Kind("a path", of((str, os.PathLike)), "a path")
NUMBER_OF_THREADS = Kind("a number of threads", lambda value: True, "1")
SECONDS = Kind("a number of seconds", lambda value: True, "0.5")
"""These are checked where they are read."""
WORDS_BY_NAMES = Kind("words by names", is_words, "{'x': 'kl'}", False)


def check_kinds(kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> None:
    """Raise `OptionError` for an option of a wrong type."""
    for name, kind in kinds.items():
        value = given[name]
        if value is None and kind.is_optional:
            continue
        if value is None or not kind.accepts(value):
            what = f"of the type '{type(cast('object', value)).__name__}'"
            raise OptionError(f"{name} cannot be {what}: it is {kind.words}", hint=kind.example)

"""
Options are declared once: as fields of a frozen dataclass that describe them completely.

`option` makes such a field, and `declared` returns the declarations of a class. All users of options read these: passes
(`takes`, `may_say`), tools, sessions, the text of targets, the cache, and docs/options.md.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

from glow_mlir.errors import OptionError
from glow_mlir.support.option_types import FLAG, NAMES, NUMBER, PATH, TEXT, WORDS_BY_NAMES, Kind

SomeClass = TypeVar("SomeClass", bound=type)

KEY = "option"
"""The key of the `Option` in the metadata of a field."""


class Domain(Protocol):
    """The values of its type that an option accepts."""

    def check(self, name: str, value: Any) -> None:
        """Raise `OptionError` for any other value."""
        ...

    def __str__(self) -> str:
        """The values in words."""
        ...


def short_number(number: int) -> str:
    """A number, abbreviated if it is a large power of two."""
    return f"2^{number.bit_length() - 1}" if number > 1 << 10 and number.bit_count() == 1 else str(number)


class Range(NamedTuple):
    """Whole numbers from `least` to `most`; others are no `noun`."""

    least: int
    most: int
    noun: str = ""

    def check(self, name: str, value: int) -> None:
        if self.least <= value <= self.most:
            return
        if self.noun:
            raise OptionError(f"{name}={value} is no {self.noun}", hint=f"{self.least} to {self.most}")
        if value < self.least:
            raise OptionError(f"{name}={value} is too little", hint=f"{self.least} or more")
        raise OptionError(f"{name}={value} is too much", hint=f"{self.most} at most")

    def __str__(self) -> str:
        return f"{short_number(self.least)} to {short_number(self.most)}"


class Words(NamedTuple):
    """A list of words; the empty word stands for no choice."""

    words: tuple[str, ...]

    def check(self, name: str, value: str) -> None:
        if value not in self.words:
            raise OptionError(f"no {name.replace('_', ' ')} '{value}'", hint=f"there are {', '.join(self.named)}")

    @property
    def named(self) -> tuple[str, ...]:
        """The words that are not empty."""
        return tuple(filter(None, self.words))

    def __str__(self) -> str:
        return ", ".join(f"`{word}`" for word in self.named)


class Flag(NamedTuple):
    """How tools spell an option."""

    name: str
    """The flag, such as `--threads`."""
    what: str = ""
    """The placeholder for its value in help texts, unless the values are words."""
    also: str = ""
    """A note about further values of the flag, or about their spelling."""
    default_text: str = ""
    """The default in words."""
    opposite: str = ""
    """The help text of a flag that turns the option off."""

    @property
    def destination(self) -> str:
        """The name of its value among the arguments of a tool."""
        return self.name.removeprefix("--").replace("-", "_")


class Option(NamedTuple):
    """The declaration of an option, besides its name, type and default."""

    help: str
    """The help text: a sentence without a period."""
    domain: Domain | None = None
    """The values that it accepts, if not all of its type."""
    kind: Kind | None = None
    """The values that it accepts from callers without a type checker, if its type does not determine them."""
    flag: Flag | None = None
    """How tools spell it, if they have a flag that follows from the declaration."""
    within: str = ""
    """
    The flag by which tools set it in another way: with other numbers or names in it, or with the opposite meaning.
    """
    is_keyword: bool = True
    """Whether sessions have a keyword of its name; for options of targets, if they have a flag."""
    is_key: bool = True
    """Whether an artifact depends on it."""


def option(default: Any = dataclasses.MISSING, help: str = "", **declared: Any) -> Any:
    """A dataclass field that is an option: its default, its help text, and other fields of `Option`."""
    metadata = {KEY: Option(help, **declared)}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Declared(NamedTuple):
    """An option with its name and its declaration in a class."""

    name: str
    owner: type[Options]
    """The class that declares it."""
    default: Any
    """`MISSING` if there is none."""
    option: Option

    @property
    def group(self) -> str:
        """The group of the option."""
        return self.owner.GROUP

    @property
    def annotation(self) -> str:
        """The type of its values as the class spells it, without `None`."""
        return str(self.owner.__annotations__[self.name]).removesuffix(" | None")

    @property
    def keyword_type(self) -> str:
        """The type of its keyword: a list of names may be any sequence, and `None` stands for the default."""
        listed = self.annotation.replace("tuple[str, ...]", "Sequence[str]")
        return f"{listed} | None" if self.kind.is_optional else listed

    @property
    def keyword_default(self) -> Any:
        """The value of its keyword if it is not given."""
        return None if self.kind.is_optional else self.default

    @property
    def kind(self) -> Kind:
        """The accepted values, as a test and in words."""
        return self.option.kind or _FORMS[self.annotation][0]

    @property
    def type(self) -> Any:
        """Its type as an option of a pass, which has few types; `None` if it cannot be one."""
        return _FORMS.get(self.annotation, (None, None))[1]

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it accepts; empty if it has no list of words."""
        return self.option.domain.named if isinstance(self.option.domain, Words) else ()


_FORMS: Mapping[str, tuple[Kind, Any]] = {
    "str": (TEXT, str),
    "bool": (FLAG, bool),
    "int": (NUMBER, int),
    "Sequence[str]": (NAMES, tuple[str, ...]),
    "tuple[str, ...]": (NAMES, tuple[str, ...]),
    "Mapping[str, str]": (WORDS_BY_NAMES, tuple[str, ...]),
    "str | os.PathLike[str]": (PATH, str),
}
"""
Type of an option, as classes spell it → the accepted values from callers without a type checker; its type in passes.
"""


class Options:
    """A group of options: a frozen dataclass whose fields are declared by `option`, and checked."""

    GROUP: ClassVar[str]
    """The subject of the options: `machine`, `policy`, `limit`, `linking` …"""

    def __post_init__(self) -> None:
        for name, item in declared(type(self)).items():
            if item.option.domain is not None:
                item.option.domain.check(name, getattr(self, name))


@cache
def declared(kind: type[Any]) -> Mapping[str, Declared]:
    """Name → option, for a class and its bases, in their order."""
    owners = {name: owner for owner in reversed(kind.__mro__) for name in vars(owner).get("__annotations__", {})}
    found: dict[str, Declared] = {}
    for field in dataclasses.fields(kind):
        if KEY in field.metadata:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            found[field.name] = Declared(field.name, owners[field.name], default, field.metadata[KEY])
    return found


def may_say(*groups: type[Options]) -> Callable[[SomeClass], SomeClass]:
    """
    Give a pass the options of some groups, before it becomes a dataclass; `None` means that one is not given.

    Fields that the class already has are kept.
    """
    return _with_fields(groups, lambda item: (item.type | None, None))


def takes(*groups: type[Options]) -> Callable[[SomeClass], SomeClass]:
    """
    Give a pass the options of some groups, with their defaults, before it becomes a dataclass.

    An option without a default is `None` if it is not given. Lists, and words by names, are tuples of texts.
    """

    def field(item: Declared) -> tuple[Any, Any]:
        is_needed = item.default is dataclasses.MISSING
        return (item.type | None, None) if is_needed else (item.type, parameter(item.default))

    return _with_fields(groups, field)


def _with_fields(
    groups: Sequence[type[Options]], field: Callable[[Declared], tuple[Any, Any]]
) -> Callable[[SomeClass], SomeClass]:
    """
    A decorator that adds fields to a class that is not yet a dataclass; `field` returns type and default of an option.
    """

    def added(kind: SomeClass) -> SomeClass:
        known = {name: field(item) for group in groups for name, item in declared(group).items()}
        new = {name: chosen for name, chosen in known.items() if name not in vars(kind)}
        kind.__annotations__ = {**kind.__annotations__, **{name: type_ for name, (type_, _) in new.items()}}
        for name, (_, default) in new.items():
            setattr(kind, name, default)
        return kind

    return added


def parameter(value: Any) -> Any:
    """
    The value of an option in the form of passes: paths are texts, lists are tuples, words by names are `NAME=WORD`.
    """
    if isinstance(value, Mapping):
        return tuple(f"{name}={word}" for name, word in cast("Mapping[str, str]", value).items())
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    return tuple(cast("Sequence[str]", value)) if isinstance(value, Sequence) and not isinstance(value, str) else value


def parameters(value: Options) -> dict[str, Any]:
    """The options of a pass for a group, in the form of pipelines; empty lists are left out."""
    found = {name: parameter(getattr(value, name)) for name in declared(type(value))}
    return {name: chosen for name, chosen in found.items() if chosen != ()}


def given_of(value: object, *groups: type[Options]) -> dict[str, Any]:
    """The options of some groups that a pass was given, by name, in the form of the groups."""
    found: dict[str, Any] = {}
    for name, item in ((name, item) for group in groups for name, item in declared(group).items()):
        chosen = getattr(value, name)
        if chosen is not None:
            found[name] = (
                dict(entry.rpartition("=")[::2] for entry in chosen) if item.kind == WORDS_BY_NAMES else chosen
            )
    return found


def key_of(value: object) -> str:
    """A text that identifies the value of an option; for a group, it has every option on which artifacts depend."""
    if isinstance(value, Options):
        options = declared(type(value)).items()
        return "; ".join(f"{name} {key_of(getattr(value, name))}" for name, item in options if item.option.is_key)
    if isinstance(value, Mapping):
        return repr(sorted(cast("Mapping[str, object]", value).items()))
    return repr(value)

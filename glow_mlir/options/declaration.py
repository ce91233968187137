"""
An option is declared once: as a field of a frozen dataclass that says all there is to know of it.

`option` gives such a field, and `declared` what is declared of those of a class. Whoever takes options asks it: passes
(`given_options`), tools, sessions, the text of targets, the cache, and docs/options.md.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from glow_mlir.errors import OptionError
from glow_mlir.support.kinds import FLAG, NAMES, NUMBER, PATH, TEXT, WORDS_BY_NAMES, Kind

SomeClass = TypeVar("SomeClass", bound=type)

KEY = "option"
"""Where the metadata of a field has its `Option`."""


class Domain(Protocol):
    """The values of its type that an option may have."""

    def check(self, name: str, value: Any) -> None:
        """Raise `OptionError` for another."""
        ...

    def __str__(self) -> str:
        """The values in words."""
        ...


@dataclass(frozen=True)
class Range:
    """Whole numbers from `least` to `most`, which are no `noun` outside of it."""

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
        return f"{_rounded(self.least)} to {_rounded(self.most)}"


@dataclass(frozen=True)
class PowersOfTwo:
    """Powers of two from `least` to `most`, and 0 as well if `or_zero`; others are no `noun`."""

    least: int
    most: int
    noun: str = ""
    or_zero: bool = False

    def check(self, name: str, value: int) -> None:
        Range(0 if self.or_zero else self.least, self.most).check(name, value)
        if value.bit_count() > 1 or 0 < value < self.least:
            hint = f"a power of two from {self.least} on{', or 0 for none' * self.or_zero}" if self.noun else ""
            raise OptionError(f"{name}={value} is no {self.noun or 'power of two'}", hint=hint)

    def __str__(self) -> str:
        return f"{'0, or ' * self.or_zero}a power of two, {_rounded(self.least)} to {_rounded(self.most)}"


@dataclass(frozen=True)
class Numbers:
    """Some whole numbers; others are no `noun`."""

    numbers: tuple[int, ...]
    noun: str

    def check(self, name: str, value: int) -> None:
        if value not in self.numbers:
            raise OptionError(f"{name}={value} is no {self.noun}", hint=f"it is {self}")

    def __str__(self) -> str:
        return " or ".join(map(str, self.numbers))


@dataclass(frozen=True)
class Words:
    """Some words; an empty one stands for no choice."""

    words: tuple[str, ...]

    def check(self, name: str, value: str) -> None:
        if value not in self.words:
            raise OptionError(f"no {name.replace('_', ' ')} '{value}'", hint=f"there are {', '.join(self.named)}")

    @property
    def named(self) -> tuple[str, ...]:
        """Those that are not empty."""
        return tuple(filter(None, self.words))

    def __str__(self) -> str:
        return ", ".join(f"`{word}`" for word in self.named)


def _rounded(number: int) -> str:
    """A number, short where it is a large power of two."""
    return f"2^{number.bit_length() - 1}" if number > 1 << 10 and number.bit_count() == 1 else str(number)


@dataclass(frozen=True)
class Flag:
    """How tools spell an option."""

    name: str
    """Such as `--threads`."""
    what: str = ""
    """What stands for its value in a help text, where these are no words."""
    also: str = ""
    """What the flag takes besides, or how."""
    unsaid: str = ""
    """What holds where it is not given, in words."""
    opposite: str = ""
    """What the flag does, where that is to turn the option off."""

    @property
    def place(self) -> str:
        """The name of its value among the arguments of a tool."""
        return self.name.removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Option:
    """What is declared of an option beside its name, its type and its default."""

    help: str
    """What it says, in a sentence without a period."""
    domain: Domain | None = None
    """The values that it may have, where these are not all of its type."""
    kind: Kind | None = None
    """What it takes from a caller without a type checker, where its type does not say it."""
    flag: Flag | None = None
    """How tools spell it, where they have a flag for it."""
    is_keyword: bool = False
    """Whether sessions have a keyword of its name."""
    is_key: bool = True
    """Whether an artifact depends on it."""


def option(default: Any = dataclasses.MISSING, help: str = "", **declared: Any) -> Any:
    """A field of a dataclass that is an option: its default, what it says, and what else `Option` has."""
    metadata = {KEY: Option(help, **declared)}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Declared:
    """An option with its name, and what the class says of it that declares it."""

    name: str
    group: str
    """The kind of option: what it is about."""
    type: Any
    default: Any
    """`MISSING` where there is none."""
    option: Option

    @property
    def kind(self) -> Kind:
        """What it may be, as a test and in words."""
        if self.option.kind is not None:
            return self.option.kind
        members = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        own = _KINDS[frozenset(members) - {NoneType}]
        return dataclasses.replace(own, is_optional=NoneType in members)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it may be; empty where it is none of a few."""
        return self.option.domain.named if isinstance(self.option.domain, Words) else ()


_KINDS: Mapping[frozenset[Any], Kind] = {
    frozenset({str}): TEXT,
    frozenset({bool}): FLAG,
    frozenset({int}): NUMBER,
    frozenset({Sequence[str]}): NAMES,
    frozenset({Mapping[str, str]}): WORDS_BY_NAMES,
    frozenset({str, os.PathLike[str]}): PATH,
}
"""Types of an option, but for that of `None` → what it takes."""


class Options:
    """A group of options: a frozen dataclass whose fields are declared by `option`, and are checked."""

    GROUP: ClassVar[str]
    """What the options are about: `machine`, `policy`, `limit`, `linking` …"""

    def __post_init__(self) -> None:
        for name, item in declared(type(self)).items():
            if item.option.domain is not None:
                item.option.domain.check(name, getattr(self, name))


@cache
def declared(kind: type[Any]) -> Mapping[str, Declared]:
    """Name → option, of a class and those it derives from, in their order."""
    types = get_type_hints(kind)
    found: dict[str, Declared] = {}
    for field in dataclasses.fields(kind):
        if KEY in field.metadata:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            found[field.name] = Declared(field.name, kind.GROUP, types[field.name], default, field.metadata[KEY])
    return found


def takes(*groups: type[Options]) -> Callable[[SomeClass], SomeClass]:
    """
    Give a class, before it becomes a dataclass, an optional field for each option of some groups: `None` says nothing.

    This is how passes have them as options of their own. What the class has already stays as it is.
    """

    def added(kind: SomeClass) -> SomeClass:
        known = [item for group in groups for name, item in declared(group).items() if name not in vars(kind)]
        kind.__annotations__ = {**kind.__annotations__, **{item.name: item.type | None for item in known}}
        for item in known:
            setattr(kind, item.name, None)
        return kind

    return added


def given_of(value: object, *groups: type[Options]) -> dict[str, Any]:
    """The options of some groups that a value says something of, by their names."""
    given = {name: getattr(value, name) for group in groups for name in declared(group)}
    return {name: found for name, found in given.items() if found is not None}

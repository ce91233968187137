"""onnxruntime's settings and their effects here; the source of the table in docs/api.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from enum import Enum
from typing import Any, Generic, Self, TypeVar, cast, overload

from glow_mlir.errors import OptionError
from glow_mlir.support.activity import caution
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.dataclass import dataclass

Value = TypeVar("Value")


class Effect(Enum):
    """The effect of a setting of onnxruntime."""

    HONOURED = "honoured"
    NONE = "without effect"
    REFUSED = "refused"
    OURS = "ours"
    """Honoured, and an addition to onnxruntime."""


@dataclass(frozen=True)
class Treatment:
    """The treatment of a name of onnxruntime: an option, a method, a key."""

    name: str
    effect: Effect
    reason: str
    """The effect of the name here, or the reason why it has none or is refused."""


class Setting(Generic[Value]):
    """
    An attribute of an object with settings.

    If `only` is given, other values are refused for the `reason`; if the setting has no effect, setting it warns.

    `read` converts a user's value; it raises `OptionError`, or returns `None`, for an invalid one.
    """

    def __init__(
        self,
        default: Value,
        read: Callable[[Any], Value | None],
        effect: Effect,
        reason: str,
        only: tuple[Value, ...] = (),
    ) -> None:
        self.default = default
        self.treatment = Treatment("", effect, reason)
        self._read = read
        self._only = only

    def __set_name__(self, owner: type, name: str) -> None:
        self.treatment = Treatment(name, self.treatment.effect, self.treatment.reason)

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[Value]: ...

    @overload
    def __get__(self, instance: Settings, owner: type) -> Value: ...

    def __get__(self, instance: Settings | None, owner: type) -> Setting[Value] | Value:
        if instance is None:
            return self
        return cast("Value", instance.given.get(self.treatment.name, self.default))

    def __set__(self, instance: Settings, value: Value) -> None:
        name = self.treatment.name
        found = self._read(value)
        if found is None:
            raise OptionError(f"{name}={value!r} makes no sense", hint=f"by default it is {self.default!r}")
        if self._only and found not in self._only:
            refused = OptionError(f"{name}={value!r} is not supported", hint=self.treatment.reason)
            if self.treatment.effect is not Effect.NONE:
                raise refused
            caution(OptionError(f"{name}={value!r} has no effect", hint=self.treatment.reason))
        instance.given[name] = found


class Settings:
    """An object with settings; `given` holds those that were set. Unknown names raise `AttributeError`."""

    __slots__ = ("entries", "given")

    KEYS: Mapping[str, Key] = {}
    """The keys of configuration entries, which are settings with text values."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.entries: dict[str, str] = {}

    def __copy__(self) -> Self:
        """An independent object with the same settings."""
        found = type(self).__new__(type(self))
        slots = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in (*slots, *getattr(self, "__dict__", ())):
            setattr(found, name, copy(getattr(self, name)))
        return found

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"

    def add_entry(self, key: object, value: object) -> None:
        """
        Set an entry; raises `OptionError` for an unsupported value that would change results or files.

        An unknown key, or a value without effect, causes a warning.
        """
        name, text = str(key), str(value)
        item = self.KEYS.get(name)
        if item is None:
            hint = f"known are {', '.join(known for known, item in self.KEYS.items() if item.is_known)}"
            caution(OptionError(f"there is no setting '{name}' here", hint=hint))
        elif item.only and text not in item.only:
            hint = item.treatment.reason
            if item.treatment.effect is not Effect.NONE:
                raise OptionError(f"the setting {name}={text} cannot be honoured", hint=hint)
            caution(OptionError(f"the setting {name}={text} has no effect", hint=hint))
        elif item.treatment.effect is Effect.REFUSED:
            caution(OptionError(f"the setting {name} has no effect", hint=item.treatment.reason))
        self.entries[name] = text

    def get_entry(self, key: str) -> str:
        """The value of an entry that was set; raises `OptionError` for one that was not."""
        name = str(key)
        if name not in self.entries:
            reason = f"{type(self).__name__} does not have configuration with key: {name}"
            raise OptionError(reason, hint=f"set are {', '.join(self.entries) or 'none'}")
        return self.entries[name]

    @classmethod
    def settings(cls) -> Iterator[Treatment]:
        """The treatment of the attributes."""
        for item in vars(cls).values():
            if isinstance(item, Setting):
                yield cast("Setting[Any]", item).treatment


@dataclass(frozen=True)
class Key:
    """A setting with text values, set by key, and its accepted values; empty for any."""

    treatment: Treatment
    only: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the key may be set at all."""
        return self.treatment.effect is not Effect.REFUSED


def keyed(*rows: tuple[str, Effect, str, tuple[str, ...]]) -> dict[str, Key]:
    """Keys by name, from rows of name, effect, reason and accepted values."""
    return {name: Key(Treatment(name, effect, reason), only) for name, effect, reason, only in rows}


# ---- what users may write as a value ---------------------------------------------------------------------------


def flag(value: Any) -> bool | None:
    """A boolean."""
    is_single = not getattr(value, "ndim", 0)  # Arrays compare each element.
    return bool(value) if is_single and value in (0, 1) else None


def number(value: Any) -> int | None:
    """A whole number from 0 on."""
    found = whole_number(value)
    return found if found is not None and found >= 0 else None


def severity(value: Any) -> int | None:
    """A level of messages, from 0 for all to 4; -1 stands for the default."""
    found = whole_number(value)
    return found if found is not None and -1 <= found <= 4 else None


def text(value: Any) -> str | None:
    """A text."""
    return value if isinstance(value, str) else None


def path_text(value: Any) -> str | None:
    """The path of a file."""
    return os.fspath(value) if isinstance(value, str | os.PathLike) else None


def member(kind: type[Value]) -> Callable[[Any], Value | None]:
    """A member of an enumeration."""

    def read(value: Any) -> Value | None:
        return value if isinstance(value, kind) else None

    return read

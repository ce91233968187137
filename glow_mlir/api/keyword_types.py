"""Of what type each keyword of `InferenceSession` is, for callers without a type checker: a wrong one is one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from glow_mlir.errors import OptionError
from glow_mlir.support.arguments import whole_number


@dataclass(frozen=True)
class Kind:
    """What a keyword may be: in words, as a test, and in an example."""

    words: str
    accepts: Callable[[Any], bool]
    example: str
    is_optional: bool = True
    """Whether it may be `None`."""


def _of(kind: type[Any] | tuple[type[Any], ...]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _has(*names: str) -> Callable[[Any], bool]:
    """A test for objects with those methods, of classes that are not imported to ask."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _lists(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test for lists of what a test accepts; what can be gone through once alone is none."""

    def test(given: Any) -> bool:
        is_list = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
        return is_list and all(map(accepts, cast("Collection[Any]", given)))

    return test


def _is_flag(value: Any) -> bool:
    """Whether a value is one of the two, numpy's among them."""
    return type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))


_TEXT = Kind("a text", _of(str), "a name")
_FLAG = Kind("a truth value", _is_flag, "True", is_optional=False)
_NUMBER = Kind("a whole number", lambda value: whole_number(value) is not None, "a number of bytes")
_NAMES = Kind("a list of names", lambda value: _lists(_of(str))(value) or isinstance(value, str), "['name']", False)
_PATH = Kind("a path", _of((str, os.PathLike)), "a path")


KEYWORDS: Mapping[str, Kind] = {
    "backend": _TEXT,
    "dimensions": Kind("sizes by the names of dimensions", _of(Mapping), "{'batch': 1}"),
    "target": _TEXT,
    "profile": _FLAG,
    "cache": _FLAG,
    "observers": Kind("a list of functions", _lists(callable), "[print]", False),
    "pipeline": Kind("a pipeline", _has("stage_names"), "Backend.pipeline() gives one"),
    "disable": _NAMES,
    "pass_observers": Kind(
        "a list of observers", _lists(_has("before", "after", "failed")), "[CompilationLog()]", False
    ),
    "accuracy": _TEXT,
    "optimize": _TEXT,
    "ram_bytes": _NUMBER,
    "flash_bytes": _NUMBER,
    "tune": _FLAG,
    "entry": _TEXT,
    "quantize": Kind("a Quantization", _has("pass_options"), "Quantization('profile.json')"),
    "precision": _TEXT,
    "keep_precision": _NAMES,
    "weights": _TEXT,
    "configuration": _PATH,
    "limits": Kind(
        "limits of specializations", _has("number", "memory", "threshold"), "SpecializationLimits(number=8)"
    ),
    "strict": _FLAG,
    "read_config_from_model": Kind("a truth value", _is_flag, "True"),
}
"""Keyword → what it may be. `threads`, limits of time, and what is onnxruntime's, are looked at where they are read."""


def check_keywords(given: Mapping[str, Any]) -> None:
    """Raise `OptionError` for a keyword of another type than it takes."""
    for name, kind in KEYWORDS.items():
        value = given[name]
        if value is None and kind.is_optional:
            continue
        if value is None or not kind.accepts(value):
            what = f"of the type '{type(cast('object', value)).__name__}'"
            raise OptionError(f"{name} cannot be {what}: it is {kind.words}", hint=kind.example)

"""The keywords of model sessions, and their declarations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from glow_mlir.api.compile_options import TARGET_KEYWORDS, CompileOptions
from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Declared, Options, Words, declared, option
from glow_mlir.runtime.specializations import SpecializationLimits
from glow_mlir.support.arguments import seconds
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.keywords import keyword_error
from glow_mlir.support.option_types import SECONDS, Kind, check_kinds, is_function, made_by

SPECIALISED = "specialised"
"""The values of `warm`: the compilation that calls wait for."""


@dataclass(frozen=True, eq=False, repr=False)
class SessionRules(Options):
    """Keywords that affect the session, but not the compiled artifact."""

    GROUP = "session"

    cache: bool = option(True, "keep compiled models on disk", within="--no-cache")
    entry: str | None = option(
        None,
        "the function that `run` calls where a module has several, by default the only one, or `main`",
        within="--entry",
    )
    configuration: str | os.PathLike[str] | None = option(
        None,
        "a file with the precision of all nodes, written by `glow-tune`",
        within="--load-configuration",
    )
    limits: SpecializationLimits | None = option(
        None,
        "how many specializations are kept",
        kind=Kind(
            "limits of specializations",
            made_by("glow_mlir.runtime.specializations", "SpecializationLimits"),
            "SpecializationLimits(number=8)",
        ),
    )
    warm: str = option(
        "",
        "calls wait for code compiled for their exact sizes; code for ranges of sizes is not used",
        domain=Words(("", SPECIALISED)),
    )
    time_limit: float | None = option(None, "timeout of a call in seconds", kind=SECONDS)
    compile_time_limit: float | None = option(None, "timeout of a compilation in seconds", kind=SECONDS)
    progress: Callable[[str], None] | None = option(
        None,
        "called with a short description of the progress of a compilation",
        kind=Kind("a function", is_function, "print"),
    )


KEYWORDS: Mapping[str, Declared] = {
    name: item
    for group in (CompileOptions, SessionRules)
    for name, item in declared(group).items()
    if item.option.is_keyword
} | dict(TARGET_KEYWORDS)
"""Keyword → its declaration."""


def given_seconds(name: str, value: object) -> float:
    """The duration given by the keyword `name` in seconds, 0 for `None`; raises `OptionError` for an invalid one."""
    found = 0.0 if value is None else seconds(value)
    if found is None:
        raise OptionError(f"{name}={value!r} is invalid", hint="a number of seconds")
    return found


def check_keywords(
    given: Mapping[str, object],
    owner: str = "a session",
    own: Iterable[str] = (),
    known: Mapping[str, Declared] = KEYWORDS,
) -> None:
    """
    Raise `KeywordError` for an unknown keyword, and `OptionError` for a value of a wrong type.

    The error names the `owner`; `own` are its other parameters.
    """
    if unknown := given.keys() - known.keys():
        raise keyword_error(owner, min(unknown), [*own, *known])
    check_kinds({name: known[name].kind for name in given}, given)

"""The keywords of `InferenceSession` that are ours: what each is declared as, and what a call gave."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glow_mlir.api.compile_options import TARGET_KEYWORDS, CompileOptions
from glow_mlir.options.declaration import Declared, Options, declared, option
from glow_mlir.runtime.specializations import SpecializationLimits
from glow_mlir.support.kinds import SECONDS, Kind, check_kinds, is_flag, made_by

OF_ONNXRUNTIME = ("sess_options", "providers", "provider_options")
"""The parameters of the constructor that are onnxruntime's alone."""


@dataclass(frozen=True, eq=False, repr=False)
class SessionRules(Options):
    """What is said of a session, and not of what it compiles."""

    GROUP = "session"

    cache: bool = option(True, "keep compiled models on disk", within="--no-cache")
    entry: str | None = option(
        None,
        "the function that `run` calls where a module has several, by default the only one, or `main`",
        within="--entry",
    )
    configuration: str | os.PathLike[str] | None = option(
        None,
        "a file that says the precision of all nodes, as `glow-tune` writes it",
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
    time_limit: float | None = option(None, "seconds that a call may take", kind=SECONDS)
    compile_time_limit: float | None = option(None, "seconds that a compilation may take", kind=SECONDS)
    read_config_from_model: bool | int | None = option(
        None,
        "whether options that a model carries count where nothing else says them",
        kind=Kind("a truth value", is_flag, "True"),
    )


KEYWORDS: Mapping[str, Declared] = {
    name: item
    for group in (CompileOptions, SessionRules)
    for name, item in declared(group).items()
    if item.option.is_keyword
} | dict(TARGET_KEYWORDS)
"""Keyword → what is declared of it."""


def given_keywords(names: Mapping[str, Any]) -> dict[str, Any]:
    """
    What the parameters of a session stand for among the local names of its constructor.

    Raises `OptionError` for a keyword of another type than it takes.
    """
    check_kinds({name: item.kind for name, item in KEYWORDS.items()}, names)
    return {name: names[name] for name in (*OF_ONNXRUNTIME, *KEYWORDS)}

"""Options that are given once, and those that are given once for each name, as LLVM's tools have them."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from typing import Any

_GIVEN = "given"
"""Where a namespace keeps which options were given, and for which names."""


class Once(argparse.Action):
    """Keeps the value of an option; one that is given twice is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and _is_repeated(namespace, self.dest):
            raise argparse.ArgumentError(self, "is given twice")
        setattr(namespace, self.dest, values)


class OncePerName(argparse.Action):
    """Keeps what an option says of each name, as pairs; a name that is given twice is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        name, _ = values
        if _is_repeated(namespace, (self.dest, name)):
            raise argparse.ArgumentError(self, f"'{name}' is given twice")
        others = [pair for pair in getattr(namespace, self.dest) or () if pair[0] != name]
        setattr(namespace, self.dest, [*others, values])


def give_once(parser: argparse.ArgumentParser) -> None:
    """Let the options that a parser gets from now on be given once, unless their action says something else."""
    for action in (None, "store"):
        parser.register("action", action, Once)


def forget_given(namespace: argparse.Namespace) -> None:
    """Let what is parsed into a namespace from now on take the place of what was before."""
    setattr(namespace, _GIVEN, set())


def _is_repeated(namespace: argparse.Namespace, what: Hashable) -> bool:
    """Whether something was given before, which from now on it was."""
    given: set[Hashable] = namespace.__dict__.setdefault(_GIVEN, set())
    is_known = what in given
    given.add(what)
    return is_known

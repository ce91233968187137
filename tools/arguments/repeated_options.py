"""Options that may be given once, or once for each name, as in LLVM's tools."""

from __future__ import annotations

import argparse
from collections.abc import Hashable
from typing import Any

_GIVEN = "given"
"""The namespace attribute that records which options were given, and for which names."""


class Once(argparse.Action):
    """Store the value of an option; giving it twice is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and _is_repeated(namespace, self.dest):
            raise argparse.ArgumentError(self, "is given twice")
        setattr(namespace, self.dest, values)


class OncePerName(argparse.Action):
    """Collect (name, value) pairs of an option; giving a name twice is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        name, _ = values
        if _is_repeated(namespace, (self.dest, name)):
            raise argparse.ArgumentError(self, f"'{name}' is given twice")
        others = [pair for pair in getattr(namespace, self.dest) or () if pair[0] != name]
        setattr(namespace, self.dest, [*others, values])


def give_once(parser: argparse.ArgumentParser) -> None:
    """Make `Once` the default action of options added to the parser from now on."""
    for action in (None, "store"):
        parser.register("action", action, Once)


def forget_given(namespace: argparse.Namespace) -> None:
    """Let later parsing into the namespace override earlier values."""
    setattr(namespace, _GIVEN, set())


def _is_repeated(namespace: argparse.Namespace, what: Hashable) -> bool:
    """Whether `what` was given before; records it as given."""
    given: set[Hashable] = namespace.__dict__.setdefault(_GIVEN, set())
    is_known = what in given
    given.add(what)
    return is_known

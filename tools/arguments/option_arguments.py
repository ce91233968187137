"""Flags of the tools for declared options, and the values they were given."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from glow_mlir.options.declaration import Declared, Options, declared
from glow_mlir.tools.arguments.bounded_numbers import byte_count, natural, seconds
from glow_mlir.tools.command_line import ArgumentGroup


def names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


READERS: dict[str, Callable[[str], Any]] = {
    "N": natural,
    "BYTES": byte_count,
    "NAMES": names,
    "LIST": str,
    "FILE": str,
    "SECONDS": seconds,
}
"""Type of a flag's value, as named in help texts → its parser."""


def add_options(
    group: ArgumentGroup | argparse.ArgumentParser, *groups: type[Options], only: tuple[str, ...] = ()
) -> None:
    """Add a flag for each option of the groups that declares one, or for the `only` ones."""
    for item in _with_flags(*groups):
        flag = item.option.flag
        if flag is None or (only and item.name not in only):
            continue
        words = ", ".join(filter(None, (flag.opposite or item.option.help, flag.also)))
        settings: dict[str, Any] = {"help": f"{words} (default: {flag.default_text})" if flag.default_text else words}
        if item.words:
            settings["choices"] = item.words
        elif flag.what:
            settings |= {"type": READERS[flag.what], "metavar": flag.what}
        else:
            settings |= {"action": "store_const", "const": not flag.opposite}
        group.add_argument(flag.name, dest=flag.destination, **settings)


def given_options(args: Namespace, *groups: type[Options]) -> dict[str, Any]:
    """The options of the groups that were given on the command line, by name."""
    found = {item.name: getattr(args, destination, None) for item, destination in _destinations(*groups)}
    return {name: value for name, value in found.items() if value is not None}


def destinations_of(*groups: type[Options]) -> tuple[str, ...]:
    """The namespace names of the options of the groups."""
    return tuple(destination for _, destination in _destinations(*groups))


def _destinations(*groups: type[Options]) -> Iterator[tuple[Declared, str]]:
    return ((item, item.option.flag.destination) for item in _with_flags(*groups) if item.option.flag is not None)


def _with_flags(*groups: type[Options]) -> Iterator[Declared]:
    return (item for group in groups for item in declared(group).values() if item.option.flag is not None)

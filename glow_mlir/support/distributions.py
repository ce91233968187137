"""
Find installed distributions by the names of folders.

`importlib.metadata` knows more, but its import takes longer than loading a stored artifact into a session. It is used
only if folders do not answer the question.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of the named distributions, in order; those not installed are omitted."""
    found: dict[str, str] = {}
    for folder in _folders(".dist-info") if _is_plain() else ():
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        found.setdefault(_normalized(name), version)
    known = {name: found.get(_normalized(name)) or _recorded_version(name) for name in names}
    return {name: version for name, version in known.items() if version}


def entry_points(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group that distributions have."""
    heading = f"[{group}]".encode()
    folders = _folders(".dist-info", ".egg-info")
    if _is_plain() and not any(heading in _content(f"{folder.path}/entry_points.txt") for folder in folders):
        return ()
    from importlib.metadata import entry_points as recorded

    return tuple(recorded(group=group))


def _recorded_version(name: str) -> str:
    """The version according to `importlib.metadata`; empty if the distribution is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _is_plain() -> bool:
    """Whether all distributions are in folders: no path is an archive, and no other finder finds distributions."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return finders == [PathFinder] and not any(map(os.path.isfile, sys.path))


def _folders(*kinds: str) -> Iterator[os.DirEntry[str]]:
    """The folders that describe distributions, in Python's search order."""
    for directory in sys.path:
        try:
            with os.scandir(directory or ".") as entries:
                yield from [entry for entry in entries if entry.name.endswith(kinds)]
        except OSError:  # Python also ignores missing paths.
            continue


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _normalized(name: str) -> str:
    """A normalized distribution name, as in folder names."""
    return re.sub(r"[-_.]+", "_", name).lower()

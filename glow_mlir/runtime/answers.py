"""
Small answers on disk that took long to find: a mapping by key, written atomically, bounded in number, trusted only if
ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from glow_mlir.json_text import parsed_json
from glow_mlir.runtime.cache import cache_directory
from glow_mlir.runtime.identity import is_ours

MOST_ANSWERS = 10_000
"""How many answers a folder keeps, of about a kilobyte: those that were used longest ago go first."""

_FORMAT = 1
_PARTIAL = ".partial-"
_PARTIAL_SECONDS = 3600
"""How old a half-written answer is before it counts as left by a process that died."""


class Answers:
    """
    A folder with one file of JSON for each answer, in a folder of its own below the one given.

    Several processes may use it at once: a file is written beside its place and renamed. A folder that another user
    owns, or that others may write to, is neither read nor written.
    """

    def __init__(self, subject: str, directory: Path | None = None, limit: int = MOST_ANSWERS) -> None:
        self.directory = (directory or cache_directory()) / f"{subject}-v{_FORMAT}"
        self.limit = limit

    def load(self, key: str) -> dict[str, Any] | None:
        """The answer of that key; `None` where there is none, or what is there is no mapping."""
        if not is_ours(self.directory):
            return None
        place = self.directory / f"{key}.json"
        try:
            found: object = parsed_json(place.read_text())
        except (OSError, ValueError):
            return None
        with contextlib.suppress(OSError):
            os.utime(place)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def store(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer in the place of the one before; a full disk or unwritable folder leaves no trace."""
        partial: str | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not is_ours(self.directory):
                return
            handle, partial = tempfile.mkstemp(prefix=_PARTIAL, dir=self.directory)
            with os.fdopen(handle, "w") as file:
                json.dump(answer, file)
            os.replace(partial, self.directory / f"{key}.json")
        except OSError:
            if partial is not None:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
            return
        self.trim()

    def trim(self) -> None:
        """
        Remove the answers used longest ago beyond the limit, and what processes that died left. Whatever else is there
        stays.
        """
        ages: list[tuple[float, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.directory) as found:
            for entry in found:
                # Another process may remove what this one is looking at.
                with contextlib.suppress(OSError):
                    if not entry.is_file(follow_symlinks=False):
                        continue
                    changed = entry.stat(follow_symlinks=False).st_mtime
                    if entry.name.endswith(".json"):
                        ages.append((changed, entry.path))
                    elif entry.name.startswith(_PARTIAL) and time.time() - changed > _PARTIAL_SECONDS:
                        os.unlink(entry.path)
        for _, path in sorted(ages)[: max(0, len(ages) - self.limit)]:
            with contextlib.suppress(OSError):
                os.unlink(path)

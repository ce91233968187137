"""
Small answers on disk that took long to find: a mapping by key, written atomically, bounded in number, trusted only if
ours.
"""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from glow_mlir.errors import CacheError
from glow_mlir.runtime.cache_folder import CacheFolder, is_abandoned, partial_name
from glow_mlir.support.activity import warn
from glow_mlir.support.json_text import parsed_json

MOST_ANSWERS = 10_000
"""How many answers a folder keeps, of about a kilobyte: those that were used longest ago go first."""

_FORMAT = 1
_SUFFIX = ".json"


class JsonCache:
    """
    A folder with one file of JSON for each answer, in a folder of its own below the one given.

    Several processes may use it at once. What others own, or may write to, is neither read nor written
    (`runtime.own_folder`).
    """

    def __init__(self, subject: str, directory: Path | None = None, limit: int = MOST_ANSWERS) -> None:
        self._folder = CacheFolder(f"{subject}-v{_FORMAT}", directory)
        self.limit = limit

    @property
    def directory(self) -> Path:
        """The path of the folder; raises `CacheError` where none is known."""
        return self._folder.path

    def load(self, key: str) -> dict[str, Any] | None:
        """The answer of that key; `None` where there is none, or what is there is no mapping."""
        name = key + _SUFFIX
        with self._folder.opened() as folder:
            if folder is None:
                return None
            try:
                with folder.open_file(name) as file:
                    found: object = parsed_json(file.read())
            except CacheError as error:
                warn(error)
                return None
            except (OSError, ValueError):
                return None
            with contextlib.suppress(OSError):
                folder.touch(name)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def store(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer in the place of the one before; a full disk or unwritable folder leaves no trace."""
        partial = partial_name()
        with self._folder.opened(make=True) as folder:
            if folder is None:
                return
            try:
                with folder.new_file(partial) as file:
                    file.write(json.dumps(answer).encode())
                folder.rename(partial, key + _SUFFIX)
            except OSError:
                folder.remove(partial)
                return
        self.trim()

    def trim(self) -> None:
        """
        Remove the answers used longest ago beyond the limit, and what processes that died left. Whatever else is there
        stays.
        """
        ages: list[tuple[float, str]] = []
        with self._folder.opened() as folder, contextlib.suppress(OSError):
            if folder is None:
                return
            for name, status in folder.entries():
                if not stat.S_ISREG(status.st_mode):
                    continue
                if name.endswith(_SUFFIX):
                    ages.append((status.st_mtime, name))
                elif is_abandoned(name, status):
                    folder.remove(name)
            for _, name in sorted(ages)[: max(0, len(ages) - self.limit)]:
                folder.remove(name)

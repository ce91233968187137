"""Small results of long computations on disk: a mapping by key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from glow_mlir.runtime.file_cache import FileCache
from glow_mlir.support.json_text import parsed_json

MAX_ANSWERS = 10_000
"""The number of answers in a folder, about a kilobyte each; the least recently used are removed first."""

_FORMAT = 1
_SUFFIX = ".json"


class JsonCache:
    """A folder with one JSON file per answer, below the given folder (`FileCache`)."""

    def __init__(self, subject: str, directory: Path | None = None, limit: int = MAX_ANSWERS) -> None:
        self._files = FileCache(f"{subject}-v{_FORMAT}", _SUFFIX, limit, directory)

    @property
    def directory(self) -> Path:
        """The path of the folder; raises `CacheError` if it is unknown."""
        return self._files.directory

    def load(self, key: str) -> dict[str, Any] | None:
        """The answer for this key; `None` if there is none, or if it is not a mapping."""
        data = self._files.load(key)
        if data is None:
            return None
        try:
            found: object = parsed_json(data)
        except ValueError:
            return None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def store(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer, replacing the previous one; a full disk or unwritable folder leaves no trace."""
        self._files.store(key, json.dumps(answer).encode())

    def trim(self) -> None:
        """Remove the least recently used answers beyond the limit, and leftovers of dead processes."""
        self._files.trim()

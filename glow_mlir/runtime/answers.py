"""Small answers on disk that took long to find: a mapping by key, written atomically, trusted only if ours."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from glow_mlir.runtime.cache import cache_directory
from glow_mlir.runtime.identity import is_ours

_FORMAT = 1


class Answers:
    """
    A folder with one file of JSON for each answer, in a folder of its own below the one given.

    Several processes may use it at once: a file is written beside its place and renamed. A folder that another user
    owns, or that others may write to, is not read.
    """

    def __init__(self, subject: str, directory: Path | None = None) -> None:
        self.directory = (directory or cache_directory()) / f"{subject}-v{_FORMAT}"

    def load(self, key: str) -> dict[str, Any] | None:
        """The answer of that key; `None` where there is none, or what is there is no mapping."""
        if not is_ours(self.directory):
            return None
        try:
            found: object = json.loads((self.directory / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def store(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer in the place of the one before; a full disk or unwritable folder leaves no trace."""
        partial: str | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, partial = tempfile.mkstemp(prefix=".partial-", dir=self.directory)
            with os.fdopen(handle, "w") as file:
                json.dump(answer, file)
            os.replace(partial, self.directory / f"{key}.json")
        except OSError:
            if partial is not None:
                with contextlib.suppress(OSError):
                    os.unlink(partial)

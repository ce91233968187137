"""The folders of the cache: their paths and shared rules."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from pathlib import Path

from glow_mlir.errors import CacheError
from glow_mlir.runtime.own_folder import OwnFolder
from glow_mlir.support.activity import warn

_PARTIAL = ".partial-"
_PARTIAL_SECONDS = 3600
"""The age after which an incomplete entry counts as left by a dead process."""


def cache_directory() -> Path:
    """
    The root of the cache: `GLOW_CACHE_DIR`, or `glow-mlir` in the user's cache directory.

    Raises `CacheError` if neither is known.
    """
    if chosen := os.environ.get("GLOW_CACHE_DIR"):
        return Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "glow-mlir"
    try:
        return Path.home() / ".cache" / "glow-mlir"
    except RuntimeError as error:
        raise CacheError("no home directory found for the cache", hint="name a folder in GLOW_CACHE_DIR") from error


class CacheFolder:
    """
    A named folder in the root of the cache; the root is `cache_directory`, unless another is given.

    Several processes may use it at once: files are written under a temporary name, then renamed.
    """

    def __init__(self, name: str, root: Path | None = None) -> None:
        self._name = name
        self._root = root

    @property
    def path(self) -> Path:
        """Its path, for messages; raises `CacheError` if no root is known."""
        return (self._root or cache_directory()) / self._name

    @contextlib.contextmanager
    def opened(self, make: bool = False) -> Generator[OwnFolder | None]:
        """
        Open the folder inside the `with` statement; with `make`, create it if it is missing.

        `None` if it does not exist or is not trusted, with a warning by `activity.warn`.
        """
        # One descriptor per use: none is shared with other threads, inherited by children, or kept without need.
        try:
            with OwnFolder.at(self._root or cache_directory(), make) as root:
                folder = root.folder(self._name, make)
        except CacheError as error:
            warn(error)
            folder = None
        except OSError:
            folder = None
        with folder or contextlib.nullcontext():
            yield folder


def partial_name() -> str:
    """A new temporary name for an entry under construction."""
    return f"{_PARTIAL}{os.urandom(8).hex()}"


def is_abandoned(name: str, status: os.stat_result) -> bool:
    """Whether an entry is the incomplete leftover of a dead process."""
    return name.startswith(_PARTIAL) and time.time() - status.st_mtime > _PARTIAL_SECONDS

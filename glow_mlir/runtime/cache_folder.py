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
"""How old a half-written entry is before it counts as left by a process that died."""


def cache_directory() -> Path:
    """
    The root of the cache: `GLOW_CACHE_DIR`, or `glow-mlir` below the user's cache directory.

    Raises `CacheError` where neither is known.
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
    A folder in the root of the cache, of that name; the root is `cache_directory`, unless another is given.

    Several processes may use it at once: what is written has a partial name at first, and is renamed.
    """

    def __init__(self, name: str, root: Path | None = None) -> None:
        self._name = name
        self._root = root

    @property
    def path(self) -> Path:
        """Its path, for people to read; raises `CacheError` where no root is known."""
        return (self._root or cache_directory()) / self._name

    @contextlib.contextmanager
    def opened(self, make: bool = False) -> Generator[OwnFolder | None]:
        """
        The folder, open inside the `with` statement, and made there if that is asked for.

        `None` where there is none, or it is not to be trusted, of which `activity.warn` tells.
        """
        # A descriptor for each use: none is left to other threads, to children, or to those who use no cache.
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
    """A new name for an entry that is being made."""
    return f"{_PARTIAL}{os.urandom(8).hex()}"


def is_abandoned(name: str, status: os.stat_result) -> bool:
    """Whether an entry is one that a process left half-written when it died."""
    return name.startswith(_PARTIAL) and time.time() - status.st_mtime > _PARTIAL_SECONDS

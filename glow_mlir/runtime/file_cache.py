"""A cache folder with one file per entry: written atomically, bounded in number, trusted only if the user owns it."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from glow_mlir.errors import CacheError
from glow_mlir.runtime.cache_folder import CacheFolder, is_abandoned, partial_name
from glow_mlir.support.activity import warn


class FileCache:
    """
    A named folder in the root of the cache (`directory` or the default), with files of one suffix.

    Several processes may use it at once. Files that others own or may write to are neither read nor written
    (`runtime.own_folder`).
    """

    def __init__(self, name: str, suffix: str, limit: int, directory: Path | None = None) -> None:
        self._folder = CacheFolder(name, directory)
        self._suffix = suffix
        self.limit = limit

    @property
    def directory(self) -> Path:
        """The path of the folder; raises `CacheError` if it is unknown."""
        return self._folder.path

    def load(self, key: str) -> bytes | None:
        """The entry of a key; `None` if there is none."""
        name = key + self._suffix
        with self._folder.opened() as folder:
            if folder is None:
                return None
            try:
                with folder.open_file(name) as file:
                    found = file.read()
            except CacheError as error:
                warn(error)
                return None
            except OSError:
                return None
            with contextlib.suppress(OSError):
                folder.touch(name)
        return found

    def store(self, key: str, entry: bytes) -> None:
        """Write an entry, replacing the previous one; a full disk or unwritable folder leaves no trace."""
        partial = partial_name()
        with self._folder.opened(make=True) as folder:
            if folder is None:
                return
            try:
                with folder.new_file(partial) as file:
                    file.write(entry)
                folder.rename(partial, key + self._suffix)
            except OSError:
                folder.remove(partial)
                return
        self.trim()

    def trim(self) -> None:
        """
        Remove the least recently used entries beyond the limit, and leftovers of dead processes. Other files stay.
        """
        ages: list[tuple[float, str]] = []
        with self._folder.opened() as folder, contextlib.suppress(OSError):
            if folder is None:
                return
            for name, status in folder.entries():
                if not stat.S_ISREG(status.st_mode):
                    continue
                if name.endswith(self._suffix):
                    ages.append((status.st_mtime, name))
                elif is_abandoned(name, status):
                    folder.remove(name)
            for _, name in sorted(ages)[: max(0, len(ages) - self.limit)]:
                folder.remove(name)

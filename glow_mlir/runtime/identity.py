"""
Identify the content of files without reading them again.

Device, inode, size and times distinguish a content from every later one of the file, as git and make assume: the system
sets the time of change (`ctime`) at each write and rename, and programs cannot set it back. But its resolution is
limited, and the next write may come within the same tick (git calls such entries racily clean). Hence `SETTLED_NS`: a
digest is kept only for files that had been unchanged for longer than that before they were read. Sampling the content
would not help, because two versions of a model may differ in one byte.

This assumes that the clock of the file system is at most `SETTLED_NS` behind that of this machine and is not set back,
and that nobody writes to the file through an older shared mapping, because the system may not update the time for it.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from glow_mlir.constants.deferred import is_in_folder
from glow_mlir.runtime.json_cache import JsonCache

SETTLED_NS = 2_000_000_000
"""Nanoseconds that a file must be unchanged for its times to identify its content: the resolution of FAT's clock."""

MAX_ENTRIES = 1000
"""The number of digests in an index."""


def file_identity(path: Path) -> list[int]:
    """The identity of a file and its content: device, inode, size, and times of change in ns."""
    return _identity(path.stat())


def _identity(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def checksum_of(content: memoryview) -> str:
    """The CRC-32 of bytes as 8 digits: the fastest way to find damage, for contents of 100 MB and more."""
    return f"{zlib.crc32(content):08x}"


class ContentIndex:
    """
    The digests and checksums of files, cached under the identities of the files, so that each file is read once.

    A file that changed shortly before it was read is read again the next time, because a further change, even during
    the read, might not change its times.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._answers = JsonCache("contents", directory, limit=MAX_ENTRIES)

    @property
    def directory(self) -> Path:
        """The path of the folder; raises `CacheError` if it is unknown."""
        return self._answers.directory

    def digest(self, path: Path) -> str:
        """The digest of the content of a file; raises `OSError` if it cannot be read."""
        return self._once("digest", 64, partial(file_identity, path), partial(_digest, path))

    def checksum(self, file: BinaryIO, content: memoryview) -> str:
        """The `checksum_of` of the content of an open file, which is read if it is not known."""

        def identity() -> list[int]:
            return _identity(os.fstat(file.fileno()))

        return self._once("checksum", 8, identity, lambda: checksum_of(content))

    def _once(self, kind: str, digits: int, identity: Callable[[], list[int]], compute: Callable[[], str]) -> str:
        """What is computed of the content of a file, or was earlier, for the same identity."""
        # Take the time first: a later change has a later time.
        now = time.time_ns()
        before = identity()
        key = hashlib.sha256(f"{kind} {before}".encode()).hexdigest()
        if known := _number_in(self._answers.load(key), kind, digits):
            return known
        found = compute()
        if now - max(before[3:]) > SETTLED_NS and identity() == before:
            self._answers.store(key, {kind: found})
        return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_State = tuple[list[int], str]
"""The identity of a file and the digest of its content."""


class Snapshot:
    """The contents of some files at one moment; detects later changes."""

    def __init__(self, contents: ContentIndex) -> None:
        self._contents = contents
        self._looks: list[tuple[Callable[[], _State], _State]] = []

    def digest(self, path: Path) -> str:
        """The remembered digest of the content of a file; raises `OSError` if it cannot be read."""
        return self._remember(partial(self._look, path))

    def digest_in_folder(self, folder: Path, name: str) -> str:
        """The remembered digest of a file in a folder; empty, without reading the file, if `is_in_folder` is false."""
        return self._remember(partial(self._look_in_folder, folder, name))

    def changed(self) -> bool:
        """Whether the identity or content of a file has changed."""
        return any(not _is(look, state) for look, state in self._looks)

    def _remember(self, look: Callable[[], _State]) -> str:
        state = look()
        self._looks.append((look, state))
        return state[1]

    def _look(self, path: Path) -> _State:
        return file_identity(path), self._contents.digest(path)

    def _look_in_folder(self, folder: Path, name: str) -> _State:
        return self._look(folder / name) if is_in_folder(folder, name) else ([], "")


def _is(look: Callable[[], _State], state: _State) -> bool:
    """Whether the file still has this identity."""
    try:
        return look() == state
    except OSError:
        return False


def _number_in(answer: dict[str, Any] | None, kind: str, digits: int) -> str:
    """The hexadecimal number in a cached answer; empty if it has none."""
    text = (answer or {}).get(kind)
    return text if isinstance(text, str) and len(text) == digits and set(text) <= set("0123456789abcdef") else ""

"""What a file is, and what is in it, without reading it again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

SETTLED_NS = 2_000_000_000
"""How long ago a file must have changed for its times to tell it from any later content; clocks of files are coarse."""

MOST_ENTRIES = 1000


def file_identity(path: Path) -> list[int]:
    """What tells a file and its content from every other: device, inode, size, and times of change in ns."""
    status = path.stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def is_ours(folder: Path) -> bool:
    """Whether a folder is there, belongs to the user of this process, and nobody else may write to it."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


class ContentIndex:
    """
    The digests of files, kept in a folder under the identities of the files, so that each is read once.

    A file that changed a moment ago is read again the next time: another change might leave its times as they are.
    Several processes may use a folder at once. One that another user owns, or may write to, is ignored.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def digest(self, path: Path) -> str:
        """The digest of what is in a file; raises `OSError` where it cannot be read."""
        identity = file_identity(path)
        entry = self.directory / hashlib.sha256(repr(identity).encode()).hexdigest()
        if is_ours(self.directory) and (known := _read(entry)):
            return known
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if file_identity(path) == identity and time.time_ns() - max(identity[3:]) > SETTLED_NS:
            with contextlib.suppress(OSError):
                self._write(entry, found)
        return found

    def _write(self, entry: Path, digest: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = entry.with_name(f".{entry.name}.{os.getpid()}")
        partial.write_text(digest)
        partial.replace(entry)
        self._trim()

    def _trim(self) -> None:
        """Remove the oldest entries beyond `MOST_ENTRIES`."""
        with os.scandir(self.directory) as found:
            ages = sorted((entry.stat().st_mtime, entry.path) for entry in found)
        for _, path in ages[:-MOST_ENTRIES]:
            os.unlink(path)


def _read(entry: Path) -> str:
    """The digest in an entry; nothing where there is none, or it is damaged."""
    try:
        text = entry.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) == 64 and set(text) <= set("0123456789abcdef") else ""

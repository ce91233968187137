"""A stamp of the package's sources, for cache keys."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


def stamp_of(root: Path) -> str:
    """A hash of the Python sources below a folder: paths, sizes and times of change; links are followed."""
    state = hashlib.sha256()
    for path, size, changed in sorted(_sources(str(root), "")):
        state.update(f"{path}\0{size}\0{changed}\n".encode())
    return state.hexdigest()


@functools.cache
def source_stamp() -> str:
    """
    The stamp of this package at the first call.

    It ignores later edits, as do the loaded modules of this process.
    """
    return stamp_of(Path(__file__).parent.parent)


def _sources(folder: str, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change in ns of each source; empty if the package is not stored as files."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry.path, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py") and entry.is_file():
            status = entry.stat()
            yield f"{prefix}{entry.name}", status.st_size, status.st_mtime_ns

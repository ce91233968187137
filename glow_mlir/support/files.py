"""Files that are written as a whole or stay as they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

from glow_mlir.errors import OptionError


def is_node(path: Path) -> bool:
    """Whether a path leads to something other than a regular file, as a device or pipe; raises `OSError`."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


class _Node(FileIO):
    """A device or pipe: nothing in it has a place, whatever the system says of `/dev/null`."""

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0, /) -> int:
        raise UnsupportedOperation("it has no places")

    def tell(self) -> int:
        raise UnsupportedOperation("it has no places")


@contextmanager
def replaced(path: Path) -> Generator[BinaryIO]:
    """
    Give a file to write, which takes the place of `path`, and its permissions, once it is complete.

    A symbolic link stays, and what it leads to is replaced. A device or pipe is written to itself. Raises `OptionError`
    where the file cannot be written; then nothing of it is left.
    """
    try:
        if is_node(path):
            with BufferedWriter(_Node(path, "w")) as file:
                yield file
            return
        target = path.resolve()
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with partial.open("wb") as file:
                yield file
            if target.exists():
                partial.chmod(stat.S_IMODE(target.stat().st_mode))
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(f"cannot be written: {error.strerror or error}", file=str(path)) from error

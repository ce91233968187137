"""Write files atomically."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Generator, Iterable
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
def replaced(path: Path, read: Iterable[Path] = ()) -> Generator[BinaryIO]:
    """
    Yield a file to write, which replaces `path` (keeping its permissions) once it is complete.

    A symbolic link is kept, and its target replaced. Devices and pipes are written directly. Raises `OptionError` if
    writing fails, in which case nothing is left, and if the file is one of those `read`.
    """
    _check_kept(path, read)
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


@contextmanager
def placed_files(folder: Path, read: Iterable[Path] = (), obsolete: Collection[str] = ()) -> Generator[Path]:
    """
    Yield a folder to write into; its files are moved to `folder`, which is created, once all are complete.

    The files may be in subfolders. Other files of `folder` stay, except `obsolete` ones. Raises `OptionError` if that
    fails, or if a file that was `read` would be replaced; then `folder` is unchanged.
    """
    try:
        whole = folder.resolve()
        is_new = not whole.exists()
        if is_new:
            whole.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".glow-", dir=whole.parent if is_new else whole))
        try:
            (new := aside / "new").mkdir()
            (old := aside / "old").mkdir()
            yield new
            for name in sorted({*obsolete, *_paths(new)}):
                _check_kept(folder / name, read, "another folder")
            if is_new:
                new.rename(whole)
            else:
                _exchange(new, old, whole, obsolete)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise OptionError(f"cannot be written: {error.strerror or error}", file=str(folder)) from error


def _check_kept(path: Path, read: Iterable[Path], hint: str = "another name") -> None:
    """Raise `OptionError` if a path leads to a file that was `read`."""
    if any(path.samefile(other) for other in read if path.exists() and other.exists()):
        raise OptionError("would replace what it is made of", file=str(path), hint=hint)


def _paths(folder: Path) -> list[str]:
    """The files below a folder, by relative path."""
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()]


def _exchange(new: Path, old: Path, folder: Path, obsolete: Collection[str]) -> None:
    """Move the files in `new` to `folder`, and replaced and obsolete ones to `old`: all or none."""
    moved: list[str] = []
    made: list[Path] = []
    names = _paths(new)
    try:
        for name in (*names, *(name for name in obsolete if name not in names)):
            if (folder / name).is_dir():
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            moved.append(name)
            if os.path.lexists(folder / name):
                _made_folders((old / name).parent)
                (folder / name).replace(old / name)
            if name in names:
                made += _made_folders((folder / name).parent)
                (new / name).replace(folder / name)
    except BaseException:
        for name in moved:
            _put_back(name, new, old, folder, name in names)
        for parent in reversed(made):
            parent.rmdir()
        raise
    for name in obsolete:
        _remove_empty((folder / name).parent, folder)


def _put_back(name: str, new: Path, old: Path, folder: Path, is_new: bool) -> None:
    """Undo the exchange of a file of `folder`."""
    if os.path.lexists(old / name):
        (old / name).replace(folder / name)
    elif is_new and not os.path.lexists(new / name):
        (folder / name).unlink(missing_ok=True)


def _made_folders(folder: Path) -> list[Path]:
    """Create a folder and its missing parents; return those created."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()][::-1]
    for path in missing:
        path.mkdir()
    return missing


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder below the root and its parents, as far as they are empty."""
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent

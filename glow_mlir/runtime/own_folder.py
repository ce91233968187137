"""
Folders that are the user's own, opened by descriptor: what a cache holds is run, so whoever writes to it runs code.

Three rules say what is trusted. They are asked of what is open (`fstat`), not of a path that may lead elsewhere later.

* A folder of the cache, and each file in it that is read, belongs to the effective user of this process and is
  writable by nobody else. Below the root of the cache no symbolic link is followed.
* A folder above it belongs to the user or to root, since its owner may put anything in the place of what is in it; so
  does a symbolic link on the way. Where all may write, it has to be sticky, as `/tmp` is.
* A folder above it that its group may write to will do, as it is the usual one where each user has a group of their own
  (a umask of 002). Such a group can take the cache away, or put another folder there; that one has to keep the first
  rule, so they can make a cache be missed, and never one be believed.

OpenSSH (`StrictModes`) has the same rule for owners. It refuses what a group may write to above as well, and sticky
folders: there a path is believed, here what was opened at its end. As with Git's `safe.directory`, the user is the
effective one.

Where a system has no descriptors of folders, the same is done by path, and owners are compared where there are any.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from glow_mlir.errors import CacheError

HAS_DESCRIPTORS = shutil.rmtree.avoids_symlink_attacks
"""Whether the system opens, lists and removes relative to a folder's descriptor."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)
_ANCESTOR = _FOLDER | getattr(os, "O_PATH", 0)
"""Folders above the cache may be searchable, but not readable."""
_OLD_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe would block until it has a writer."""
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_AT_A_LINK = (errno.ELOOP, errno.ENOTDIR)
"""The error numbers of systems that find a link instead of a folder or file."""
_MAX_LINKS = 40
_ROOT_USER = 0
_PART = "not used for the cache"
_ABOVE = "the cache below it is not used"


class OwnFolder:
    """
    An open folder that nobody else may write to; all names are names of its entries.

    It is closed at the end of a `with` statement. Methods raise `OSError`, and `CacheError` for entries that the user
    does not own.
    """

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        """Its path when it was opened, for messages."""
        self._descriptor = descriptor
        try:
            status = os.stat(path if descriptor is None else descriptor)
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            _check_own(status, path)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def at(path: Path, make: bool = False) -> OwnFolder:
        """Open the folder of a path, and check each folder on the way; `make` creates missing ones."""
        path = path.absolute()
        if HAS_DESCRIPTORS:
            return OwnFolder(path, _Way(str(path)).end(make))
        if make:
            path.mkdir(0o700, parents=True, exist_ok=True)
        return OwnFolder(path, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder, if it is open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def folder(self, name: str, make: bool = False) -> OwnFolder:
        """Open a subfolder; `make` creates it if it is missing."""
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._at(name), 0o700, dir_fd=self._descriptor)
        return OwnFolder(self.path / name, None if self._descriptor is None else self._open(name, _FOLDER))

    def open_file(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        descriptor = self._open(name, _OLD_FILE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _untrusted(self.path / name, "it is no regular file")
            _check_own(status, self.path / name)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def new_file(self, name: str) -> BinaryIO:
        """Create a file for reading and writing; raises `FileExistsError` if the name exists."""
        return os.fdopen(os.open(self._at(name), _NEW_FILE, 0o600, dir_fd=self._descriptor), "wb+")

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """The names and kinds of the entries of the folder; links are not followed."""
        found: list[tuple[str, os.stat_result]] = []
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                # Another process may remove an entry meanwhile.
                with contextlib.suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found

    def rename(self, old: str, new: str) -> None:
        """Rename an entry; a file replaces a file, and a folder an empty folder."""
        os.replace(self._at(old), self._at(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def touch(self, name: str) -> None:
        """Mark an entry as used now."""
        follows = os.utime not in os.supports_follow_symlinks
        os.utime(self._at(name), dir_fd=self._descriptor, follow_symlinks=follows)

    def remove(self, name: str) -> None:
        """Remove a file, or another entry that is not a folder, if possible."""
        with contextlib.suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a folder with its contents, as far as possible; links are not followed."""
        shutil.rmtree(self._at(name), ignore_errors=True, dir_fd=self._descriptor)

    def _at(self, name: str) -> str:
        """The entry's name for system calls relative to the descriptor, or its path."""
        assert os.path.basename(name) == name, f"'{name}' is no name of an entry"
        return name if self._descriptor is not None else str(self.path / name)

    def _open(self, name: str, flags: int) -> int:
        try:
            return os.open(self._at(name), flags, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno in _AT_A_LINK and _is_link(self._at(name), self._descriptor):
                raise _untrusted(self.path / name, "it is a symbolic link") from error
            raise


class _Way:
    """The path from the root of the file system to a folder, resolved name by name and link by link, with checks."""

    def __init__(self, path: str) -> None:
        self._rest = _names(path)
        self._links = 0
        self._path = os.sep
        self._descriptor = os.open(os.sep, _ANCESTOR)

    def end(self, make: bool) -> int:
        """The descriptor of the folder; `make` creates missing folders on the way."""
        try:
            while self._rest:
                self._check()
                name = self._rest.pop()
                try:
                    descriptor = self._next(name, make)
                except OSError as error:
                    if error.errno not in _AT_A_LINK or not _is_link(name, self._descriptor):
                        raise
                    self._follow(name)
                else:
                    self._enter(descriptor, os.path.join(self._path, name))
            return os.open(os.curdir, _FOLDER, dir_fd=self._descriptor)
        finally:
            os.close(self._descriptor)

    def _enter(self, descriptor: int, path: str) -> None:
        """Enter a folder."""
        os.close(self._descriptor)
        self._descriptor, self._path = descriptor, path

    def _check(self) -> None:
        """Raise `CacheError` if somebody else owns the folder, or if everybody may rename its entries."""
        status = os.fstat(self._descriptor)
        _check_owner(status, self._path, _owners(_ROOT_USER), _ABOVE)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise _writable(status, self._path, _ABOVE)

    def _next(self, name: str, make: bool) -> int:
        """The descriptor of the next folder; `make` creates it if it is missing."""
        try:
            return os.open(name, _ANCESTOR, dir_fd=self._descriptor)
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self._descriptor)
        return os.open(name, _ANCESTOR, dir_fd=self._descriptor)

    def _follow(self, name: str) -> None:
        """Follow a link; raises `CacheError` for a link that somebody else owns."""
        path = os.path.join(self._path, name)
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        link = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        _check_owner(link, path, _owners(_ROOT_USER), _ABOVE)
        target = os.readlink(name, dir_fd=self._descriptor)
        # Not every system can open links by descriptor, so check that the link is unchanged after reading it.
        again = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        if (link.st_dev, link.st_ino, link.st_ctime_ns) != (again.st_dev, again.st_ino, again.st_ctime_ns):
            raise _untrusted(path, "it is a symbolic link that changed while being read", _ABOVE)
        self._rest += _names(target)
        if target.startswith(os.sep):
            self._enter(os.open(os.sep, _ANCESTOR), os.sep)


def _names(path: str) -> list[str]:
    """The names in a path, the last first; `..` stays a name, because after a link it does not lead back."""
    return [name for name in reversed(path.split(os.sep)) if name not in ("", os.curdir)]


def _is_link(name: str, descriptor: int | None) -> bool:
    """Whether an entry is a symbolic link."""
    return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)


def _owners(*others: int) -> tuple[int, ...]:
    """The effective user of this process, and others; empty if the system has no users to compare."""
    return (os.geteuid(), *others) if hasattr(os, "geteuid") else ()


def _check_own(status: os.stat_result, path: Path | str) -> None:
    """Raise `CacheError` unless the user owns it, and nobody else may write to it."""
    owners = _owners()
    _check_owner(status, path, owners)
    if owners and status.st_mode & _OTHERS_WRITE:
        raise _writable(status, path)


def _check_owner(status: os.stat_result, path: Path | str, owners: tuple[int, ...], what: str = _PART) -> None:
    """Raise `CacheError` if none of the owners owns it."""
    if owners and status.st_uid not in owners:
        raise _untrusted(path, f"it belongs to the user {status.st_uid}", what)


def _writable(status: os.stat_result, path: Path | str, what: str = _PART) -> CacheError:
    """The error for an entry that others may write to."""
    mode = stat.S_IMODE(status.st_mode)
    return _untrusted(path, f"others may write to it (mode {mode:04o})", what, f"chmod go-w '{path}', or ")


def _untrusted(path: Path | str, why: str, what: str = _PART, remedy: str = "") -> CacheError:
    """The error for a file or folder that the user does not own."""
    return CacheError(f"{what}: {why}", file=str(path), hint=f"{remedy}name another folder in GLOW_CACHE_DIR")

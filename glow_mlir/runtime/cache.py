"""Compiled artifacts on disk: found by key, written atomically, bounded in size, trusted only if ours."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np

from glow_mlir.runtime.artifact import Artifact, Manifest
from glow_mlir.runtime.identity import ContentIndex, is_ours

DEFAULT_LIMIT = 4 << 30
_FORMAT = 3
_PARTIAL = ".partial-"
_CONSTANTS = "constants.bin"
_PARTIAL_SECONDS = 3600
"""How old a half-written artifact is before it counts as left by a process that died."""


def cache_directory() -> Path:
    """Where artifacts are kept: `GLOW_CACHE_DIR`, or `glow-mlir` below the user's cache directory."""
    if chosen := os.environ.get("GLOW_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glow-mlir"


def cache_key(*parts: bytes | str) -> str:
    """The key of an artifact that depends on those parts."""
    state = hashlib.sha256(f"format {_FORMAT}".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


class Draft:
    """The folder of an artifact that is being made; `None` where there is no place for one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._constants: np.ndarray | None = None

    def room(self, size: int) -> np.ndarray:
        """That many zero bytes for the constants: mapped from their file, so that they need not be written to it."""
        if self.folder is not None and size:
            try:
                self._constants = _new_file(self.folder / _CONSTANTS, size)
                return self._constants
            except OSError:  # The disk may be full.
                (self.folder / _CONSTANTS).unlink(missing_ok=True)
        return np.frombuffer(mmap.mmap(-1, size), np.uint8) if size else np.empty(0, np.uint8)

    def write_constants(self, constants: np.ndarray) -> None:
        """Write the constants, where they were not made in `room`; raises `OSError`."""
        assert self.folder is not None
        if self._constants is None or not np.shares_memory(constants, self._constants):
            constants.tofile(self.folder / _CONSTANTS)


def _new_file(path: Path, size: int) -> np.ndarray:
    """A file of zero bytes as an array; raises `OSError` where the disk has no room for it."""
    with path.open("xb+") as file:
        # Where a system cannot promise the room, a full disk would end the process as it writes.
        if not hasattr(os, "posix_fallocate"):
            raise OSError("no room can be promised")
        os.posix_fallocate(file.fileno(), 0, size)
        return np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)


class ArtifactCache:
    """
    A folder of artifacts, one sub-folder each, in a folder of their own below the one given.

    Several processes may use it at once: an artifact is written beside its place and renamed. Folders that another
    user owns, or that others may write to, are ignored.
    """

    def __init__(self, directory: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = (directory or cache_directory()) / f"v{_FORMAT}"
        self.contents = ContentIndex((directory or cache_directory()) / "contents")
        """What is in the files of models."""
        self.limit = limit

    def load(self, key: str) -> Artifact | None:
        """The artifact of that key, constants mapped; `None` where there is none, or it is damaged, and removed."""
        folder = self.directory / key
        if not is_ours(folder):
            return None
        try:
            manifest = Manifest.from_json((folder / "manifest.json").read_text())
            constants = _mapped(folder / _CONSTANTS, manifest.constants)
            code = (folder / "code.o").read_bytes()
            if manifest.digests != _digests(code, constants, manifest):
                raise ValueError(f"{folder} is damaged")
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # What stays in its place would never be replaced.
            shutil.rmtree(folder, ignore_errors=True)
            return None
        except OSError:  # There may be too many open files.
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)
        return Artifact(code, constants, manifest)

    @contextlib.contextmanager
    def draft(self) -> Generator[Draft]:
        """A place for an artifact that is being made; what is not stored in the end is removed."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=self.directory))
        except OSError:
            yield Draft(None)
            return
        try:
            yield Draft(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def store(self, key: str, artifact: Artifact, draft: Draft | None = None) -> None:
        """
        Write an artifact; one that is already there stays. A full disk or unwritable folder leaves no trace.

        `draft` is where its constants were made.
        """
        if draft is None:
            with self.draft() as draft:
                self.store(key, artifact, draft)
            return
        if draft.folder is None:
            return
        with contextlib.suppress(OSError):
            digests = _digests(artifact.code, artifact.constants, artifact.manifest)
            (draft.folder / "manifest.json").write_text(replace(artifact.manifest, digests=digests).to_json())
            (draft.folder / "code.o").write_bytes(artifact.code)
            draft.write_constants(artifact.constants)
            draft.folder.rename(self.directory / key)
        self.trim()

    def trim(self) -> None:
        """
        Remove the artifacts used longest ago until the rest fits the limit, and what processes that died left.

        Whatever else is there stays.
        """
        entries: list[tuple[float, int, Path]] = []
        for folder in self._folders():
            with contextlib.suppress(OSError):
                changed = folder.stat().st_mtime
                if _is_artifact(folder):
                    entries.append((changed, sum(file.stat().st_size for file in folder.iterdir()), folder))
                elif folder.name.startswith(_PARTIAL) and time.time() - changed > _PARTIAL_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
        total = sum(size for _, size, _ in entries)
        for _, size, folder in sorted(entries):
            if total <= self.limit:
                break
            shutil.rmtree(folder, ignore_errors=True)
            total -= size

    def _folders(self) -> list[Path]:
        """The real folders in the cache; none where it cannot be read."""
        try:
            with os.scandir(self.directory) as found:
                return [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []


def _digests(code: bytes, constants: np.ndarray, manifest: Manifest) -> dict[str, str]:
    """The digest of each part of an artifact. That of constants, which may have 100 MB, is the fastest there is."""
    return {
        "code": hashlib.sha256(code).hexdigest(),
        "constants": f"{zlib.crc32(constants.data):08x}",
        "manifest": hashlib.sha256(replace(manifest, digests={}).to_json().encode()).hexdigest(),
    }


def _is_artifact(folder: Path) -> bool:
    """Whether a folder has the name and the manifest of an artifact."""
    is_key = len(folder.name) == 64 and set(folder.name) <= set("0123456789abcdef")
    return is_key and (folder / "manifest.json").is_file()


def _mapped(path: Path, size: int) -> np.ndarray:
    if not size:
        return np.empty(0, np.uint8)
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(data) != size:
        raise ValueError(f"{path} has {len(data)} bytes instead of {size}")
    return np.frombuffer(data, np.uint8)

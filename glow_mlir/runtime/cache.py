"""Compiled artifacts on disk: found by key, written atomically, bounded in size, trusted only if ours."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from glow_mlir.runtime.artifact import Artifact, Manifest

DEFAULT_LIMIT = 4 << 30
_FORMAT = 1


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


class ArtifactCache:
    """
    A folder of artifacts, one sub-folder each.

    Several processes may use it at once: an artifact is written beside its place and renamed. Folders that another
    user owns, or that others may write to, are ignored.
    """

    def __init__(self, directory: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = directory or cache_directory()
        self.limit = limit

    def load(self, key: str, model_directory: Path | None = None) -> Artifact | None:
        """The artifact of that key, constants mapped; `None` where there is none, or it is damaged or outdated."""
        folder = self.directory / key
        if not _is_ours(folder):
            return None
        try:
            manifest = Manifest.from_json((folder / "manifest.json").read_text())
            _check_external(manifest, model_directory)
            constants = _mapped(folder / "constants.bin", manifest.constants)
            code = (folder / "code.o").read_bytes()
        except (OSError, ValueError, KeyError, TypeError):
            # What stays in its place would never be replaced.
            shutil.rmtree(folder, ignore_errors=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)
        return Artifact(code, constants, manifest)

    def store(self, key: str, artifact: Artifact) -> None:
        """Write an artifact; one that is already there stays. A full disk or unwritable folder leaves no trace."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.directory))
        except OSError:
            return
        try:
            (partial / "manifest.json").write_text(artifact.manifest.to_json())
            (partial / "code.o").write_bytes(artifact.code)
            artifact.constants.tofile(partial / "constants.bin")
            partial.rename(self.directory / key)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
        self.trim()

    def trim(self) -> None:
        """Remove the artifacts used longest ago until the rest fits the limit."""
        entries: list[tuple[float, int, Path]] = []
        for folder in self.directory.iterdir():
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in folder.iterdir())
                entries.append((folder.stat().st_mtime, size, folder))
        total = sum(size for _, size, _ in entries)
        for _, size, folder in sorted(entries):
            if total <= self.limit:
                break
            shutil.rmtree(folder, ignore_errors=True)
            total -= size


def _is_ours(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _check_external(manifest: Manifest, directory: Path | None) -> None:
    """Raise `ValueError` where weights in another file have changed, `OSError` where they are gone."""
    for name, (size, changed) in manifest.external.items():
        status = (Path(directory or ".") / name).stat()
        if (status.st_size, status.st_mtime_ns) != (size, changed):
            raise ValueError(f"{name} has changed")


def _mapped(path: Path, size: int) -> np.ndarray:
    if not size:
        return np.empty(0, np.uint8)
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(data) != size:
        raise ValueError(f"{path} has {len(data)} bytes instead of {size}")
    return np.frombuffer(data, np.uint8)

"""Compiled artifacts on disk: found by key, written atomically, bounded in size, trusted only if the user owns them."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from glow_mlir.errors import CacheError
from glow_mlir.runtime.artifact import Artifact, Manifest
from glow_mlir.runtime.cache_folder import CacheFolder, is_abandoned, partial_name
from glow_mlir.runtime.identity import ContentIndex, checksum_of
from glow_mlir.runtime.own_folder import OwnFolder
from glow_mlir.support.activity import warn

DEFAULT_LIMIT = 4 << 30
_FORMAT = 5
_MANIFEST, _CONSTANTS = "manifest.json", "constants.bin"


def cache_key(*parts: bytes | str) -> str:
    """The key of an artifact that depends on these parts."""
    state = hashlib.sha256(f"format {_FORMAT}".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


class Draft:
    """The folder of an artifact under construction, inside the cache; `None` if there is no cache folder."""

    def __init__(self, root: OwnFolder | None = None, folder: OwnFolder | None = None) -> None:
        self._root = root
        self.folder = folder
        self._constants: np.ndarray | None = None

    def reserve(self, size: int, otherwise: Callable[[int], np.ndarray] | None = None) -> np.ndarray:
        """
        Zero bytes for the constants, mapped from their file, so that they need no extra write.

        Without a file, they come from `otherwise`, or are ordinary memory.
        """
        if self.folder is not None and size:
            try:
                self._constants = _new_constants(self.folder, size)
                return self._constants
            except OSError:  # The disk may be full.
                self.folder.remove(_CONSTANTS)
        return (otherwise or shared_memory)(size)

    def keep(self, key: str, artifact: Artifact) -> Mapping[str, str]:
        """Write the missing files, and rename the folder to its key; raises `OSError`. Returns the digests."""
        assert self._root is not None
        assert self.folder is not None
        checksum = checksum_of(artifact.constants.data)
        manifest = replace(artifact.manifest, digests=artifact_digests(artifact.code, checksum, artifact.manifest))
        with self.folder.new_file(_MANIFEST) as file:
            file.write(manifest.to_json().encode())
        for number, code in enumerate(artifact.code):
            with self.folder.new_file(_code_file(number)) as file:
                file.write(code)
        if self._constants is None or not np.shares_memory(artifact.constants, self._constants):
            self.folder.remove(_CONSTANTS)
            with self.folder.new_file(_CONSTANTS) as file:
                file.write(artifact.constants.data)
        self._root.rename(self.folder.path.name, key)
        return manifest.digests


def shared_memory(size: int) -> np.ndarray:
    """Shared zero bytes of this size in an anonymous mapping."""
    return bytes_of(mmap.mmap(-1, size)) if size else np.empty(0, np.uint8)


def bytes_of(mapping: mmap.mmap) -> np.ndarray:
    """
    The bytes of a mapping, in huge pages if the system supports them for its kind of memory.

    Otherwise weights that are read once per call wait for address translations: 24 instead of 32 GB/s on a Zen 5.
    """
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # Not all kernels support this.
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapping, np.uint8)


def _code_file(number: int) -> str:
    """The name of an object file."""
    return f"code.{number}.o"


def _new_constants(folder: OwnFolder, size: int) -> np.ndarray:
    """A new file of zero bytes as an array; raises `OSError` if the disk is too full."""
    with folder.new_file(_CONSTANTS) as file:
        # If space cannot be reserved, a full disk would kill the process on a write.
        if not hasattr(os, "posix_fallocate"):
            raise OSError("no space can be reserved")
        os.posix_fallocate(file.fileno(), 0, size)
        return bytes_of(mmap.mmap(file.fileno(), size))


class ArtifactCache:
    """
    A folder of artifacts, one subfolder each, below the given folder.

    Several processes may use it at once: an artifact is written under a temporary name and renamed. Files that others
    own or may write to are ignored (`runtime.own_folder`).
    """

    def __init__(self, directory: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = CacheFolder(f"v{_FORMAT}", directory)
        self.contents = ContentIndex(directory)
        """The digests of model files, and the checksums of constants."""
        self.limit = limit

    @property
    def directory(self) -> Path:
        """The path of the folder of artifacts; raises `CacheError` if it is unknown."""
        return self._folder.path

    def load(self, key: str, known: Mapping[str, str] | None = None) -> Artifact | None:
        """
        The artifact of a key with mapped constants; `None` if there is none. A damaged artifact is removed.

        An artifact with `known` digests has just been stored, and is not verified.
        """
        with self._folder.opened() as root:
            if root is None:
                return None
            try:
                folder = root.folder(key)
            except OSError:
                return None
            except CacheError as error:
                warn(error)
                return None
            with folder:
                return _loaded(root, folder, known, self.contents)

    @contextlib.contextmanager
    def draft(self) -> Generator[Draft]:
        """A draft of an artifact, removed unless it is stored."""
        name = partial_name()
        with self._folder.opened(make=True) as root:
            try:
                folder = root and root.folder(name, make=True)
            except (OSError, CacheError):
                folder = None
            with folder or contextlib.nullcontext():
                try:
                    yield Draft(root, folder)
                finally:
                    if root is not None:
                        root.remove_tree(name)

    def store(self, key: str, artifact: Artifact, draft: Draft | None = None) -> Mapping[str, str] | None:
        """
        Write an artifact, unless it already exists. A full disk or unwritable folder leaves no trace.

        `draft` is the draft that holds its constants. Returns the digests of the written files.
        """
        if draft is None:
            with self.draft() as draft:
                return self.store(key, artifact, draft)
        digests = None
        if draft.folder is not None:
            with contextlib.suppress(OSError):
                digests = draft.keep(key, artifact)
            self.trim()
        return digests

    def trim(self) -> None:
        """
        Remove the least recently used artifacts until the rest fits the limit, and leftovers of dead processes.

        Other files stay.
        """
        found: list[tuple[float, int, str]] = []
        with self._folder.opened() as root, contextlib.suppress(OSError):
            if root is None:
                return
            for name, status in root.entries():
                if not stat.S_ISDIR(status.st_mode):
                    continue
                if is_abandoned(name, status):
                    root.remove_tree(name)
                elif (size := _artifact_size(root, name)) is not None:
                    found.append((status.st_mtime, size, name))
            total = sum(size for _, size, _ in found)
            for _, size, name in sorted(found):
                if total <= self.limit:
                    break
                root.remove_tree(name)
                total -= size


def _loaded(
    root: OwnFolder, folder: OwnFolder, known: Mapping[str, str] | None, contents: ContentIndex
) -> Artifact | None:
    """
    The artifact in a folder; `None` if it is damaged or others may have written it, and then it is removed. An artifact
    with `known` digests is unchanged since it was written.
    """
    name = folder.path.name
    try:
        with folder.open_file(_MANIFEST) as file:
            manifest = Manifest.from_json(file.read().decode())
        code: list[bytes] = []
        for number in range(1 + max((entry.code for entry in manifest.entries), default=-1)):
            with folder.open_file(_code_file(number)) as file:
                code.append(file.read())
        is_known = manifest.digests == known
        constants, checksum = _mapped(folder, manifest.constants, None if is_known else contents)
        if not is_known and manifest.digests != artifact_digests(code, checksum, manifest):
            raise ValueError(f"{folder.path} is damaged")
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # A damaged artifact that stays would never be replaced.
        root.remove_tree(name)
        return None
    except CacheError as error:
        warn(error)
        root.remove_tree(name)
        return None
    except OSError:  # For example too many open files.
        return None
    with contextlib.suppress(OSError):
        root.touch(name)
    return Artifact(tuple(code), constants, manifest)


def artifact_digests(code: Sequence[bytes], checksum: str, manifest: Manifest) -> dict[str, str]:
    """The digest of each part of an artifact; its constants have the checksum given (`checksum_of`)."""
    return {
        "code": " ".join(hashlib.sha256(item).hexdigest() for item in code),
        "constants": checksum,
        "manifest": hashlib.sha256(replace(manifest, digests={}).to_json().encode()).hexdigest(),
    }


def _artifact_size(root: OwnFolder, name: str) -> int | None:
    """The size of a folder that has the name and the manifest of an artifact; `None` for others."""
    if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
        return None
    try:
        with root.folder(name) as folder:
            files = dict(folder.entries())
    except (OSError, CacheError):
        return None
    has_manifest = _MANIFEST in files and stat.S_ISREG(files[_MANIFEST].st_mode)
    return sum(status.st_size for status in files.values()) if has_manifest else None


def _mapped(folder: OwnFolder, size: int, contents: ContentIndex | None) -> tuple[np.ndarray, str]:
    """The constants in a folder and, with `contents`, their checksum; raises `ValueError` for another size."""
    if not size:
        return np.empty(0, np.uint8), checksum_of(memoryview(b""))
    with folder.open_file(_CONSTANTS) as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(data) != size:
            raise ValueError(f"{folder.path / _CONSTANTS} has {len(data)} bytes instead of {size}")
        found = bytes_of(data)
        return found, "" if contents is None else contents.checksum(file, found.data)

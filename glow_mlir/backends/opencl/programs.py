"""
Programs, built for a device once: their binaries are kept on disk.

Some drivers compile twice: a program when it is built, and a kernel again when it is first run, for the size of its
work-groups. Kernels here say that size, so that a binary has all; it is taken when they have run.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from typing import Any

from glow_mlir.backends.opencl.library import NAME, opencl
from glow_mlir.errors import CacheError, CompilerBugError
from glow_mlir.runtime.cache_folder import CacheFolder, partial_name
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass

OPTIONS = ("-cl-std=CL1.2",)
"""What drivers are told: results are those of the IEEE's arithmetic."""

_FORMAT = 1

_DIGEST = hashlib.sha256().digest_size
"""The bytes of the digest that a file begins with."""

_MOST_CHARACTERS = 500
"""How much is told of what a driver says."""


@dataclass(frozen=True)
class Binary:
    """What a driver made of a program, and the entries that had run before it was taken."""

    content: bytes
    entries: frozenset[str]


class ProgramCache:
    """The folder of binaries, one file for each program on each device and driver."""

    def __init__(self) -> None:
        self._folder = CacheFolder(f"{NAME}-v{_FORMAT}")

    def load(self, key: str) -> Binary | None:
        """The binary of that key; `None` where there is none, or it is damaged or not to be trusted."""
        with self._folder.opened() as folder:
            if folder is None:
                return None
            try:
                with folder.open_file(key) as file:
                    digest, data = file.read(_DIGEST), file.read()
            except CacheError as error:
                warn(error)
                return None
            except OSError:
                return None
        if digest != hashlib.sha256(data).digest():
            return None
        head, _, content = data.partition(b"\n")
        return Binary(content, frozenset(head.decode().split()))

    def store(self, key: str, binary: Binary) -> None:
        """Keep a binary; a full disk or a folder that nobody may write to leaves no trace."""
        name, data = partial_name(), " ".join(sorted(binary.entries)).encode() + b"\n" + binary.content
        with self._folder.opened(make=True) as folder, contextlib.suppress(OSError):
            if folder is None:
                return
            try:
                with folder.new_file(name) as file:
                    file.write(hashlib.sha256(data).digest() + data)
                folder.rename(name, key)
            finally:
                folder.remove(name)


def program_key(device: Any, source: bytes) -> str:
    """What a binary depends on: device, driver, options and source."""
    platform = device.platform
    parts = (platform.name, platform.version, device.name, device.version, device.driver_version, *OPTIONS)
    return hashlib.sha256("\n".join(parts).encode() + b"\0" + source).hexdigest()


class BuiltProgram:
    """A program for a device, from the cache where it is there."""

    def __init__(self, context: Any, device: Any, source: bytes) -> None:
        self._key = program_key(device, source)
        self._cache = ProgramCache()
        found = self._cache.load(self._key)
        self._complete = set[str]() if found is None else set(found.entries)
        """The entries whose kernels the binary on disk has as they run."""
        if found is None:
            self.program = _built(context, device, source)
        else:
            self.program = _loaded(context, device, source, found.content)

    def is_kept(self, entry: str) -> bool:
        """Whether the binary on disk has the kernels of an entry as they run."""
        return entry in self._complete

    def keep(self, entry: str) -> None:
        """Keep the binary, now that an entry has run."""
        self._complete.add(entry)
        content = self.program.get_info(opencl().program_info.BINARIES)[0]
        self._cache.store(self._key, Binary(content, frozenset(self._complete)))


def _loaded(context: Any, device: Any, source: bytes, binary: bytes) -> Any:
    """A program made of a binary; of its source where the driver refuses that."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, [device], [binary]), device)
    except cl.Error:
        return _built(context, device, source)


def _built(context: Any, device: Any, source: bytes) -> Any:
    """A program made of source; raises `CompilerBugError` where the driver refuses it."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, source.decode()), device)
    except cl.Error as error:
        reason = " ".join(str(error).split())[:_MOST_CHARACTERS]
        raise CompilerBugError(f"the driver of OpenCL refuses the program: {reason}") from error


def _quietly(program: Any, device: Any) -> Any:
    """A program, built; what compilers have to say about it is nothing for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(list(OPTIONS), devices=[device])

"""
Programs built once per device; their binaries are stored on disk.

Some drivers compile twice: the program when it is built, and each kernel when it first runs, for the size of its
work-groups. Our kernels declare that size, so that a binary can contain everything; it is taken after they have run.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

from glow_mlir.backends.opencl.library import NAME, opencl
from glow_mlir.errors import CompilerBugError
from glow_mlir.runtime.file_cache import FileCache
from glow_mlir.support.dataclass import dataclass

LANGUAGE = "-cl-std=CL1.2"

ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
"""IEEE division and roots, if the device supports them; otherwise they may differ by 3 ULP."""

MAX_PROGRAMS = 1000
"""The number of stored binaries, of 10 kB to 3 MB; the least recently used are removed first."""

_FORMAT = 1

_DIGEST = hashlib.sha256().digest_size
"""The bytes of the digest at the start of a file."""

_MAX_CHARACTERS = 500
"""The maximum length of a driver's message in errors."""


@dataclass(frozen=True)
class Binary:
    """A driver's binary of a program, and the entries that had run before it was taken."""

    content: bytes
    entries: frozenset[str]


class ProgramCache:
    """The folder of binaries, one file for each program on each device and driver."""

    def __init__(self) -> None:
        self._files = FileCache(f"{NAME}-v{_FORMAT}", ".bin", MAX_PROGRAMS)

    def load(self, key: str) -> Binary | None:
        """The binary of a key; `None` if it is missing or damaged."""
        found = self._files.load(key)
        if found is None:
            return None
        digest, data = found[:_DIGEST], found[_DIGEST:]
        if digest != hashlib.sha256(data).digest():
            return None
        head, _, content = data.partition(b"\n")
        return Binary(content, frozenset(head.decode().split()))

    def store(self, key: str, binary: Binary) -> None:
        """Store a binary."""
        data = " ".join(sorted(binary.entries)).encode() + b"\n" + binary.content
        self._files.store(key, hashlib.sha256(data).digest() + data)


def options_of(device: Any) -> list[str]:
    """The build options for a device's driver."""
    is_exact = device.single_fp_config & opencl().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return [LANGUAGE, ROUNDED] if is_exact else [LANGUAGE]


def program_key(device: Any, source: bytes) -> str:
    """The key of a binary: device, driver, options and source."""
    platform = device.platform
    parts = (platform.name, platform.version, device.name, device.version, device.driver_version, *options_of(device))
    return hashlib.sha256("\n".join(parts).encode() + b"\0" + source).hexdigest()


class BuiltProgram:
    """A program for a device, loaded from the cache if possible."""

    def __init__(self, context: Any, device: Any, source: bytes) -> None:
        self._key = program_key(device, source)
        self._cache = ProgramCache()
        found = self._cache.load(self._key)
        self._complete = set[str]() if found is None else set(found.entries)
        """The entries whose kernels are final in the stored binary."""
        loaded = None if found is None else _loaded(context, device, found.content)
        if loaded is None:  # The stored binary is missing or unusable.
            self._complete.clear()
            loaded = _built(context, device, source)
        self.program = loaded

    def is_kept(self, entries: frozenset[str]) -> bool:
        """Whether the kernels of entries are final in the stored binary."""
        return entries <= self._complete

    def keep(self, entries: frozenset[str]) -> None:
        """Store the binary, after entries have run."""
        if not self.is_kept(entries):
            self._complete |= entries
            content = self.program.get_info(opencl().program_info.BINARIES)[0]
            self._cache.store(self._key, Binary(content, frozenset(self._complete)))


def _loaded(context: Any, device: Any, binary: bytes) -> Any:
    """A program from a binary; `None` if the driver refuses it."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, [device], [binary]), device)
    except cl.Error:
        return None


def _built(context: Any, device: Any, source: bytes) -> Any:
    """A program from source; raises `CompilerBugError` if the driver refuses it."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, source.decode()), device)
    except cl.Error as error:
        reason = " ".join(str(error).split())[:_MAX_CHARACTERS]
        raise CompilerBugError(f"the driver of OpenCL refuses the program: {reason}") from error


def _quietly(program: Any, device: Any) -> Any:
    """Build a program without compiler messages, which do not concern users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(options_of(device), devices=[device])

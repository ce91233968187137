"""
Programs, built for a device once: their binaries are kept on disk.

Some drivers compile twice: a program when it is built, and a kernel again when it is first run, for the size of its
work-groups. Kernels here say that size, so that a binary has all; it is taken when they have run.
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
"""Quotients and roots as the IEEE has them, where a device can do that; others may differ by 3 ULP."""

MAX_PROGRAMS = 1000
"""How many binaries are kept, of 10 kB to 3 MB: those that were used longest ago go first."""

_FORMAT = 1

_DIGEST = hashlib.sha256().digest_size
"""The bytes of the digest that a file begins with."""

_MAX_CHARACTERS = 500
"""How much is told of what a driver says."""


@dataclass(frozen=True)
class Binary:
    """What a driver made of a program, and the entries that had run before it was taken."""

    content: bytes
    entries: frozenset[str]


class ProgramCache:
    """The folder of binaries, one file for each program on each device and driver."""

    def __init__(self) -> None:
        self._files = FileCache(f"{NAME}-v{_FORMAT}", ".bin", MAX_PROGRAMS)

    def load(self, key: str) -> Binary | None:
        """The binary of that key; `None` where there is none, or it is damaged."""
        found = self._files.load(key)
        if found is None:
            return None
        digest, data = found[:_DIGEST], found[_DIGEST:]
        if digest != hashlib.sha256(data).digest():
            return None
        head, _, content = data.partition(b"\n")
        return Binary(content, frozenset(head.decode().split()))

    def store(self, key: str, binary: Binary) -> None:
        """Keep a binary."""
        data = " ".join(sorted(binary.entries)).encode() + b"\n" + binary.content
        self._files.store(key, hashlib.sha256(data).digest() + data)


def options_of(device: Any) -> list[str]:
    """What the driver of a device is told."""
    is_exact = device.single_fp_config & opencl().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return [LANGUAGE, ROUNDED] if is_exact else [LANGUAGE]


def program_key(device: Any, source: bytes) -> str:
    """What a binary depends on: device, driver, options and source."""
    platform = device.platform
    parts = (platform.name, platform.version, device.name, device.version, device.driver_version, *options_of(device))
    return hashlib.sha256("\n".join(parts).encode() + b"\0" + source).hexdigest()


class BuiltProgram:
    """A program for a device, from the cache where it is there."""

    def __init__(self, context: Any, device: Any, source: bytes) -> None:
        self._key = program_key(device, source)
        self._cache = ProgramCache()
        found = self._cache.load(self._key)
        self._complete = set[str]() if found is None else set(found.entries)
        """The entries whose kernels the binary on disk has as they run."""
        loaded = None if found is None else _loaded(context, device, found.content)
        if loaded is None:  # Whatever is on disk is of no use.
            self._complete.clear()
            loaded = _built(context, device, source)
        self.program = loaded

    def is_kept(self, entries: frozenset[str]) -> bool:
        """Whether the binary on disk has the kernels of entries as they run."""
        return entries <= self._complete

    def keep(self, entries: frozenset[str]) -> None:
        """Keep the binary, now that entries have run."""
        if not self.is_kept(entries):
            self._complete |= entries
            content = self.program.get_info(opencl().program_info.BINARIES)[0]
            self._cache.store(self._key, Binary(content, frozenset(self._complete)))


def _loaded(context: Any, device: Any, binary: bytes) -> Any:
    """A program made of a binary; `None` where the driver refuses that."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, [device], [binary]), device)
    except cl.Error:
        return None


def _built(context: Any, device: Any, source: bytes) -> Any:
    """A program made of source; raises `CompilerBugError` where the driver refuses it."""
    cl = opencl()
    try:
        return _quietly(cl.Program(context, source.decode()), device)
    except cl.Error as error:
        reason = " ".join(str(error).split())[:_MAX_CHARACTERS]
        raise CompilerBugError(f"the driver of OpenCL refuses the program: {reason}") from error


def _quietly(program: Any, device: Any) -> Any:
    """A program, built; what compilers have to say about it is nothing for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(options_of(device), devices=[device])

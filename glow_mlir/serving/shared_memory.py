"""Shared memory of clients on the same machine, for inputs and outputs."""

from __future__ import annotations

import os
import re
import resource
import stat
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.serving.errors import NotOfferedError
from glow_mlir.serving.steps import COPIED, Steps
from glow_mlir.support.dataclass import dataclass

FOLDER = "/dev/shm"
"""The folder of POSIX shared memory on Linux."""

KEY = re.compile(r"/?([A-Za-z0-9_.+@=:-]{1,250})")
"""The format of keys: the name of a file."""

RESERVED = "glow-"
"""Prefix of keys of this program's own memory."""

MAX_REGIONS = 1024
"""The maximum number of registered regions, if the system's file limit allows it."""

MOST = (1 << 63) - 1


class OpenFile:
    """A descriptor that is closed after `close` was called and its last use has ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._users = 1

    @contextmanager
    def used(self) -> Generator[int]:
        """Use the descriptor, which stays open meanwhile."""
        self._users += 1
        try:
            yield self._descriptor
        finally:
            self.close()

    def close(self) -> None:
        """Release the descriptor."""
        self._users -= 1
        if not self._users:
            os.close(self._descriptor)


@dataclass(frozen=True)
class Region:
    """A part of shared memory registered by a client under a name, in bytes, and its file."""

    name: str
    key: str
    offset: int
    size: int
    file: OpenFile

    def data(self) -> dict[str, Any]:
        """The description for clients."""
        return {"name": self.name, "key": self.key, "offset": self.offset, "byte_size": self.size}


class RegionSlice(NamedTuple):
    """A part of a region, in bytes."""

    region: Region
    offset: int
    size: int


class Regions:
    """
    The regions registered by clients, for use in one thread.

    They are accessed by system calls instead of being mapped: a client may truncate a region at any time, and an access
    to a missing page would crash this process. A region that is unregistered during an access stays open until its end,
    because the system may reuse the number of a closed descriptor.
    """

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._regions: dict[str, Region] = {}
        self._most = most_regions()

    def register(self, name: str, key: object, offset: object, size: object) -> None:
        """Register memory by its key; raises `InputError` for a name in use, or missing memory."""
        if name in self._regions:
            raise InputError(f"the shared memory '{name}' is already registered", hint="unregister it first")
        if len(self._regions) >= self._most:
            raise InputError(f"the server already has {self._most} regions of shared memory", hint="unregister some")
        begin, length = _bytes(offset, "offset", 0), _bytes(size, "size", 1)
        if not isinstance(key, str) or not (match := KEY.fullmatch(key)) or match[1] in (".", ".."):
            raise InputError("the key must be a name of POSIX shared memory", hint="such as '/inputs'")
        if match[1].startswith(RESERVED):
            raise InputError(f"shared memory whose key begins with '{RESERVED}' is reserved")
        descriptor = self._opened(match[1], key)
        if os.fstat(descriptor).st_size < begin + length:
            os.close(descriptor)
            raise InputError(f"the shared memory '{key}' has less than {begin} + {length} bytes")
        self._regions[name] = Region(name, key, begin, length, OpenFile(descriptor))

    def _opened(self, file: str, key: str) -> int:
        """The descriptor of a regular file in the folder; raises `InputError` for anything else."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            descriptor = os.open(os.path.join(self._folder, file), flags)
        except OSError as error:
            raise InputError(f"the shared memory '{key}' cannot be opened: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f"'{key}' is not shared memory")
        return descriptor

    def unregister(self, name: str = "") -> None:
        """Unregister a region, or all of them; unknown names are ignored."""
        names = [name] if name else list(self._regions)
        for known in names:
            region = self._regions.pop(known, None)
            if region is not None:
                region.file.close()

    def status(self, name: str = "") -> list[dict[str, Any]]:
        """The region of that name, or all; raises `InputError` for an unknown one."""
        regions = [self._known(name)] if name else self._regions.values()
        return [region.data() for region in regions]

    def region_slice(self, parameters: Mapping[str, Any]) -> RegionSlice | None:
        """The region slice named by a tensor's parameters, if any; raises `InputError` for an invalid one."""
        name = parameters.get("shared_memory_region")
        if name is None:
            return None
        offset = _bytes(parameters.get("shared_memory_offset", 0), "offset", 0)
        size = _bytes(parameters.get("shared_memory_byte_size"), "size", 0)
        if not isinstance(name, str):
            raise InputError("the name of the shared memory must be a string")
        region = self._known(name)
        if offset + size > region.size:
            raise InputError(f"the shared memory '{name}' has less than {offset} + {size} bytes")
        return RegionSlice(region, offset, size)

    def read(self, region_slice: RegionSlice) -> Steps[np.ndarray]:
        """Read a region slice; raises `InputError` if its memory was truncated or unregistered."""
        data, done = np.empty(region_slice.size, np.uint8), 0
        view, begin = memoryview(data.data), region_slice.region.offset + region_slice.offset
        with self._file(region_slice) as descriptor:
            while done < region_slice.size:
                if done:
                    yield
                count = os.preadv(descriptor, [view[done : done + COPIED]], begin + done)
                if not count:
                    raise InputError(f"the shared memory '{region_slice.region.name}' has become smaller")
                done += count
        return data

    def write(self, region_slice: RegionSlice, name: str, array: np.ndarray) -> Steps[None]:
        """Write an output to a region slice; raises `InputError` if it does not fit, or the memory was unregistered."""
        if array.nbytes > region_slice.size:
            given = f"{region_slice.size} bytes of the shared memory '{region_slice.region.name}'"
            raise InputError(f"output '{name}' takes {array.nbytes} bytes, more than {given}")
        begin, done = region_slice.region.offset + region_slice.offset, 0
        view = memoryview(cast("Any", np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        with self._file(region_slice) as descriptor:
            # Writing past the end of a file would extend it.
            if os.fstat(descriptor).st_size < begin + array.nbytes:
                raise InputError(f"the shared memory '{region_slice.region.name}' has become smaller")
            while done < array.nbytes:
                if done:
                    yield
                done += os.pwrite(descriptor, view[done : done + COPIED], begin + done)

    def _file(self, region_slice: RegionSlice) -> AbstractContextManager[int]:
        """The file of a region slice; raises `InputError` if its region was unregistered or replaced."""
        if self._regions.get(region_slice.region.name) is not region_slice.region:
            raise _unknown(region_slice.region.name)
        return region_slice.region.file.used()

    def _known(self, name: str) -> Region:
        region = self._regions.get(name)
        if region is None:
            raise _unknown(name)
        return region


def most_regions() -> int:
    """The maximum number of registered regions: each needs an open file, and connections need files as well."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_REGIONS if files == resource.RLIM_INFINITY else min(MAX_REGIONS, files // 2)


class DeviceRegions:
    """Regions of GPU memory. None can be registered, because networks read inputs only from host memory."""

    def register(self, name: str) -> None:
        """Raise `NotOfferedError`."""
        reason = f"the memory '{name}' of a GPU cannot be registered: the server reads CPU memory only"
        raise NotOfferedError(reason, hint="register system memory, with glow-serve --shared-memory")

    def unregister(self, name: str = "") -> None:
        """Unregister a region, or all of them; unknown names are ignored."""

    def status(self, name: str = "") -> list[dict[str, Any]]:
        """An empty list; raises `InputError` for the name of a region."""
        if name:
            raise _unknown(name)
        return []


def _unknown(name: str) -> InputError:
    return InputError(f"no shared memory '{name}' is registered")


def _bytes(value: object, what: str, least: int) -> int:
    """A byte count; raises `InputError` for anything else."""
    if type(value) is not int or not least <= value <= MOST:
        raise InputError(f"the {what} of the shared memory must be an integer from {least} to {MOST}")
    return value

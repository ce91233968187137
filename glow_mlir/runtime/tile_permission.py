"""Permission to use the tile registers of AMX: Linux gives it to a process that asks, and ends one that does not."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

_ARCH_PRCTL = 158
"""The number of the system call on x86-64."""

_GET_PERMITTED, _REQUEST = 0x1022, 0x1023
"""ARCH_GET_XCOMP_PERM and ARCH_REQ_XCOMP_PERM of the kernel's documentation, "Using XSTATE features"."""

_TILE_DATA = 18
"""The number of the state component that is the tiles."""


@functools.cache
def may_use_tiles() -> bool:
    """
    Whether the threads of this process may use tiles; the first call asks the system for it.

    It refuses where it is too old, where it is told to, and where the signal stack of a thread is too small.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    permitted = ctypes.c_uint64(0)
    if arch_prctl(_REQUEST, _TILE_DATA) or arch_prctl(_GET_PERMITTED, ctypes.addressof(permitted)):
        return False
    return bool(permitted.value >> _TILE_DATA & 1)


def arch_prctl(code: int, argument: int) -> int:
    """The system call of that name: 0 where it succeeded."""
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(code), ctypes.c_ulong(argument))

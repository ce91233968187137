"""Permission to use the tile registers of AMX; Linux kills a process that uses them without asking."""

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
"""The number of the tile state component."""


@functools.cache
def may_use_tiles() -> bool:
    """
    Whether the threads of this process may use tiles; the first call requests permission.

    The system refuses if it is too old, if it is configured to, or if the signal stack of a thread is too small.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    permitted = ctypes.c_uint64(0)
    if arch_prctl(_REQUEST, _TILE_DATA) or arch_prctl(_GET_PERMITTED, ctypes.addressof(permitted)):
        return False
    return bool(permitted.value >> _TILE_DATA & 1)


def arch_prctl(code: int, argument: int) -> int:
    """The system call `arch_prctl`; 0 on success."""
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(code), ctypes.c_ulong(argument))

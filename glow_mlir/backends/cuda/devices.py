"""The devices of this machine: those of NVIDIA's driver, and emulated ones."""

from __future__ import annotations

from functools import cache

from glow_mlir.backends.cuda.device import CudaDevice
from glow_mlir.backends.cuda.driver import Driver
from glow_mlir.backends.cuda.emulation import EmulatedDriver
from glow_mlir.backends.cuda.libcuda import LIBRARY, LibCuda
from glow_mlir.errors import GlowError, OptionError

EMULATION_HINT = (
    "the CPU emulates one: backend='cuda' with target='emulated-sm_80', or devices='cuda,target=emulated-sm_80'"
)
"""A hint for machines without a device."""


@cache
def driver() -> Driver | None:
    """The driver of this machine, if it has devices."""
    try:
        found = LibCuda()
        return found if found.count() else None
    except (OSError, GlowError):
        return None


@cache
def emulated_device(number: int) -> CudaDevice:
    """The emulated device of a number."""
    return CudaDevice(EmulatedDriver(), number, f"emulated-cuda:{number}")


@cache
def real_device(number: int) -> CudaDevice:
    """The driver's device of a number; raises `OptionError` for a missing one."""
    found = driver()
    if found is None:
        raise OptionError(f"there is no device 'cuda:{number}': no {LIBRARY} with one", hint=EMULATION_HINT)
    count = found.count()
    if number >= count:
        raise OptionError(f"there is no device 'cuda:{number}'", hint=f"there are {count}, numbered from 0")
    return CudaDevice(found, number, f"cuda:{number}")


def generation() -> int:
    """The generation of the driver's first device; 0 if there is none."""
    return 0 if driver() is None else real_device(0).properties.generation


def memory_bytes() -> int:
    """The memory size of the driver's first device in bytes; 0 if there is none."""
    return 0 if driver() is None else real_device(0).properties.nbytes

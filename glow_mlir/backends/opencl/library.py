"""PyOpenCL, imported when a device is needed, and its devices."""

from __future__ import annotations

from functools import cache
from typing import Any

from glow_mlir.errors import OptionError
from glow_mlir.support.optional_packages import imported

NAME = "opencl"
"""The name of the backend."""


@cache
def opencl() -> Any:
    """The module `pyopencl`; raises `OptionError` if it is not installed."""
    return imported("pyopencl", "opencl", "the backend 'opencl' needs PyOpenCL")


@cache
def devices() -> tuple[Any, ...]:
    """The devices of all platforms, in the order in which OpenCL lists them; raises `OptionError` without PyOpenCL."""
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # There are no drivers.
        return ()
    return tuple(device for platform in platforms for device in platform.get_devices())


def device_at(name: str) -> Any:
    """The device `opencl:N`; raises `OptionError` for a missing one."""
    found, (_, _, number) = devices(), name.partition(":")
    if not number.isdecimal() or int(number) >= len(found):
        known = ", ".join(device_name(position) for position in range(len(found)))
        raise OptionError(
            f"there is no device '{name}'", hint=f"there are {known}" if known else "no driver is installed"
        )
    return found[int(number)]


def device_name(number: int | str) -> str:
    """The readable name of the device of a number."""
    return f"{NAME}:{number}"

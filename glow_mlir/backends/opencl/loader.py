"""Loads artifacts of the OpenCL backend, without the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glow_mlir.backends.opencl.device import device
from glow_mlir.backends.opencl.executable import OpenCLExecutable
from glow_mlir.backends.opencl.library import NAME, device_name
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.devices import Device

DEVICES: Mapping[str, Callable[[int], Device]] = {NAME: lambda number: device(device_name(number))}
"""Kind of device → function that returns the device of a number."""


def load(artifact: Artifact, threads: int) -> OpenCLExecutable:
    """Load an artifact on its device; the device itself determines the parallelism."""
    fields = (part for entry in artifact.manifest.entries for part in entry.machine.split(", "))
    name = next((part for part in fields if part.startswith(device_name(""))), device_name("0"))
    return OpenCLExecutable(artifact, device(name))


def load_on(artifact: Artifact, number: int, threads: int) -> OpenCLExecutable:
    """Load an artifact on the device of a number; raises `OptionError` for a missing one."""
    return OpenCLExecutable(artifact, device(device_name(number)))

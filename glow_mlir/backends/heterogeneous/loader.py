"""Loads artifacts of several devices, without the compiler."""

from __future__ import annotations

from glow_mlir.dialects.packages import loader_of
from glow_mlir.errors import CacheError
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.bundled_partitions import unbundled
from glow_mlir.runtime.devices import Device, DeviceEntry
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.host_device import HostDevice
from glow_mlir.runtime.partitions import PartitionedExecutable


def load(artifact: Artifact, threads: int) -> PartitionedExecutable:
    """What was compiled for several devices, ready to be called on them."""
    whole = unbundled(artifact)
    loaded: dict[str, tuple[Device, Executable]] = {}
    for part in whole.parts:
        loader = loader_of(part.backend)
        if loader is None:
            raise CacheError(f"nothing loads artifacts of the backend '{part.backend}'")
        executable: Executable = loader.load(part.artifact, part.threads)
        loaded[part.device] = _device_of(executable, part.device), executable
    return PartitionedExecutable(whole, loaded)


def _device_of(executable: Executable, name: str) -> Device:
    """The device on which the entries of an executable run: one of the host where they say none."""
    entry = executable.load(executable.names[0])
    return entry.device if isinstance(entry, DeviceEntry) else HostDevice(name)

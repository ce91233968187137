"""Loads artifacts of several devices, without the compiler."""

from __future__ import annotations

from glow_mlir.dialects.packages import loader_of
from glow_mlir.errors import CacheError
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.bundled_partitions import unbundled
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.partitions import DevicePart, PartitionedExecutable


def load(artifact: Artifact, threads: int) -> PartitionedExecutable:
    """Load the artifacts of several devices."""
    whole = unbundled(artifact)
    return PartitionedExecutable(whole, {part.device: _loaded(part) for part in whole.parts})


def _loaded(part: DevicePart) -> Executable:
    """Load the artifact of one device; loaders of host backends have no `load_on`."""
    loader = loader_of(part.backend)
    if loader is None:
        raise CacheError(f"nothing loads artifacts of the backend '{part.backend}'")
    if hasattr(loader, "load_on"):
        return loader.load_on(part.artifact, part.number, part.threads)
    return loader.load(part.artifact, part.threads)

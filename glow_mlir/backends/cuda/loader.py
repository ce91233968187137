"""Loads artifacts of the CUDA backend, without the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glow_mlir.backends.cuda.devices import emulated_device, real_device
from glow_mlir.backends.cuda.executable import CudaExecutable
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.devices import Device
from glow_mlir.support.dlpack import CUDA

NAME = "cuda"
"""The name of the backend."""

EMULATED_TRIPLE = "nvptx64-nvidia-emulated"
"""The triple of a device emulated by the CPU, with the kernel code of the generation."""


DEVICES: Mapping[str, Callable[[int], Device]] = {NAME: real_device, f"emulated-{NAME}": emulated_device}
"""Kind of device → function that returns the device of a number."""

DLPACK_DEVICES: Mapping[int, Callable[[int], Device]] = {CUDA: real_device}
"""DLPack device type → function that returns the device of a number."""


def load(artifact: Artifact, threads: int) -> CudaExecutable:
    """Load an artifact on the first device; the device itself determines the parallelism."""
    return load_on(artifact, 0, threads)


def load_on(artifact: Artifact, number: int, threads: int) -> CudaExecutable:
    """
    Load an artifact on the device of a number, or an emulated one if it is compiled for that; raises `OptionError`.
    """
    is_emulated = all(entry.triple == EMULATED_TRIPLE for entry in artifact.manifest.entries)
    return CudaExecutable(artifact, emulated_device(number) if is_emulated else real_device(number))

"""Loads artifacts of the CUDA backend, without the compiler."""

from __future__ import annotations

from glow_mlir.backends.cuda.devices import emulated_device, real_device
from glow_mlir.backends.cuda.executable import CudaExecutable
from glow_mlir.runtime.artifact import Artifact

EMULATED_TRIPLE = "nvptx64-nvidia-emulated"
"""The triple of a device that the CPU emulates, with the code that kernels make for the generation."""


def load(artifact: Artifact, threads: int) -> CudaExecutable:
    """An artifact on the device that it is for, ready to be called; how much runs at once is the device's business."""
    is_emulated = all(entry.triple == EMULATED_TRIPLE for entry in artifact.manifest.entries)
    return CudaExecutable(artifact, emulated_device(0) if is_emulated else real_device(0))

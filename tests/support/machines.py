"""Machines by name."""

from __future__ import annotations

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.dialects.target import Target


def target_named(text: str) -> Target:
    """What the CPU backend calls a target."""
    return CpuBackend().target(text)

"""Constants and process-wide settings of onnxruntime's package."""

from __future__ import annotations

from glow_mlir.errors import OptionError
from glow_mlir.support.activity import caution
from glow_mlir.support.arguments import whole_number


def get_version_string() -> str:
    """The version of this package."""
    from importlib.metadata import version

    return version("glow-mlir")


def get_build_info() -> str:
    """The versions of what compiles, and the machine that code is made for."""
    from glow_mlir.api.model_compiler import compiler_versions
    from glow_mlir.runtime.host import llvm_triple

    return f"Build Info: {compiler_versions()}; {llvm_triple()}"


def has_collective_ops() -> bool:
    """Whether there are operators for several machines, as there are none."""
    return False


def set_seed(seed: int) -> None:
    """Check that it is a seed; which random numbers a session draws, its state `random.seed` says."""
    if whole_number(seed) is None:
        raise OptionError(f"{seed!r} is no seed", hint="a whole number")


def disable_telemetry_events() -> None:
    """Send nothing to anybody, as always."""


def enable_telemetry_events() -> None:
    """Nothing but a warning: no telemetry is ever sent."""
    caution(OptionError("telemetry does not exist", hint="no telemetry is ever sent"))

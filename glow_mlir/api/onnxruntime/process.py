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
    """The versions of the compiler's components, and the target of this machine."""
    from glow_mlir.api.model_compiler import compiler_versions
    from glow_mlir.runtime.host import llvm_triple

    return f"Build Info: {compiler_versions()}; {llvm_triple()}"


def has_collective_ops() -> bool:
    """Whether there are collective operators: always false."""
    return False


def set_seed(seed: int) -> None:
    """Validate a seed; the random numbers of a session depend on its state `random.seed`."""
    if whole_number(seed) is None:
        raise OptionError(f"{seed!r} is no seed", hint="a whole number")


def disable_telemetry_events() -> None:
    """Do nothing: no telemetry is ever sent."""


def enable_telemetry_events() -> None:
    """Only warn: no telemetry is ever sent."""
    caution(OptionError("telemetry does not exist", hint="no telemetry is ever sent"))

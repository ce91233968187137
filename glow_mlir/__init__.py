"""glow-mlir: a neural-network compiler after Glow (arXiv 1805.00907), in Python, as two dialects on xDSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir.api import onnx_backend
    from glow_mlir.api.bundle_session import load_bundle
    from glow_mlir.api.session import InferenceSession
    from glow_mlir.errors import GlowError
    from glow_mlir.quantization.options import Quantization
    from glow_mlir.runtime.specializations import SpecializationLimits

__all__ = ["GlowError", "InferenceSession", "Quantization", "SpecializationLimits", "load_bundle", "onnx_backend"]

_HOMES = {
    "GlowError": "glow_mlir.errors:GlowError",
    "InferenceSession": "glow_mlir.api.session:InferenceSession",
    "Quantization": "glow_mlir.quantization.options:Quantization",
    "SpecializationLimits": "glow_mlir.runtime.specializations:SpecializationLimits",
    "load_bundle": "glow_mlir.api.bundle_session:load_bundle",
    "onnx_backend": "glow_mlir.api.onnx_backend",
}
"""Public name → the module that it is, or that has it."""


def __getattr__(name: str) -> Any:
    """The public names, imported when first used, so that importing the package costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        home, _, member = _HOMES[name].partition(":")
        return getattr(import_module(home), member) if member else import_module(home)
    if name == "__version__":
        from importlib.metadata import version

        return version("glow-mlir")
    raise AttributeError(f"module 'glow_mlir' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted([*__all__, "__version__"])

"""glow-mlir: a neural-network compiler after Glow (arXiv 1805.00907), in Python, as two dialects on xDSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir.api.session import InferenceSession
    from glow_mlir.errors import GlowError

__all__ = ["GlowError", "InferenceSession"]

_HOMES = {"GlowError": "glow_mlir.errors", "InferenceSession": "glow_mlir.api.session"}


def __getattr__(name: str) -> Any:
    """The public names, imported when first used, so that importing the package costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'glow_mlir' has no attribute '{name}'")

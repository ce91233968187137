"""
PyTorch models: `torch.compile(model, backend="glow")`, `from_torch`, and reports of compiled graphs.

PyTorch is an extra; no other package imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir.torch.backend import glow as glow
    from glow_mlir.torch.front_door import exported as exported
    from glow_mlir.torch.front_door import from_torch as from_torch
    from glow_mlir.torch.graph_reports import report as report

_HOMES = {
    "exported": "glow_mlir.torch.front_door",
    "from_torch": "glow_mlir.torch.front_door",
    "glow": "glow_mlir.torch.backend",
    "report": "glow_mlir.torch.graph_reports",
}
"""Public name → the module that defines it."""


def __getattr__(name: str) -> Any:
    """The public names, imported when first used."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    if name == "__all__":
        return list(_HOMES)
    raise AttributeError(f"module 'glow_mlir.torch' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(_HOMES)

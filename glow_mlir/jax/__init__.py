"""
Functions of JAX, models of Flax and of Keras: `from_jax`, `from_keras`.

JAX is an extra; no other package imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glow_mlir.jax.front_door import exported as exported
    from glow_mlir.jax.front_door import from_jax as from_jax
    from glow_mlir.jax.front_door import from_keras as from_keras

_HOMES = {
    "exported": "glow_mlir.jax.front_door",
    "from_jax": "glow_mlir.jax.front_door",
    "from_keras": "glow_mlir.jax.front_door",
}
"""Public name → the module that defines it."""


def __getattr__(name: str) -> Any:
    """The public names, imported when first used."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    if name == "__all__":
        return list(_HOMES)
    raise AttributeError(f"module 'glow_mlir.jax' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(_HOMES)

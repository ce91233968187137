"""The table of kernels that run on blocks of threads; backends of such devices list it before others."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.ir import registry
from glow_mlir.ir.registry import Entry

TABLES = "blocks"
"""The name of the table."""


def kernel(name: str) -> Callable[[Entry], Entry]:
    """Register a class as the kernel of that name."""
    return registry.kernel(name, backend=TABLES)

"""The tables of the kernels that emit `llvm` operations, and of their packed forms."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.ir import registry
from glow_mlir.ir.registry import Entry

TABLES = "cpu"
"""The backend that owns these tables; those that extend it have them as well."""


def kernel(name: str) -> Callable[[Entry], Entry]:
    """Register a class as the kernel of that name."""
    return registry.kernel(name, backend=TABLES)


def packed_form(name: str) -> Callable[[Entry], Entry]:
    """Register a packed form: `(shape, numbers) -> layout`."""
    return registry.packed_form(name, backend=TABLES)

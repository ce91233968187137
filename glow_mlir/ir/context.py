"""The context of a compilation: all dialects of our stages, each imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect

from glow_mlir.ir.universe import GLOW_UNIVERSE


def _completed(name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f"glow_mlir.dialects.{name}"), name.upper())


COMPLETED: Mapping[str, Callable[[], Dialect]] = {name: _completed(name) for name in ("arith", "llvm", "math")}
"""xDSL dialects extended by missing upstream ops: they replace its own."""


def new_context() -> Context:
    """A context with xDSL's dialects, ours, and the extended ones."""
    context = Context()
    dialects = {**get_all_dialects(), **GLOW_UNIVERSE.all_dialects, **COMPLETED}
    for name, factory in dialects.items():
        context.register_dialect(name, factory)
    return context

"""The context of a compilation: all dialects that our stages use, each imported when first met."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects

from glow_mlir.universe import GLOW_UNIVERSE


def completed_llvm() -> Any:
    """The `llvm` dialect with the upstream ops that xDSL lacks."""
    return import_module("glow_mlir.dialects.llvm").LLVM


def new_context() -> Context:
    """A context with xDSL's dialects, ours, and the completed `llvm`."""
    context = Context()
    dialects = {**get_all_dialects(), **GLOW_UNIVERSE.all_dialects, "llvm": completed_llvm}
    for name, factory in dialects.items():
        context.register_dialect(name, factory)
    return context

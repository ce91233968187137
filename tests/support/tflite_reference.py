"""LiteRT's reference kernels, for comparisons."""

from __future__ import annotations

from typing import Any

import pytest

WITHOUT_REFERENCE = ("CEIL", "ELU", "ROUND", "LOCAL_RESPONSE_NORMALIZATION")
"""Operators that are compared with LiteRT's default kernels: it has no reference kernel, or one of another meaning."""


def reference(model: bytes, kind: str = "") -> Any:
    """An interpreter with the reference kernels, where the operator has one."""
    interpreter: Any = pytest.importorskip("ai_edge_litert.interpreter")
    kernels = interpreter.OpResolverType
    chosen = kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES if kind in WITHOUT_REFERENCE else kernels.BUILTIN_REF
    found = interpreter.Interpreter(model_content=model, experimental_op_resolver_type=chosen)
    found.allocate_tensors()
    return found

"""
Semantics of predicates, which are ignored unless honoured: masked elements are then NaN.

If results differ, something reads masked elements.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from glow_mlir.dialects.glow_high.linear import PredicatedMatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.interpreter.linear import matmul
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype

_HONOURED = ContextVar("predicates honoured", default=False)


@contextmanager
def honoured_predicates() -> Generator[None]:
    """Honour predicates inside the `with` statement."""
    token = _HONOURED.set(True)
    try:
        yield
    finally:
        _HONOURED.reset(token)


def _shown(value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Replace masked elements by NaN, or the largest integer, if predicates are honoured."""
    if not _HONOURED.get():
        return value
    poison = np.nan if is_float_dtype(value.dtype) else True if value.dtype == bool else np.iinfo(value.dtype).max
    shown = np.array(value)
    shown[~mask] = poison
    return shown


@semantics(PredicateOp)
def predicate(op: PredicateOp, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The value, with predicates honoured if requested."""
    return _shown(value, mask)


@semantics(PredicatedMatMulOp)
def predicated_matmul(
    op: PredicatedMatMulOp, left: np.ndarray, right: np.ndarray, mask: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """The product, with predicates honoured if requested."""
    return _shown(matmul(op, left, right, bias), mask)

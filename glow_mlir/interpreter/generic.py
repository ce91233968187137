"""Semantics of `generic`: those of its form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.interpreter.forms import run_form
from glow_mlir.ir.registry import semantics


@semantics(GenericOp)
def generic(op: GenericOp, sources: Sequence[np.ndarray]) -> np.ndarray:
    """Evaluate the chain of stages."""
    return run_form(op.generic_form(), sources, op)

"""Gradients, which have no semantics on values alone."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.gradient import GradientOp, VariablesOp
from glow_mlir.errors import ModelError
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics


@semantics(GradientOp)
def gradient(op: GradientOp, *_: np.ndarray) -> tuple[np.ndarray, ...]:
    """Raises `ModelError`: the gradient depends on the operators that compute the target."""
    raise _before_differentiation(op)


@semantics(VariablesOp)
def variables(op: VariablesOp, *_: np.ndarray) -> tuple[np.ndarray, ...]:
    """Raises `ModelError`: as values, variables would be constant wherever their operands are."""
    raise _before_differentiation(op)


def _before_differentiation(op: GradientOp | VariablesOp) -> ModelError:
    hint = "run the pass 'differentiate' first"
    return ModelError("a gradient is no function of values", node=location_name(op.location), hint=hint)

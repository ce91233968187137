"""The policy of a function before its target is known."""

from __future__ import annotations

from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.options.policy import Policy


def policy_of(function: FunctionOp) -> Policy:
    """The compilation policy of a function: that of its target, or the defaults before one is assigned."""
    return Policy() if function.assigned is None else function.assigned.data.policy


def is_strict(function: FunctionOp) -> bool:
    """Whether each arithmetic operation rounds as in the model (docs/floating-point.md)."""
    return policy_of(function).accuracy == "strict"

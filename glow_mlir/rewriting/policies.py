"""The policy of a function on its way through the passes in front of its target's."""

from __future__ import annotations

from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.options.policy import Policy


def policy_of(function: FunctionOp) -> Policy:
    """What a function is made for, on any machine: the defaults as long as it has no target."""
    return Policy() if function.assigned is None else function.assigned.data.policy


def is_strict(function: FunctionOp) -> bool:
    """Whether each step of arithmetic rounds as the model says it (docs/floating-point.md)."""
    return policy_of(function).accuracy == "strict"

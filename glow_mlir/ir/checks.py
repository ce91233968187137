"""Errors of the `verify-…` passes."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


class CheckFailed(VerifyException):
    """An invariant of a stage is violated at `op`."""

    def __init__(self, op: Operation, reason: str) -> None:
        super().__init__(reason)
        self.op = op


def require_at(op: Operation, condition: bool, reason: str) -> None:
    """Raise `CheckFailed` at `op` unless `condition` holds."""
    if not condition:
        raise CheckFailed(op, reason)

"""Folding of constants while a module is built, for operands that determine shapes."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.forward_analysis import analyzed, operands_of
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.run_time_sizes import has_run_time_sizes

MAX_FOLDED = 1 << 31
"""The maximum size in bytes of a folded value."""


class ConstantFolding:
    """The values of a function that do not depend on its inputs, as arrays; the function itself does not change."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[SSAValue, np.ndarray | None] = {}

    def of(self, value: SSAValue) -> np.ndarray | None:
        """
        The constant array of `value`, or `None` if it depends on an input.

        Raises `UnsupportedError` for more than `MAX_FOLDED` bytes.
        """
        return analyzed(value, self._known, operands_of, self._computed)

    def tell(self, value: SSAValue, array: np.ndarray | None) -> None:
        """Set what is known of a value: its array, or `None` for an input."""
        self._known[value] = array

    def follow(self, op: Operation) -> None:
        """Mark the results of a new operation as dependent on an input if an operand is known to be."""
        for operand in op.operands:
            if self._known.get(operand, operand) is None:
                self._known.update(dict.fromkeys(op.results))
                return

    def _computed(self, value: SSAValue) -> np.ndarray | None:
        """Compute a value whose operands are analyzed."""
        if (array := self._storage.value_of(value)) is not None:
            return array
        owner = value.owner
        if not isinstance(owner, HighOp) or any(self._known[item] is None for item in owner.operands):
            return None
        if has_run_time_sizes(owner):
            return None
        if (size := sum(map(bytes_of, owner.results))) > MAX_FOLDED:
            reason = f"a constant that has to be known takes {size} bytes, more than {MAX_FOLDED}"
            raise UnsupportedError(reason, hint="compute shapes of small constants")
        operands = group_like(owner, (self._known[item] for item in owner.operands))
        return apply_semantics(owner, operands)[list(owner.results).index(value)]  # pyright: ignore[reportArgumentType]

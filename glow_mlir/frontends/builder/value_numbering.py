"""
Value numbering: find values that are equal because they are computed in the same way.

Results whose sizes depend on equal values are emitted once, so that they share the size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.frontends.builder.forward_analysis import analyzed, operands_of

FEW = 64
"""The maximum number of elements of a constant that is compared with others."""


class ValueNumbering:
    """Equal values of one function; each value is analyzed once."""

    def __init__(self, fold: Callable[[SSAValue], np.ndarray | None]) -> None:
        self._fold = fold
        self._first: dict[Hashable, SSAValue] = {}
        self._known: dict[SSAValue, SSAValue] = {}
        self._emitted: dict[Hashable, SSAValue] = {}

    def once(self, kind: Hashable, value: SSAValue, emit: Callable[[], SSAValue]) -> SSAValue:
        """The result of `emit` for a value, reused for equal values of the same `kind`."""
        key = kind, analyzed(value, self._known, operands_of, self._transfer)
        if key not in self._emitted:
            self._emitted[key] = emit()
        return self._emitted[key]

    def _transfer(self, value: SSAValue) -> SSAValue:
        """The first equal value; the operands are analyzed."""
        return self._first.setdefault(self._key(value), value)

    def _key(self, value: SSAValue) -> Hashable:
        """A key that is equal for equal values."""
        owner = value.owner
        if isinstance(owner, Operation) and not owner.operands:
            array = self._fold(value)
            if array is not None and array.size <= FEW:
                return array.dtype.str, array.shape, array.tobytes()
        if not isinstance(owner, HighOp) or owner.regions:
            return value
        operands = tuple(self._known[item] for item in owner.operands)
        properties = frozenset(owner.properties.items())
        return type(owner), operands, properties, list(owner.results).index(value)  # pyright: ignore[reportArgumentType]

"""A case of an operator: operands, properties, and which axes are a batch that may be known at run time only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from execute import Case, Given, module_of
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.support.symbols import Size, Symbol, SymbolicSize

BATCH = 3
"""The batch of a case."""

LARGEST = 7
"""The largest batch, where it is known at run time only."""

SYMBOL = SymbolicSize.of(Symbol("batch", 1, LARGEST))

Properties = Mapping[str, Any] | Callable[[Size], Mapping[str, Any]]


@dataclass(frozen=True)
class OperatorCase:
    """
    An operator with its operands, those at `constants` as constants of the module.

    `batch` has positions of operands → which of their axes is the batch. `properties` may depend on its size. Some
    operators are there for sizes alone that are known at run time only, `sized`. `beside` is an operator that reads an
    input with the batch, where this one has none, and `tolerance` that of `execute.assert_same`.
    """

    operator: type[HighOp]
    operands: Sequence[Given]
    batch: Mapping[int, int]
    properties: Properties = field(default_factory=dict[str, Any])
    constants: Sequence[int] = ()
    sized: bool = False
    beside: OperatorCase | None = None
    tolerance: float | None = None

    def cases(self, batch: int = BATCH, size: Size | None = None) -> list[Case]:
        """The operator on so many elements along the batch, and what is beside it."""
        properties = self.properties(batch if size is None else size) if callable(self.properties) else self.properties
        operands = [_along(given, self.batch.get(place), batch) for place, given in enumerate(self.operands)]
        symbolic = {} if size is None else {place: (axis, size) for place, axis in self.batch.items()}
        own = Case(self.operator, *operands, constants=self.constants, symbolic=symbolic, **properties)
        return [own, *(self.beside.cases(batch, size) if self.beside is not None else ())]

    def module(self, sized: bool, neighbours: bool = False) -> ModuleOp:
        """A module with the operator, whose batch is a number or a symbol; `neighbours` as in `module_of`."""
        module, _ = module_of(*self.cases(size=SYMBOL if sized else None), neighbours=neighbours)
        return module

    def inputs(self, batch: int = BATCH, neighbours: bool = False) -> dict[str, np.ndarray]:
        """What the inputs of the module are, by name, for so many elements along the batch."""
        _, arrays = module_of(*self.cases(batch), neighbours=neighbours)
        return arrays


def _along(given: Given, axis: int | None, batch: int) -> Given:
    """An operand with so many elements along an axis, which repeat where there are more than it has."""
    if axis is None or given is None:
        return given
    if isinstance(given, np.ndarray):
        return np.take(given, np.arange(batch) % given.shape[axis], axis)
    return [np.take(part, np.arange(batch) % part.shape[axis], axis) for part in given]

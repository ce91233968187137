"""Formulas on tensors, written with Python's operators and emitted as elementwise operators."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, converted
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.builder.emission import OperatorEmitter, emitted
from glow_mlir.support.dataclass import dataclass

NOWHERE = frozenset[str]()
"""The dimensions of a formula: none, because its operands broadcast by shape."""


@dataclass
class Formulas:
    """Convert values to operands of formulas, and formulas to values; no formula is emitted twice."""

    emit: OperatorEmitter
    _values: dict[Tensor, SSAValue] = field(default_factory=dict[Tensor, SSAValue])
    _operands: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])

    def of(self, value: SSAValue) -> Tensor:
        """The operand that stands for a value."""
        if value not in self._operands:
            operand = Tensor(element_of(value), NOWHERE, "value", operand=len(self._operands))
            self._operands[value], self._values[operand] = operand, value
        return self._operands[value]

    def value(self, formula: Tensor) -> SSAValue:
        """The value of a formula."""
        if formula not in self._values:
            self._values[formula] = emitted(formula, self._values, self.emit)
        return self._values[formula]

    def kept(self, formula: Tensor) -> Tensor:
        """Emit a formula; the operand that stands for its value."""
        return self.of(self.value(formula))


def like(formula: Tensor, other: Tensor) -> Tensor:
    """A formula in the element type of another one."""
    return converted(formula, other.element)


WIDE = f64
"""The element type of scalars of an optimizer step: rates, corrections, norms."""

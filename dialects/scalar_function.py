"""A function of one float: the single definition from which its operations, words, meaning and gradient are derived."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from xdsl.dialects import math
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.traits import Pure

from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.definitions import op_definition

if TYPE_CHECKING:
    from glow_mlir.dialects.expressions import Tensor


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """A function of one float. As a word of index notation, it is called with a value."""

    name: str
    """Its word in scalar bodies and expressions."""
    meaning: str
    derivative: Callable[[Tensor, Tensor], Tensor | float] | None = None
    """Gives the derivative from the argument and the result; None where `derivatives` has a rule."""
    reference: str | Callable[[float], float] = ""
    """Its reference in f64: the name of numpy's function, if different, or a function of one number."""
    operator: str | None = None
    """The name of its operator in `glow_high`, if different; empty if the operator has its own class, or is absent."""
    onnx: str = ""
    """ONNX's name of the operator, if ONNX has it."""
    aten: str = ""
    """PyTorch's name of the operator, if PyTorch has it."""
    mlir: str = ""
    """The name of its operation in the dialect `math`, if different."""
    bounds: tuple[float, float] = (-inf, inf)
    """Lower and upper bound of all results."""
    is_exact: bool = False
    """Whether it is one or two instructions on every machine, rounded once: cheaper to recompute than to store."""
    is_step: bool = False
    """Whether its results are whole numbers, and whole numbers are unchanged."""

    def __call__(self, x: Tensor) -> Tensor:
        """The function of each element; raises `OptionError` for elements that are no floats."""
        from glow_mlir.dialects.expressions import unary

        return unary(self.name, x)

    @cached_property
    def operation(self) -> type[IRDLOperation]:
        """Its operation on floats: that of xDSL's dialect `math`, or one of that dialect which xDSL lacks."""
        name = f"math.{self.mlir or self.name}"
        known: dict[str, type[Any]] = {op.name: op for op in math.Math.operations}
        return known.get(name) or _operation(name, self.meaning)


def _operation(name: str, meaning: str) -> type[IRDLOperation]:
    """A new operation of one float."""
    base = math.FloatingPointLikeUnaryMathOperation
    members = {"__module__": __name__, "__doc__": meaning, "name": name, "traits": traits_def(Pure())}
    return op_definition(type(f"{name.removeprefix('math.').capitalize()}Op", (base,), members))

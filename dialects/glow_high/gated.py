"""The base of recurrent layers and recurrences: gate functions with parameters and a limit for their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute
from xdsl.irdl import base, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.activation_functions import GATE_FUNCTIONS
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.properties import float_prop, floats, number, optional_floats_prop, text
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import require
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Gate:
    """A gate function with its parameters; its argument is limited to ±`clip` unless `clip` is 0."""

    name: str
    alpha: float
    beta: float
    clip: float

    @staticmethod
    def of(name: str, alpha: float | None, beta: float | None, clip: float) -> Gate:
        """The gate function of that name, with default parameters where they are `None`; raises for other names."""
        require(name in GATE_FUNCTIONS, f"'{name}' is no gate function; there are {', '.join(GATE_FUNCTIONS)}")
        function = GATE_FUNCTIONS[name]
        first = (function.alpha or 0.0) if alpha is None else alpha
        second = (function.beta or 0.0) if beta is None else beta
        return Gate(name, first, second, clip)

    def __call__(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        """Build its scalar code."""
        limited = b.clamp(x, -self.clip, self.clip) if self.clip else x
        return GATE_FUNCTIONS[self.name].build(b, limited, self.alpha, self.beta)


def names_of(activations: Attribute | None, default: Sequence[str]) -> tuple[str, ...]:
    """The words of a property that lists gate functions, or the default."""
    if activations is None:
        return tuple(default)
    if not isinstance(activations, ArrayAttr):
        raise VerifyException(f"expected a list of words, got {activations}")
    return tuple(text(item) for item in cast(Sequence[Attribute], activations.data))


def parameters_of(values: Attribute | None, count: int, what: str) -> tuple[float | None, ...]:
    """The parameters of `count` gate functions; absent ones are `None` throughout."""
    if values is None:
        return (None,) * count
    given = floats(values)
    require(len(given) == count, f"{what} must have {count} elements, one for each gate function")
    return given


class Gated(HighOp):
    """
    An operator with gate functions: `activations` names them, `alphas` and `betas` are their parameters, and their
    arguments are limited to ±`clip` unless that is 0.
    """

    activations = opt_prop_def(base(ArrayAttr))
    alphas = optional_floats_prop()
    betas = optional_floats_prop()
    clip = float_prop(0.0)

    def gate_functions(self, default: Sequence[str], unclipped: Sequence[int] = ()) -> tuple[Gate, ...]:
        """
        The gate functions, as many as in `default`; those at the positions `unclipped` have no limit.

        Raises where names or parameters do not fit.
        """
        names = names_of(self.activations, default)
        require(len(names) == len(default), f"expected {len(default)} gate functions, got {len(names)}")
        alphas = parameters_of(self.alphas, len(names), "alphas")
        betas = parameters_of(self.betas, len(names), "betas")
        clip = float(number(self.clip))
        require(clip >= 0.0, "clip must not be negative")
        return tuple(
            Gate.of(name, alpha, beta, 0.0 if position in unclipped else clip)
            for position, (name, alpha, beta) in enumerate(zip(names, alphas, betas, strict=True))
        )

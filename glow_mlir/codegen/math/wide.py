"""Numbers with more digits than an f32: f64, or pairs of f32 on machines without f64."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math import pairs
from glow_mlir.codegen.math.pairs import Pair
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Parts = tuple[Value, ...]
"""A number as the floats whose sum it is, the largest first."""

Operation = Callable[[Builder, Parts, Parts], Parts]


@dataclass(frozen=True)
class Wide:
    """
    How such numbers are represented, in `parts` floats of type `element`, and computed.

    `of` converts a float, exactly; `rounded` converts back to a float.
    """

    element: Attribute
    parts: int
    of: Callable[[Builder, Value], Parts]
    rounded: Callable[[Builder, Parts, Attribute], Value]
    subtract: Operation
    multiply: Operation
    divide: Operation


def wide_numbers(target: Target, element: Attribute) -> Wide:
    """The numbers in which floats of a type are computed where digits cancel."""
    return IN_F64 if target.doubles or element == f64 else IN_PAIRS


IN_F64 = Wide(
    f64,
    1,
    of=lambda b, x: (b.cast(x, f64),),
    rounded=lambda b, x, element: b.cast(x[0], element),
    subtract=lambda b, x, y: (x[0] - y[0],),
    multiply=lambda b, x, y: (x[0] * y[0],),
    divide=lambda b, x, y: (x[0] / y[0],),
)

IN_PAIRS = Wide(
    f32,
    2,
    of=lambda b, x: (x, b.constant(0.0, x.type)),
    rounded=lambda b, x, element: b.cast(x[0], element),
    subtract=lambda b, x, y: pairs.add(Pair(*x), pairs.negated(Pair(*y))),
    multiply=lambda b, x, y: pairs.multiply(b, Pair(*x), Pair(*y)),
    divide=lambda b, x, y: pairs.divide(b, Pair(*x), Pair(*y)),
)

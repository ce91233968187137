"""Activation functions in the form in which JAX writes them, where that form takes special functions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation, SSAValue

SHAPES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")

CLOSE = 1e-6
"""The relative deviation of a constant of f32 from the number that it stands for."""


def gelu_operand(product: Operation) -> SSAValue | None:
    """
    The operand x of a product x / 2 · erfc(-x / √2), which is GELU; `None` for another product.

    `jax.nn.gelu` writes it so without its approximation.
    """
    for half, tail in _pairs(product):
        if isinstance(tail.owner, Operation) and tail.owner.name == "chlo.erfc":
            base, factor = _scaled(half)
            other, inner = _scaled(tail.owner.operands[0])
            if base is other and _is(factor, 0.5) and _is(inner, -math.sqrt(0.5)):
                return base
    return None


def _pairs(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The two operands in both orders."""
    one, other = op.operands
    yield one, other
    yield other, one


def _is(factor: float, wanted: float) -> bool:
    return math.isclose(factor, wanted, rel_tol=CLOSE)


def _scaled(value: SSAValue) -> tuple[SSAValue, float]:
    """What a value is a multiple of, and the factor."""
    factor = 1.0
    while isinstance(op := value.owner, Operation):
        if op.name == "stablehlo.negate":
            value, factor = op.operands[0], -factor
            continue
        found = _by_constant(op)
        if found is None:
            break
        value, factor = found[0], factor * found[1]
    return value, factor


def _by_constant(op: Operation) -> tuple[SSAValue, float] | None:
    """The operand that an operation multiplies by, or divides by, a constant, and the factor."""
    if op.name == "stablehlo.multiply":
        for value, constant in _pairs(op):
            number = _constant(constant)
            if number is not None:
                return value, number
    if op.name == "stablehlo.divide":
        number = _constant(op.operands[1])
        return None if not number else (op.operands[0], 1 / number)
    return None


def _constant(value: SSAValue) -> float | None:
    """The number that all elements of a value are, if it is a constant."""
    while isinstance(op := value.owner, Operation) and op.name in SHAPES:
        value = op.operands[0]
    if not isinstance(op, Operation) or op.name != "stablehlo.constant":
        return None
    found = op.properties.get("value")
    is_one = isinstance(found, DenseIntOrFPElementsAttr) and found.is_splat()
    return float(found.get_values()[0]) if is_one else None  # pyright: ignore

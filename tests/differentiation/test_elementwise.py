"""Gradients of elementwise operators are those of their bodies, whatever the operands and wherever they are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from gradients import check_gradients, differentiated, gradient_module
from xdsl.dialects.builtin import f64
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from glow_mlir.dialects.glow_high import activations, elementwise_binary, elementwise_math
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.shapes import tensor
from glow_mlir.interpreter.machine import run_function

RNG = np.random.default_rng(29)
X = RNG.standard_normal((3, 4))
W = RNG.standard_normal(4)

DOMAINS: dict[type[Elementwise], tuple[np.ndarray, ...]] = {
    elementwise_math.AcoshOp: (1.2 + abs(X),),
    elementwise_math.AcosOp: (np.tanh(X),),
    elementwise_math.AsinOp: (np.tanh(X),),
    elementwise_math.AtanhOp: (np.tanh(X),),
    elementwise_math.LogOp: (0.2 + abs(X),),
    elementwise_math.Log1pOp: (0.2 + abs(X),),
    elementwise_math.SqrtOp: (0.2 + abs(X),),
    elementwise_binary.PowOp: (0.3 + abs(X), W),
    elementwise_binary.DivOp: (X, 0.5 + abs(W)),
    elementwise_binary.ModOp: (X, 0.5 + abs(W)),
}
"""Operators that are not defined, or too steep for differences, for all operands."""

OTHERWISE = (elementwise_binary.WhereOp, elementwise_binary.ClipOp, elementwise_math.CastOp, elementwise_math.BitCastOp)
"""Operators that have tests of their own, or no derivatives."""


def of_floats() -> list[type[Elementwise]]:
    """The elementwise operators from floats to floats."""
    found: list[type[Elementwise]] = []
    for kind in operators():
        if not (issubclass(kind, Elementwise) and not kind.TRUTH) or kind in OTHERWISE:
            continue
        count = len(kind.get_irdl_definition().operands)
        value = create_ssa_value(tensor((3, 4), f64))
        with suppress(VerifyException):
            kind.make(*[value] * count)
            found.append(kind)
    return found


def operands_of(kind: type[Elementwise]) -> Sequence[np.ndarray]:
    """Operands for which an operator is smooth."""
    return DOMAINS.get(kind) or (X, W)[: len(kind.get_irdl_definition().operands)]


@pytest.mark.parametrize("kind", of_floats(), ids=lambda kind: kind.__name__)
def test_gradient_is_that_of_the_body(kind: type[Elementwise]) -> None:
    given = {f"x{place}": value for place, value in enumerate(operands_of(kind))}
    check_gradients(lambda emit, values: emit(kind, *values.values()), given)


def test_operators_of_floats_are_found() -> None:
    kinds = of_floats()
    assert {activations.ReluOp, elementwise_binary.AddOp, elementwise_math.ExpOp} <= {*kinds}


def test_choice_hands_on_to_what_is_chosen() -> None:
    condition = X > 0
    check_gradients(
        lambda emit, v: emit(elementwise_binary.WhereOp, v["c"], v["x"], v["w"]), {"c": condition, "x": X, "w": W}
    )


def test_limits_hand_on_to_what_decides() -> None:
    limits = {"x": X, "low": np.array(-0.5), "high": np.array(0.7)}
    check_gradients(lambda emit, v: emit(elementwise_binary.ClipOp, *v.values()), limits)


def gradient_of(kind: type[Elementwise], *operands: np.ndarray, **properties: Any) -> list[np.ndarray]:
    """The gradients that the interpreter computes."""
    given = {f"x{place}": value for place, value in enumerate(operands)}
    module = differentiated(gradient_module(lambda emit, v: emit(kind, *v.values(), **properties), given, list(given)))
    results = run_function(module, given)
    return [results[f"d{name}"] for name in given]


EDGES: dict[str, tuple[type[Elementwise], float, float]] = {
    "relu at 0": (activations.ReluOp, 0.0, 0.0),
    "leaky_relu at 0": (activations.LeakyReluOp, 0.0, 1.0),
    "abs at 0": (elementwise_math.AbsOp, 0.0, 0.0),
    "elu far above": (activations.EluOp, 1e4, 1.0),
    "selu far above": (activations.SeluOp, 1e4, 1.0507010221481323),
    "celu far above": (activations.CeluOp, 1e4, 1.0),
    "sigmoid far below": (activations.SigmoidOp, -1e4, 0.0),
    "swish far below": (activations.SwishOp, -1e4, 0.0),
    "softplus far below": (activations.SoftplusOp, -1e4, 0.0),
    "softplus at 0": (activations.SoftplusOp, 0.0, 0.5),
    "mish far below": (activations.MishOp, -1e4, 0.0),
    "gelu far below": (activations.GeluOp, -1e4, 0.0),
    "tanh far above": (activations.TanhOp, 1e4, 0.0),
}
"""Where a careless form gives another number, or none."""


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    kind, place, slope = EDGES[name]
    (found,) = gradient_of(kind, np.array([place]))
    np.testing.assert_allclose(found, [slope], rtol=1e-12, atol=1e-12)


def test_equal_operands_of_an_extreme_share() -> None:
    for kind in (elementwise_binary.MaxOp, elementwise_binary.MinOp):
        left, right = gradient_of(kind, np.array([1.0, 2.0]), np.array([1.0, 2.0]))
        np.testing.assert_array_equal(left, [0.5, 0.5])
        np.testing.assert_array_equal(right, [0.5, 0.5])


def test_powers_at_zero() -> None:
    base, exponent = gradient_of(elementwise_binary.PowOp, np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 0.0]))
    np.testing.assert_allclose(base, [0.0, 0.0, 0.0])
    np.testing.assert_allclose(exponent, [0.0, 0.0, np.log(2.0)])


def test_conversion_hands_on_in_the_type_of_its_operand() -> None:
    x = np.array([1.0, 2.0], np.float32)
    (found,) = gradient_of(elementwise_math.CastOp, x, to=f64)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1.0, 1.0])

"""Gradients through predicates: what nothing looks at has no influence, whatever it is."""

from __future__ import annotations

import numpy as np
from gradients import Emit, check_gradients, differentiated, gradient_module
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import WhereOp
from glow_mlir.dialects.glow_high.linear import MatMulOp, PredicatedMatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumSquareOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.interpreter.predicate import honoured_predicates

INPUTS = {
    "x": np.random.default_rng(0).uniform(-1, 1, (3, 2)),
    "w": np.random.default_rng(1).uniform(-1, 1, (2, 4)),
    "mask": np.array([True, False, True]),
}


def squares_of_rows(kind: type[HighOp], emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
    """The sum of the squares of the rows of a product that are looked at."""
    x, w, mask = (values[name] for name in ("x", "w", "mask"))
    shown = emit(kind, x, w, mask) if kind is PredicatedMatMulOp else emit(kind, emit(MatMulOp, x, w), mask)
    chosen = emit(WhereOp, emit(ReshapeOp, mask, shape=(3, 1)), shown, emit.splat(0, shown))
    return emit(ReduceSumSquareOp, chosen, axes=(0, 1), keepdims=False)


def test_predicates() -> None:
    check_gradients(lambda emit, values: squares_of_rows(PredicateOp, emit, values), INPUTS, rtol=1e-6)


def test_predicated_products() -> None:
    check_gradients(lambda emit, values: squares_of_rows(PredicatedMatMulOp, emit, values), INPUTS, rtol=1e-6)


def test_honoured_predicates_leave_gradients_as_they_are() -> None:
    module = gradient_module(lambda emit, values: squares_of_rows(PredicateOp, emit, values), INPUTS, ["x", "w"])
    ignored = run_function(differentiated(module), INPUTS)
    with honoured_predicates():
        found = run_function(module, INPUTS)
    for name, expected in ignored.items():
        np.testing.assert_array_equal(found[name], expected)

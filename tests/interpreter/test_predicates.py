"""Predicates honoured and ignored: what is looked at is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, module_of, sample
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.linear import PredicatedMatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, RnnOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.interpreter.predicate import honoured_predicates

MASK = np.array([True, False, True, False])


def honoured(module: ModuleOp, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs with predicates honoured."""
    with honoured_predicates():
        return run_function(module, inputs)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "?"])
def test_what_is_looked_at_is_the_same(dtype: str) -> None:
    value = sample((4, 3), "f4").astype(dtype)
    module, inputs = module_of(Case(PredicateOp, value, MASK))
    np.testing.assert_array_equal(run_function(module, inputs)["out0"], value)
    found = honoured(module, inputs)["out0"]
    np.testing.assert_array_equal(found[MASK], value[MASK])
    poison = np.full((2, 3), np.nan if dtype == "f4" else True if dtype == "?" else np.iinfo(dtype).max)
    np.testing.assert_array_equal(found[~MASK], poison)


def test_products() -> None:
    left, right, bias = sample((4, 5)), sample((5, 6)), sample((6,))
    module, inputs = module_of(Case(PredicatedMatMulOp, left, right, MASK, bias))
    ignored, found = run_function(module, inputs)["out0"], honoured(module, inputs)["out0"]
    np.testing.assert_allclose(ignored, left @ right + bias, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found[MASK], ignored[MASK])
    assert np.isnan(found[~MASK]).all()


@pytest.mark.parametrize("stage", ["lowered", "stacked"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kind", "gates"), [(LstmOp, 4), (GruOp, 3), (RnnOp, 1)])
def test_layers_look_at_no_step_behind_an_end(kind: type[HighOp], gates: int, direction: str, stage: str) -> None:
    directions, lengths = 1 + (direction == "bidirectional"), np.array([2, 5, 0, 3], np.int32)
    weights = [sample((directions, gates * 3, width), seed=width) for width in (6, 3)]
    options: dict[str, Any] = {"direction": direction}
    module, inputs = module_of(Case(kind, sample((5, 4, 6)), *weights, None, lengths, **options))
    compilation = Compilation(module, target="avx2")
    compilation.run(stage)
    assert "predicated_matmul" in str(compilation.module)
    ignored, found = run_function(compilation.module, inputs), honoured(compilation.module, inputs)
    for name, expected in ignored.items():
        np.testing.assert_array_equal(found[name], expected)

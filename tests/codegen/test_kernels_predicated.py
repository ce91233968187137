"""Products of which some rows are never looked at, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import examples
from execute import Case, assert_same, compile_module, module_of, runnable_targets, sample
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, lists

from glow_mlir.dialects.glow_high.linear import PredicatedMatMulOp
from glow_mlir.interpreter.machine import run_function


def check(
    left: np.ndarray, right: np.ndarray, mask: np.ndarray, *, constant: bool = False, target: str = "host"
) -> np.ndarray:
    """Compare the rows that are looked at; the whole result of machine code."""
    bias = sample(right.shape[-1:], left.dtype.str)
    constants = (1,) if constant else ()
    module, inputs = module_of(Case(PredicatedMatMulOp, left, right, mask, bias, constants=constants))
    expected = run_function(module.clone(), inputs)["out0"]
    found = compile_module(module, target).run(inputs)["out0"]
    assert_same({"rows": expected[mask]}, {"rows": found[mask]})
    return found


@pytest.mark.parametrize("constant", [False, True])
def test_tiles_without_a_row_are_left_out(constant: bool) -> None:
    """Behind the end of sequences nothing is written, but for less than a tile."""
    mask = np.arange(40) < np.array([[40], [7], [0]])
    found = check(sample((3, 40, 20)), sample((20, 35), seed=1), mask, constant=constant)
    left_out = found[2].tobytes()
    assert len(set(left_out)) == 1, "memory is as the caller gave it"
    assert set(found[1, 20:].tobytes()) == set(left_out)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str) -> None:
    mask = sample((30,)) > 0
    check(sample((30, 9)), sample((9, 21), seed=1), mask, target=target)


def test_wide_floats() -> None:
    check(sample((5, 7), "f8"), sample((7, 3), "f8", seed=1), np.array([True, False, False, True, False]))


@settings(max_examples=examples(12), deadline=None)
@given(mask=lists(booleans(), min_size=1, max_size=60), batch=integers(1, 3), columns=integers(1, 40))
def test_masks(mask: list[bool], batch: int, columns: int) -> None:
    rows = np.array([np.roll(mask, shift) for shift in range(batch)])
    check(sample((batch, len(mask), 6)), sample((6, columns), seed=1), rows)

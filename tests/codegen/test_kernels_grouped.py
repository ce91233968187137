"""Rows that are each multiplied by one of several matrices, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import Case, assert_same, compile_module, module_of, runnable_targets, sample
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, lists

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.dialects.glow_high.linear import GroupedMatMulOp
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.machine import run_function

EXPERTS = 5


def case(
    index: np.ndarray, depth: int = 9, columns: int = 40, dtype: str = "f4", turned: bool = False, constant: bool = True
) -> Case:
    """Rows with those indices, matrices that are constants or not, and biases."""
    matrix = (columns, depth) if turned else (depth, columns)
    arrays = sample((len(index), depth), dtype), sample((EXPERTS, *matrix), dtype, seed=1)
    bias = sample((EXPERTS, columns), dtype, seed=2) if dtype in ("f4", "f8") else None
    constants = (1, 3) if constant else ()
    return Case(GroupedMatMulOp, *arrays, index, bias, constants=constants, transpose_weights=turned)


def check(made: Case, target: str = "host", **options: Any) -> None:
    """Machine code against the interpreter, operator by operator."""
    module, inputs = module_of(made)
    expected = run_function(module.clone(), inputs)
    assert_same(expected, compile_module(module, target, **options).run(inputs))


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("constant", [False, True])
def test_targets(target: str, constant: bool) -> None:
    check(case(np.array([4, 0, 4, -1, 2, 2, 2, 0, 4]), constant=constant), target)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "i4"])
def test_elements(dtype: str, constant: bool) -> None:
    index = np.array([1, 1, 3, 0, 1], np.int32)
    check(case(index, 10, 37, dtype, turned=True, constant=constant))
    check(case(index, 10, 37, dtype, constant=constant))


@settings(max_examples=examples(15), deadline=None)
@given(
    index=lists(integers(-EXPERTS, EXPERTS - 1), max_size=60),
    depth=integers(1, 20),
    columns=integers(1, 70),
    turned=booleans(),
    constant=booleans(),
)
def test_rows(index: list[int], depth: int, columns: int, turned: bool, constant: bool) -> None:
    check(case(np.array(index, np.int64), depth, columns, turned=turned, constant=constant))


@pytest.mark.parametrize("wrong", [EXPERTS, -EXPERTS - 1])
@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_an_index_out_of_range_fails(backend: str, wrong: int) -> None:
    index = np.array([0, EXPERTS - 1, 1])
    module, inputs = module_of(case(index))
    session = InferenceSession(module, backend=backend, cache=False)
    (name,) = (name for name, array in inputs.items() if array is index)
    session.run(None, inputs)
    with pytest.raises(ExecutionError, match="an index is out of range"):
        session.run(None, {**inputs, name: np.array([0, wrong, 1])})

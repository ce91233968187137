"""
Node tests of ONNX's backend suite with some operands as constants, run through the importer and the interpreter.

The suite itself, with all operands as inputs, is in `onnx_suite`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import find_function, run_function
from glow_mlir.support.dtypes import is_float_dtype


@dataclass(frozen=True)
class NodeCase:
    """One case of the suite: a model and what it computes."""

    name: str
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator of each node."""
        return tuple(node.op_type for node in self.model.graph.node)


@cache
def node_cases() -> dict[str, NodeCase]:
    """Every case by name; the suite computes them on demand, which takes some seconds."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The suite divides by zero on purpose.
        cases = load_model_tests(kind="node")
    return {
        case.name: NodeCase(case.name, case.model, list(case.data_sets), case.rtol, case.atol)
        for case in cases
        if case.model is not None and case.data_sets
    }


def cases_of(operators: Collection[str]) -> list[str]:
    """Names of the cases that consist of one node with one of those operators, in the order of their names."""
    wanted = set(operators)
    return sorted(
        name for name, case in node_cases().items() if len(case.operators) == 1 and case.operators[0] in wanted
    )


def with_constants(model: onnx.ModelProto, values: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The model with those inputs turned into initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in values]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    copy.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
    return copy


def outputs_of(module: ModuleOp, results: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a run of the module's only function, in the order of the model's outputs."""
    return [results[name] for name in find_function(module).binding_names if name in results]


def import_case(
    case: NodeCase, inputs: Sequence[Any], constant_operands: Mapping[str, tuple[int, ...]]
) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """Import a case whose operands at `constant_operands` (operator → positions) are constants; the other inputs."""
    given = {value.name: as_array(item) for value, item in zip(case.model.graph.input, inputs, strict=True)}
    fixed: dict[str, np.ndarray] = {}
    for node in case.model.graph.node:
        for position in constant_operands.get(node.op_type, ()):
            if position < len(node.input) and node.input[position] in given:
                fixed[node.input[position]] = given.pop(node.input[position])
    return import_model(with_constants(case.model, fixed)), given


def as_array(item: Any) -> np.ndarray:
    """A value of the suite, some of which are protos, as an array."""
    return numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else np.asarray(item)


def assert_close(actual: np.ndarray, expected: Any, rtol: float, atol: float) -> None:
    """Compare type, shape and values; integers and truth values exactly."""
    wanted = as_array(expected)
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    if is_float_dtype(wanted.dtype):
        # numpy tells no NaN of bfloat16 from a number.
        np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(actual, wanted)


def check_case(name: str, constant_operands: Mapping[str, tuple[int, ...]]) -> None:
    """Run a case, with the operands at `constant_operands` as constants, and compare its outputs."""
    case = node_cases()[name]
    for inputs, expected in case.data_sets:
        module, remaining = import_case(case, inputs, constant_operands)
        module.verify()
        results = outputs_of(module, run_function(module, remaining))
        assert len(results) == len(expected)
        for actual, wanted in zip(results, expected, strict=True):
            assert_close(actual, wanted, case.rtol, case.atol)

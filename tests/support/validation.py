"""Translation validation: a pass keeps what a module computes, its validity and its locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.storage import FunctionOp, StorageOp
from glow_mlir.dialects.glow_low.memory import WeightOp
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.entries import entries_of
from glow_mlir.ir.text import module_text, parse_module, verify_module

DECLARATIONS = (ModuleOp, FunctionOp, StorageOp, WeightOp)
"""Ops that compute nothing, and may have no location."""

Results = dict[str, dict[str, np.ndarray]]


def run_all(module: ModuleOp, inputs: Mapping[str, np.ndarray]) -> Results:
    """What each entry of the module writes, by function and binding."""
    names = [function.sym_name.data for function in entries_of(module)]
    return {name: run_function(module, inputs, name) for name in names}


def assert_same_results(actual: Results, expected: Results, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Compare the results of two runs; without tolerances bit for bit, but for the sign and payload of NaN."""
    assert actual.keys() == expected.keys()
    for function, arrays in expected.items():
        assert actual[function].keys() == arrays.keys()
        for name, wanted in arrays.items():
            found = actual[function][name]
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True, err_msg=name)


def without_location(module: ModuleOp) -> list[Operation]:
    """The ops, other than declarations, whose location is unknown."""
    return [op for op in module.walk() if not isinstance(op, DECLARATIONS) and isinstance(op.location, UnknownLoc)]


def validate(
    module: ModuleOp,
    passes: str | Sequence[ModulePass],
    inputs: Mapping[str, np.ndarray],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    context: Context | None = None,
) -> None:
    """
    Run passes on a module, and check after each that it is valid, computes the same, and keeps its locations.

    Tolerances are relative to what the module computed before all passes.
    """
    context = context or new_context()
    expected = run_all(module, inputs)
    had_locations = not without_location(module)
    for item in parse_pipeline(passes).passes if isinstance(passes, str) else passes:
        before = module.clone()
        try:
            item.apply(context, module)
            if not module.is_structurally_equivalent(before):  # Else it is as valid, and means the same.
                verify_module(module)
                assert_same_results(run_all(module, inputs), expected, rtol, atol)
            if had_locations:
                assert not without_location(module), f"locations are lost: {without_location(module)[0]}"
        except Exception as error:
            error.add_note(f"pass {item} on\n{module_text(before)}gives\n{module_text(module, generic=True)}")
            raise


def assert_text_round_trips(module: ModuleOp, context: Context | None = None) -> None:
    """What is printed, with locations or generic, parses to a module that prints the same."""
    text = module_text(module, locations=True)
    assert module_text(parse_module(text, context or new_context()), locations=True) == text
    generic = module_text(module, locations=True, generic=True)
    assert module_text(parse_module(generic, context or new_context()), locations=True, generic=True) == generic

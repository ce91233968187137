"""Random programs of branches and loops mean the same at every stage, in the interpreter and as machine code."""

from __future__ import annotations

import numpy as np
import pytest
from breadth import examples
from execute import compile_module
from random_regions import region_inputs, region_program
from validation import assert_same_results, assert_text_round_trips, run_all, validate

from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.interpreter.machine import run_function

STAGES = ("optimized", "lowered", "scheduled", "instructions", "stacked", "selected", "allocated")

TOLERANCE = 2e-5
"""Elements are below one; some passes sum in another order."""


@pytest.mark.parametrize("seed", range(examples(12)))
def test_stages_and_machine_code_mean_the_same(seed: int) -> None:
    module = region_program(seed)
    inputs = region_inputs(seed)
    expected = [run_all(module, given) for given in inputs]
    disable = () if seed % 3 == 0 else ("unroll-loops",)  # What is unrolled is no loop in the stages behind.
    compilation = Compilation(module.clone(), runner=PassRunner(verify_each=True), disable=disable)
    for stage in STAGES:
        compilation.run(until=stage)
        assert_text_round_trips(compilation.module)
        for given, wanted in zip(inputs, expected, strict=True):
            assert_same_results(run_all(compilation.module, given), wanted, atol=TOLERANCE)
    program = compile_module(compilation.module)
    for given, wanted in zip(inputs, expected, strict=True):
        assert_same_results({"main": program.run(given)}, wanted, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(100, 104))
def test_every_pass_keeps_the_meaning(seed: int) -> None:
    module = region_program(seed)
    passes = get_backend("cpu").pipeline().until("allocated").passes()
    validate(module, passes, region_inputs(seed)[0], atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(200, 203))
def test_parts_of_several_threads_run_in_regions(seed: int) -> None:
    module = region_program(seed)
    program = compile_module(module.clone(), threads=2)
    for given in region_inputs(seed):
        wanted = run_function(module, given)
        for name, found in program.run(given).items():
            np.testing.assert_allclose(found, wanted[name], atol=TOLERANCE)

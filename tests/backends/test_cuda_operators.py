"""Every operator on the CUDA backend: emulated as the interpreter has it, and as PTX that ptxas takes."""

from __future__ import annotations

from pathlib import Path

import ptx
import pytest
from execute import assert_same
from operator_case import OperatorCase
from operator_cases import CASES

from glow_mlir.backends.cuda.targets import GENERATIONS
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import UnsupportedError
from glow_mlir.interpreter.machine import run_function

EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@EACH
def test_emulated(case: OperatorCase) -> None:
    module, inputs = case.module(sized=False), case.inputs()
    expected = run_function(module.clone(), inputs)
    artifact = Compilation(module, backend="cuda", target="emulated-sm_80").artifact()
    entry = get_backend("cuda").load(artifact, 1).entry()
    for _ in range(2):  # Blocks run in the other order.
        assert_same(expected, entry.run(inputs), case.tolerance)


@pytest.mark.extra
@pytest.mark.long
@pytest.mark.parametrize("generation", GENERATIONS)
@EACH
def test_assembled(case: OperatorCase, generation: str, tmp_path: Path) -> None:
    ptx.ptxas()
    artifact = Compilation(case.module(sized=False), backend="cuda", target=generation).artifact()
    for kernel in ptx.assembled(artifact.code[0].decode(), generation, tmp_path):
        assert kernel.spilled == 0
        assert kernel.occupancy(generation) >= 0.25


def test_sizes_that_are_known_at_run_time_only_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"relu"):
        Compilation(CASES["relu"].module(sized=True), backend="cuda", target="emulated-sm_80").artifact()

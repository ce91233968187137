"""Each kernel of the CPU backend has each ability, itself or by tiles, or there is a reason why not."""

from __future__ import annotations

import pytest
from abilities import COUNT, Cell, alone, cell, kernels, laid_out
from cut import check_parts
from execute import Program, assert_same, compile_module, runnable_targets
from kernel_cases import ABILITIES, BATCH, CASES, LARGEST, REFUSED, SIZES, THREADS

from glow_mlir.interpreter.machine import run_function

TARGET = "avx2" if "avx2" in runnable_targets() else "host"
CELLS = [(kernel, ability) for kernel in CASES for ability in ABILITIES]


def test_there_is_a_case_of_each_kernel() -> None:
    assert set(CASES) == set(kernels())
    assert set(REFUSED) <= set(CASES)


@pytest.mark.parametrize(("kernel", "ability"), CELLS)
def test_cell(kernel: str, ability: str) -> None:
    found = cell(kernel, ability, TARGET)
    if found.reason:
        assert not found.how, f"'{kernel}' has {ability} {found.how}: take the reason out of REFUSED"
        return
    assert found.how, found.refused
    with alone(kernel, TARGET):
        if ability == THREADS:
            check_threads(found)
        else:
            check_sizes(found, (1, BATCH, LARGEST) if ability == SIZES else (BATCH,))


def check_threads(found: Cell) -> None:
    """Fail where results depend on threads."""
    assert found.module is not None
    inputs = found.inputs()
    if found.is_sized:
        inputs = laid_out(inputs, shapes_of(compile_module(found.module.clone(), TARGET)), BATCH)
    assert check_parts(found.module, inputs, (COUNT,), TARGET) > 0


def check_sizes(found: Cell, batches: tuple[int, ...]) -> None:
    """Fail where machine code and interpreter differ for one of these batches."""
    assert found.module is not None
    program = compile_module(found.module.clone(), TARGET)
    for batch in batches:
        inputs = found.inputs(batch)
        expected = run_function(found.module, inputs)
        given = laid_out(inputs, shapes_of(program), batch) if found.is_sized else inputs
        results = program.run(given)
        parts = {name: results[name][(..., *map(slice, wanted.shape))] for name, wanted in expected.items()}
        assert_same(expected, parts, found.case.tolerance)


def shapes_of(program: Program) -> dict[str, tuple[int, ...]]:
    """The shapes that inputs and outputs are laid out for, by name."""
    return {name: shape for name, shape, _, _ in program.bindings}

"""Each kernel of the CPU backend has each ability, itself or by tiles, or there is a reason why not."""

from __future__ import annotations

from unittest import mock

import pytest
from abilities import COUNT, Cell, alone, cell, kernels, laid_out, reason, shapes_of
from cut import by_hand, check_parts, however_small, in_runs
from execute import assert_same, compile_module, runnable_targets
from kernel_cases import ABILITIES, CASES, REFUSED, SIZES, THREADS
from operator_case import BATCH, LARGEST

from glow_mlir.codegen.kernels import tiled
from glow_mlir.interpreter.machine import run_function

TARGET = "avx2" if "avx2" in runnable_targets() else "host"
CELLS = [(kernel, ability) for kernel in CASES for ability in ABILITIES]


def test_there_is_a_case_of_each_kernel() -> None:
    assert set(CASES) == set(kernels())
    assert set(REFUSED) <= set(CASES)


@pytest.mark.long
@pytest.mark.parametrize(("kernel", "ability"), CELLS)
@mock.patch.object(tiled, "MIN_TILES", 2)
def test_one_ability(kernel: str, ability: str) -> None:
    """With few tiles, of several indices, and of one where a batch has some left over."""
    found = cell(kernel, (ability,), TARGET)
    if reason(kernel, ability):
        assert not found.how, f"'{kernel}' has {ability} {found.how}: take the reason out of REFUSED"
        return
    assert found.how, found.refused
    with alone(kernel, TARGET):
        if ability == THREADS:
            check_threads(found)
        else:
            check_results(found)


@pytest.mark.parametrize("kernel", CASES)
def test_all_at_once(kernel: str) -> None:
    """
    Bodies, a batch that is known at run time only and threads, as far as the kernel has them; with many tiles.

    What is one tile with its bodies has no parts for threads.
    """
    abilities = [ability for ability in ABILITIES if not reason(kernel, ability)]
    found = cell(kernel, abilities, TARGET)
    if not found.how and THREADS in abilities:
        found = cell(kernel, [ability for ability in abilities if ability != THREADS], TARGET)
    assert found.how, found.refused
    with alone(kernel, TARGET):
        check_results(found)


@pytest.mark.parametrize("kernel", [name for name in CASES if not {SIZES, THREADS} & set(REFUSED.get(name, ()))])
def test_threads_of_a_batch_that_is_known_at_run_time_only(kernel: str) -> None:
    found = cell(kernel, (SIZES, THREADS), TARGET)
    assert found.how, found.refused
    with alone(kernel, TARGET):
        check_results(found)


def check_threads(found: Cell) -> None:
    """Fail where results depend on threads."""
    module, inputs = found.case.module(found.is_sized), found.inputs()
    if found.is_sized:
        inputs = laid_out(inputs, shapes_of(compile_module(module.clone(), TARGET)), BATCH)
    assert check_parts(module, inputs, (COUNT,), TARGET) > 0


def check_results(found: Cell) -> None:
    """Fail where machine code and interpreter differ, for one batch or, where it is known at run time only, several."""
    assert found.module is not None
    with however_small():
        program = compile_module(found.module.clone(), TARGET, found.threads, verify_each=False)
    for batch in (1, BATCH, LARGEST) if SIZES in found.abilities else (BATCH,):
        inputs = found.inputs(batch)
        expected = run_function(found.module, inputs)
        given = laid_out(inputs, shapes_of(program), batch) if found.is_sized else inputs
        results, ran = by_hand(program, found.threads, given, in_runs)
        assert (ran > 0) == (THREADS in found.abilities)
        parts = {name: results[name][(..., *map(slice, wanted.shape))] for name, wanted in expected.items()}
        assert_same(expected, parts, found.case.tolerance)

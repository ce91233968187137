"""Programs that compute values again: what runs is in order, and takes less memory; nothing where that is enough."""

from __future__ import annotations

import pytest
from breadth import examples
from random_programs import random_program

from glow_mlir.analysis.least_memory import is_order
from glow_mlir.analysis.program import Program, ScheduledStep, peak
from glow_mlir.analysis.rematerialization import Chain, Copy, early_order, program_of_copies, rematerialized

GRAPHS = examples(100)


def network(layers: int, size: int = 100, parameters: int = 1) -> Program:
    """A chain there and back: each way back reads what its layer read and gave; a gradient that is used at the end."""
    steps = [ScheduledStep((), (0,), ())]
    steps += [ScheduledStep((layer,), (layer + 1,), (layer,)) for layer in range(layers)]
    sizes = [size] * (layers + 1)
    arriving, gradients = layers, list[int]()
    for layer in reversed(range(layers)):
        reads = (arriving, layer, layer + 1) if arriving != layers else (layer, layer + 1)
        for kind, made in enumerate((size, parameters)):
            steps.append(ScheduledStep(reads, (len(sizes),), reads))
            sizes.append(made)
            if kind:
                gradients.append(len(steps) - 1)
        arriving = len(steps) - 2
    steps += [ScheduledStep((gradient,), (), (gradient,)) for gradient in gradients]
    return Program(steps, sizes)


def chain_of(program: Program) -> Chain:
    """Steps that all take as long, and may all run again."""
    return Chain(program, [1.0] * len(program.steps), [True] * len(program.steps))


def check(program: Program, copies: list[Copy]) -> None:
    """Each step runs once for good, behind what it reads, which is a run of the steps that it waits for."""
    assert sorted(copy.step for copy in copies if not copy.run) == list(range(len(program.steps)))
    for place, copy in enumerate(copies):
        assert set(copy.reads) == set(program.steps[copy.step].before)
        for before, at in copy.reads.items():
            assert at < place
            assert copies[at].step == before


@pytest.mark.parametrize("layers", [2, 5, 20, 100])
@pytest.mark.parametrize("percent", [80, 50, 30])
def test_a_network_fits_into_less(layers: int, percent: int) -> None:
    program = network(layers)
    before = peak(program, range(len(program.steps)))
    copies, found = rematerialized(chain_of(program), before * percent // 100)
    check(program, copies)
    after = peak(program_of_copies(program, copies), range(len(copies)))
    assert found == after
    least = 500 + 300 * layers**0.5  # What a way back reads, and a square root of the layers.
    assert after <= max(before * percent // 100, least)
    assert sum(copy.run > 0 for copy in copies) <= 4 * layers


def test_nothing_runs_again_where_memory_is_enough() -> None:
    program = network(20)
    copies, _ = rematerialized(chain_of(program), peak(program, range(len(program.steps))))
    assert [copy.step for copy in copies] == list(range(len(program.steps)))


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_any_graph(seed: int) -> None:
    program = random_program(seed, 40, sharing=seed % 2 == 1)
    before = peak(program, range(len(program.steps)))
    copies, _ = rematerialized(chain_of(program), before // 2)
    check(program, copies)
    assert peak(program_of_copies(program, copies), range(len(copies))) <= before


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_early_orders_are_orders(seed: int) -> None:
    program = random_program(seed, 40, sharing=seed % 2 == 1)
    given = [not step.before and number % 3 == 0 for number, step in enumerate(program.steps)]
    order = early_order(program, given)
    assert sorted(order) == list(range(len(program.steps)))
    assert is_order(program, order)


def test_gradients_make_room_when_they_are_there() -> None:
    program = network(20, parameters=300)
    order = early_order(program, [number == 0 for number in range(len(program.steps))])
    assert peak(program, order) < 0.6 * peak(program, range(len(program.steps)))

"""The assignments that are found, against all that there are."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import inf

import pytest

from glow_mlir.partitioning import latency
from glow_mlir.partitioning.latency import least_latency
from glow_mlir.partitioning.problem import HOST, Problem, Value
from glow_mlir.partitioning.stages import balanced_stages


def drawn(seed: int, devices: int, nodes: int) -> Problem:
    """A random problem: some nodes are not for all devices, and links have different speeds."""
    random_ = random.Random(seed)
    times = [
        tuple(inf if device and random_.random() < 0.15 else random_.uniform(0.1, 5) for device in range(devices))
        for _ in range(nodes)
    ]
    values = [
        Value(
            producer,
            tuple(sorted({random_.randrange(producer + 1, nodes) for _ in range(random_.randint(1, 3))})),
            random_.randint(1, 100),
        )
        for producer in range(HOST, nodes - 1)
    ]
    values.append(Value(nodes - 1, (HOST,), random_.randint(1, 100)))
    link = {pair: random_.uniform(0.001, 0.05) for pair in product((HOST, *range(devices)), repeat=2)}
    constants = tuple(((f"weight{random_.randrange(nodes)}", 50),) for _ in range(nodes))
    return Problem(
        tuple(times), tuple(values), lambda source, target, size: link[source, target] * size, constants=constants
    )


def least(problem: Problem) -> float:
    """The least latency of all assignments that fit."""
    every = product(problem.devices, repeat=len(problem.seconds))
    return min((problem.latency(assignment) for assignment in every if problem.fits(assignment)), default=inf)


@pytest.mark.parametrize("seed", range(40))
def test_cut_between_two_devices_is_the_best(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "MAX_SEARCHED", 0)
    problem = drawn(seed, 2, 9)
    found = least_latency(problem)
    assert found is not None
    assert problem.latency(found) == pytest.approx(least(problem), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_small_problems_are_searched_to_the_end(seed: int) -> None:
    problem = drawn(seed, 3, 7)
    limited = replace(problem, memory=(0, 400, 400), together=((1, 4),))
    for item in (problem, limited):
        found = least_latency(item)
        assert found is not None
        assert item.fits(found)
        assert item.latency(found) == pytest.approx(least(item), rel=1e-9)


@pytest.mark.parametrize(("memory", "expected"), [(0, 0), (10**9, 0), (1, None)])
def test_many_nodes_on_one_device(memory: int, expected: int | None) -> None:
    problem = replace(drawn(1, 1, 3000), memory=(memory,))
    assert least_latency(problem) == (None if expected is None else (expected,) * 3000)


def test_swaps_between_four_devices_are_close_to_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [drawn(seed, 4, 6) for seed in range(15)]
    wanted = [least(problem) for problem in problems]
    monkeypatch.setattr(latency, "MAX_SEARCHED", 0)
    found = [least_latency(problem) for problem in problems]
    ratios = [problem.latency(item or ()) / best for problem, item, best in zip(problems, found, wanted, strict=True)]
    assert max(ratios) < 1.05
    assert sorted(ratios)[len(ratios) // 2] == pytest.approx(1)


@pytest.mark.parametrize("seed", range(10))
def test_memory_is_kept_to_where_not_all_is_searched(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(drawn(seed, 2, 10), memory=(0, 450))
    best = least(problem)
    monkeypatch.setattr(latency, "MAX_SEARCHED", 0)
    found = least_latency(problem)
    assert found is not None
    assert problem.fits(found)
    assert problem.latency(found) <= 1.25 * best


def test_node_that_no_device_executes_has_no_assignment() -> None:
    problem = drawn(0, 2, 3)
    assert least_latency(replace(problem, seconds=((inf, inf), *problem.seconds[1:]))) is None


def slowest(problem: Problem, assignment: tuple[int, ...]) -> float:
    """The slowest stage of a pipeline; infinity where values would go back."""
    stages = [0.0] * len(problem.devices)
    for times, device in zip(problem.seconds, assignment, strict=True):
        stages[device] += times[device]
    for value in problem.values:
        for reader in value.readers:
            if HOST not in (value.producer, reader) and assignment[reader] < assignment[value.producer]:
                return inf
    for device in problem.devices:
        started = any(assigned < device for assigned in assignment)
        if started and device in assignment:
            stages[device] += problem.transfer_seconds(
                device - 1,
                device,
                sum(
                    value.nbytes
                    for value in problem.values
                    if value.producer != HOST
                    and assignment[value.producer] < device
                    and any(reader != HOST and assignment[reader] >= device for reader in value.readers)
                ),
            )
    return max(stages)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("devices", [2, 3])
def test_stages_are_the_most_balanced(seed: int, devices: int) -> None:
    problem = drawn(seed, devices, 8 if devices == 2 else 6)
    every = product(problem.devices, repeat=len(problem.seconds))
    best = min(slowest(problem, assignment) for assignment in every)
    found = balanced_stages(problem)
    if found is None:
        assert best == inf
        return
    assignment, seconds = found
    assert seconds == pytest.approx(best)
    assert slowest(problem, assignment) == pytest.approx(best)


def test_long_chains_are_balanced() -> None:
    problem = Problem(
        tuple((1 + number % 3,) * 4 for number in range(600)),
        tuple(Value(number, (number + 1,), 1) for number in range(599)),
        lambda source, target, size: 0.0,
    )
    found = balanced_stages(problem)
    assert found is not None
    assert found[1] <= 1.01 * sum(times[0] for times in problem.seconds) / 4


def test_stages_keep_to_memory() -> None:
    problem = Problem(
        ((1.0, 1.0),) * 8,
        tuple(Value(number, (number + 1,), 1) for number in range(7)),
        lambda source, target, size: 0.0,
        constants=tuple(((f"weight{number % 7}", 10),) for number in range(8)),
        memory=(25, 0),
    )
    found = balanced_stages(problem)
    assert found == ((0, 0, *(1,) * 6), 6.0)
    assert balanced_stages(replace(problem, memory=(25, 25))) is None


def test_stage_that_gains_nothing_is_left_out() -> None:
    problem = Problem(((1.0, 1.0),), (Value(HOST, (0,), 4), Value(0, (HOST,), 4)), lambda source, target, size: 0.0)
    assert balanced_stages(problem) == ((0,), 1.0)


def test_memory_of_long_chains_is_kept_to_with_few_looks_at_values() -> None:
    count, looks = 400, 0

    def transfer_seconds(source: int, target: int, size: int) -> float:
        nonlocal looks
        looks += 1
        return 0.5

    problem = Problem(
        ((1.0, 2.0),) * count,
        tuple(Value(number, (number + 1,), 1) for number in range(count - 1)),
        transfer_seconds,
        constants=tuple(((f"weight{number}", 10),) for number in range(count)),
        memory=(1_500, 0),
    )
    found = least_latency(problem)
    assert found is not None
    assert problem.fits(found)
    assert sum(not device for device in found) >= 140
    assert looks < 150 * count

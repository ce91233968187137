"""Orders of random graphs of steps: as good as exhaustive search, and never worse than Glow's."""

from __future__ import annotations

import time

import pytest
from breadth import examples
from random_programs import random_program

from glow_mlir.analysis.least_memory import least_memory_order
from glow_mlir.analysis.program import Order, Program, ScheduledStep, child_size_order, peak, topological_order

GRAPHS = examples(200)
SMALL = 12
LARGE = 50


def exhaustive_peak(program: Program) -> int:
    """The lowest peak of all orders, by way of all sets of steps that can be done."""
    needs = [sum(1 << earlier for earlier in set(step.before)) for step in program.steps]
    users = [0] * len(program.sizes)
    writers = [0] * len(program.sizes)
    for number, step in enumerate(program.steps):
        for buffer in {*step.writes, *step.reads}:
            users[buffer] |= 1 << number
        for buffer in step.writes:
            writers[buffer] |= 1 << number

    def live(done: int) -> set[int]:
        return {b for b in range(len(users)) if writers[b] & done and users[b] & ~done}

    level = {0: 0}
    for _ in program.steps:
        following: dict[int, int] = {}
        for done, highest in level.items():
            before = live(done)
            for number, step in enumerate(program.steps):
                if done >> number & 1 or needs[number] & ~done:
                    continue
                new = done | 1 << number
                during = sum(program.sizes[b] for b in before | set(step.writes))
                during -= saving(program, step, set(step.writes) - before, (before & set(step.reads)) - live(new))
                following[new] = min(following.get(new, 1 << 60), max(highest, during))
        level = following
    return min(level.values())


def saving(program: Program, step: ScheduledStep, fresh: set[int], dying: set[int]) -> int:
    """The bytes that a step with one result saves in place."""
    fits = [w for w, r in step.shares if w in fresh and r in dying and program.sizes[w] <= program.sizes[r]]
    return program.sizes[fits[0]] if fits else 0


def check_order(program: Program, order: Order) -> None:
    place = {number: position for position, number in enumerate(order)}
    assert sorted(order) == list(range(len(program.steps)))
    assert all(place[e] < place[n] for n, step in enumerate(program.steps) for e in step.before)


@pytest.mark.parametrize("sharing", [False, True])
def test_small_graphs_reach_the_exhaustive_peak(sharing: bool) -> None:
    found: list[int] = []
    wanted: list[int] = []
    glow: list[int] = []
    for seed in range(GRAPHS):
        program = random_program(seed, 4 + seed % (SMALL - 3), sharing)
        order = least_memory_order(program)
        check_order(program, order)
        found.append(peak(program, order))
        wanted.append(exhaustive_peak(program))
        glow.append(peak(program, child_size_order(program)))
    equal = sum(a == b for a, b in zip(found, wanted, strict=True))
    optimal = sum(a == b for a, b in zip(glow, wanted, strict=True))
    print(f"\n{equal} of {GRAPHS} graphs of up to {SMALL} steps have the lowest peak; {optimal} in Glow's order")
    assert equal == GRAPHS


@pytest.mark.parametrize(("sharing", "graphs"), [(False, GRAPHS), (True, GRAPHS // 8)])
def test_large_graphs_are_never_worse_than_glows_order(sharing: bool, graphs: int) -> None:
    better = 0
    ratio = 0.0
    for seed in range(graphs):
        program = random_program(1000 + seed, LARGE, sharing)
        order = least_memory_order(program)
        check_order(program, order)
        mine, glow = peak(program, order), peak(program, child_size_order(program))
        assert mine <= min(glow, peak(program, topological_order(program)), peak(program, range(LARGE)))
        better += mine < glow
        ratio += mine / glow / graphs
    print(
        f"\n{better} of {graphs} graphs of {LARGE} steps have a lower peak than in Glow's order, {ratio:.3f} on average"
    )
    assert better > 0.5 * graphs


def test_chains_and_wide_graphs_are_ordered_in_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains need no search at all; elsewhere the number of transitions is bounded."""
    from glow_mlir.analysis import least_memory
    from glow_mlir.analysis.order_search import Segment

    searched: list[int] = []
    original = Segment.cost

    def counted(self: Segment, position: int, done: int) -> tuple[int, int]:
        searched.append(position)
        return original(self, position, done)

    monkeypatch.setattr(Segment, "cost", counted)
    count = 2000
    chain = Program(
        [ScheduledStep((n - 1,) if n else (), (n,), (n - 1,) if n else ()) for n in range(count)], [8] * count
    )
    start = time.perf_counter()
    assert peak(chain, least_memory_order(chain)) == 16
    print(f"\n{len(searched)} transitions and {time.perf_counter() - start:.3f} s for a chain of {count} steps")
    assert len(searched) <= 3 * count
    searched.clear()
    ends = tuple(range(count))
    wide = Program([*(ScheduledStep((), (n,)) for n in ends), ScheduledStep(ends, (count,), ends)], [8] * (count + 1))
    assert peak(wide, least_memory_order(wide)) == 8 * (count + 1)
    assert len(searched) <= 2 * least_memory.WORK


def test_preferences_that_contradict_each_other_are_left_out() -> None:
    steps = [ScheduledStep(writes=(0,)), ScheduledStep(writes=(1,))]
    program = Program(steps, [1, 1], preferences=[(0, 1), (1, 0)])
    assert sorted(least_memory_order(program)) == [0, 1]


def test_no_steps_have_an_order() -> None:
    assert least_memory_order(Program([], [])) == []

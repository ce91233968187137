"""Capacities of loops: which calls grow them, and what ends that."""

from __future__ import annotations

from typing import Any, cast

import pytest

from glow_mlir.errors import OUT_OF_CAPACITY, ExecutionError, OutOfMemoryError, failed_call
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.loop_capacities import FIRST, GROWTH, MAXIMUM, LoopCapacities

SMALL, LARGE = Assumptions((("N", 1),)), Assumptions((("N", 1000),))


class FakeExecutable:
    """Code whose activations take so many bytes."""

    def __init__(self, activation_bytes: int) -> None:
        self.activation_bytes = activation_bytes

    def entry(self) -> Any:
        return self

    bindings = ()


def executable(activation_bytes: int) -> Executable:
    return cast("Executable", FakeExecutable(activation_bytes))


def full(label: str) -> ExecutionError:
    """The error of a call with too many trips of a loop."""
    return failed_call(f"{OUT_OF_CAPACITY} '{label}'", "my_loop")


def grown(capacities: LoopCapacities, others: Assumptions, label: str, taken: int = 0) -> Assumptions:
    """The assumptions after a call has grown a loop, for which there is code that takes so many bytes."""
    capacities.grow(label, full(label), capacities.with_capacities(others))
    wanted = capacities.with_capacities(others)
    capacities.accept(wanted, executable(taken))
    return wanted


@pytest.fixture
def two() -> LoopCapacities:
    """The capacities of two loops, which may take 1000 bytes."""
    made = LoopCapacities(1000)
    made.add(["a", "b"])
    return made


def trips(capacities: LoopCapacities, others: Assumptions) -> dict[str, int]:
    """The capacities under assumptions."""
    sizes = dict(capacities.with_capacities(others).sizes)
    return {label: size[1] or 0 for label, size in sizes.items() if isinstance(size, tuple)}


def test_the_loop_that_needs_it_grows_alone(two: LoopCapacities) -> None:
    assert two.failed_loop(full("b")) == "b"
    assert two.failed_loop(full("c")) is two.failed_loop(ExecutionError("b")) is None
    grown(two, SMALL, "b")
    assert trips(two, SMALL) == {"a": FIRST, "b": FIRST * GROWTH}


def test_two_calls_grow_a_loop_once(two: LoopCapacities) -> None:
    wanted = two.with_capacities(SMALL)
    for _ in range(2):
        two.grow("a", full("a"), wanted)
    assert trips(two, SMALL) == {"a": FIRST * GROWTH, "b": FIRST}
    assert not two.hold(wanted)


def test_the_first_capacities_count_for_nothing_and_the_others_together(two: LoopCapacities) -> None:
    assert two.accept(two.with_capacities(SMALL), executable(10**6))
    grown(two, SMALL, "a", 10**6 + 600)
    assert trips(two, SMALL)["a"] == FIRST * GROWTH
    grown(two, SMALL, "b", 10**6 + 1200)
    assert trips(two, SMALL) == {"a": FIRST * GROWTH, "b": FIRST}
    words = f"{OUT_OF_CAPACITY} 'b': {FIRST} trips; memory for more takes 1200 bytes"
    with pytest.raises(ExecutionError, match=words) as found:
        grown(two, SMALL, "b")
    assert (found.value.node, found.value.hint.startswith("it may never end")) == ("my_loop", True)


def test_other_sizes_begin_with_what_fits(two: LoopCapacities) -> None:
    grown(two, SMALL, "a", 500)
    assert trips(two, LARGE) == trips(two, SMALL)
    assert not two.accept(two.with_capacities(LARGE), executable(10**6))
    assert trips(two, LARGE) == {"a": FIRST, "b": FIRST}
    assert two.accept(two.with_capacities(LARGE), executable(10**6))
    assert trips(two, SMALL)["a"] == FIRST * GROWTH


@pytest.mark.parametrize(("base", "needed"), [(900, 200), (700, 300)])
def test_sizes_of_before_refuse_nothing(two: LoopCapacities, base: int, needed: int) -> None:
    """Only the bytes above the first capacities count, whatever capacity the sizes began with; each trip takes one."""
    for others, own in ((SMALL, 100), (LARGE, base)):
        for _ in range(9):
            wanted = two.with_capacities(others)
            present = trips(two, others)["a"]
            if two.accept(wanted, executable(own + present)):
                if present >= needed:
                    break
                two.grow("a", full("a"), wanted)
        assert trips(two, others)["a"] >= needed


def test_memory_that_runs_out_takes_capacities_back(two: LoopCapacities) -> None:
    error = OutOfMemoryError("there is too little memory for output 'y'")
    assert not two.shrink(two.with_capacities(SMALL), error)
    grown(two, SMALL, "a")
    wanted = grown(two, SMALL, "a")
    assert two.shrink(wanted, error)
    assert two.shrink(wanted, error)  # By another call, meanwhile.
    assert trips(two, SMALL)["a"] == FIRST
    grown(two, SMALL, "a")
    with pytest.raises(ExecutionError, match=f"{FIRST * GROWTH} trips; there is too little memory"):
        grown(two, SMALL, "a")


def test_a_loop_that_never_ends_has_the_largest_capacity(two: LoopCapacities) -> None:
    while trips(two, SMALL)["a"] < MAXIMUM:
        grown(two, SMALL, "a")
    with pytest.raises(ExecutionError, match=f"{MAXIMUM} trips; the largest capacity is {MAXIMUM}"):
        grown(two, SMALL, "a")

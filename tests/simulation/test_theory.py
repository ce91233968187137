"""The simulator against what is known of queues, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapreplace

import numpy as np
import pytest

from glow_mlir.simulation.arrivals import ClosedLoop, FixedRate, Kind, Load, Poisson, Trace
from glow_mlir.simulation.engine import simulate
from glow_mlir.simulation.service import Affine, Exponential, Fixed, Law, Measured
from glow_mlir.simulation.system import Batching, Hop, Stage, System, chain, replicated

SERVICE = 0.01
RUNS = 10
CRITICAL = 4.78
"""Student's t at 99.9 %, two-sided, for ten runs."""


def one(law: Law, **settings: object) -> System:
    """A replica that is one stage on one device."""
    return System(((Stage("model", "device", law),),), **settings)  # pyright: ignore[reportArgumentType]


def erlang_c(servers: int, offered: float) -> float:
    """The probability that somebody waits in M/M/c (Erlang, 1917), from the recursion of Erlang's B."""
    lost = 1.0
    for number in range(1, servers + 1):
        lost = offered * lost / (number + offered * lost)
    return lost / (1 - offered / servers * (1 - lost))


def single(utilisation: float) -> float:
    """The mean wait in M/M/1."""
    return utilisation * SERVICE / (1 - utilisation)


def deterministic(utilisation: float) -> float:
    """The mean wait in M/D/1, half of that in M/M/1 (Pollaczek and Khinchine)."""
    return single(utilisation) / 2


def several(servers: int) -> Callable[[float], float]:
    """The mean wait in M/M/c."""
    return lambda utilisation: erlang_c(servers, servers * utilisation) * SERVICE / (servers * (1 - utilisation))


SYSTEMS: dict[str, tuple[System, int, Callable[[float], float]]] = {
    "M/D/1": (one(Fixed(SERVICE)), 1, deterministic),
    "M/M/1": (one(Exponential(SERVICE)), 1, single),
    "M/M/5, five replicas": (replicated(one(Exponential(SERVICE)), 5), 5, several(5)),
    "M/M/5, one device that does five calls at once": (
        one(Exponential(SERVICE), depth=5, calls={"device": 5}),
        5,
        several(5),
    ),
}


@pytest.mark.parametrize("utilisation", [0.4, 0.8])
@pytest.mark.parametrize("name", SYSTEMS)
def test_mean_wait_is_that_of_theory(name: str, utilisation: float) -> None:
    system, servers, formula = SYSTEMS[name]
    load = Load(Poisson(utilisation * servers / SERVICE), 15_000, warmup=2_000)
    found = np.array([simulate(system, load, seed=seed).queued.mean for seed in range(RUNS)])
    error = found.mean() - formula(utilisation)
    assert abs(error) <= CRITICAL * found.std(ddof=1) / math.sqrt(RUNS)
    assert abs(error) <= 0.15 * formula(utilisation)


@pytest.mark.parametrize("clients", [1, 3, 8, 20])
@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("think", [0.0, 0.03])
def test_closed_loop_is_at_its_bounds(clients: int, replicas: int, think: float) -> None:
    # The asymptotic bounds of operational analysis (Denning and Buzen, 1978), which constant times reach.
    system = replicated(one(Fixed(SERVICE)), replicas)
    found = simulate(system, Load(ClosedLoop(clients, think), 20_000, warmup=1_000))
    bound = min(clients / (SERVICE + think), replicas / SERVICE)
    assert found.throughput == pytest.approx(bound, rel=2e-3)
    assert found.latency.mean >= SERVICE * (1 - 1e-9)
    shares = list(found.utilisation.values())
    assert shares == pytest.approx([bound * SERVICE / replicas] * replicas, abs=5e-3)


PIPELINE = chain(
    [Stage("a", "d0", Fixed(0.004)), Stage("b", "d1", Fixed(0.010)), Stage("c", "d2", Fixed(0.007))], 0.0005
)


@pytest.mark.parametrize(("depth", "bound"), [(1, 1 / 0.022), (2, 2 / 0.022), (3, 1 / 0.010), (8, 1 / 0.010)])
def test_pipeline_is_as_fast_as_its_slowest_stage(depth: int, bound: float) -> None:
    found = simulate(System((PIPELINE,), depth=depth), Load(ClosedLoop(10), 5_000, warmup=100))
    assert found.throughput == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("size", [1, 4, 32])
def test_batches_at_saturation_share_what_a_call_costs(size: int) -> None:
    system = replicated(one(Affine(0.002, 0.0005), batching=Batching(size)), 3)
    found = simulate(system, Load(ClosedLoop(4 * size * 3), 3_000 * size, warmup=300))
    assert found.batch == pytest.approx(size, rel=0.01)
    assert found.throughput == pytest.approx(3 * size / (0.002 + 0.0005 * size), rel=0.01)


def test_host_is_a_bound_of_its_own() -> None:
    system = replicated(one(Fixed(SERVICE), overhead=1e-3, cores=2), 100)
    found = simulate(system, Load(ClosedLoop(200), 20_000, warmup=500))
    assert found.throughput == pytest.approx(2 / 1e-3, rel=1e-3)


MIXED = (Kind("small", 3, (1, 2)), Kind("large", 1, (4, 8), priority=1))
LAWS: tuple[Law, ...] = (Affine(0.001, 0.0003), Measured((0.001, 0.004)), Exponential(0.002))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("arrivals", [Poisson(900.0), FixedRate(700.0), ClosedLoop(20, 0.001)], ids=repr)
def test_littles_law_is_exact(law: Law, arrivals: Poisson | FixedRate | ClosedLoop) -> None:
    # L = λ·W over a time that begins and ends with nobody (Little, 1961): the left side is summed over events.
    stages = chain([Stage("a", "d0", law), Stage("b", "d1", Fixed(0.001))], 0.0001)
    system = System((stages, stages), Batching(8, 0.002), depth=2, overhead=0.0002)
    found = simulate(system, Load(arrivals, 3_000, MIXED), seed=7)
    assert found.answered == 3_000
    assert found.in_system * found.seconds == pytest.approx(found.answered * found.latency.mean, rel=1e-9)


@pytest.mark.parametrize("servers", [1, 3])
def test_waits_are_those_of_the_recursion(servers: int) -> None:
    # Kiefer and Wolfowitz, 1955; for one server Lindley's recursion of 1952.
    random = np.random.default_rng(3)
    times = np.cumsum(random.exponential(SERVICE / servers, 2_000))
    system = replicated(one(Fixed(SERVICE)), servers)
    found = simulate(system, Load(Trace(tuple(times.tolist()))))
    free = [0.0] * servers
    waits: list[float] = []
    for time in times.tolist():
        begin = max(time, free[0])
        heapreplace(free, begin + SERVICE)
        waits.append(begin - time)
    assert found.queued.mean == pytest.approx(np.mean(waits), rel=1e-9)
    assert found.queued.p99 == pytest.approx(np.quantile(waits, 0.99, method="inverted_cdf"), rel=1e-9)


def test_stages_side_by_side_take_what_the_slowest_path_takes() -> None:
    law = Affine(0.001, 0.001)
    halves = (
        Stage("split", "d0", Fixed(0.001)),
        Stage("left", "d1", law, (Hop(0, 0.0002),), 0.5),
        Stage("right", "d2", law, (Hop(0, 0.0003, 0.0001),), 0.5),
        Stage("join", "d0", Fixed(0.001), (Hop(1), Hop(2, 0.0002))),
    )
    (kind,) = (Kind(sizes=(5,)),)
    found = simulate(System((halves,), Batching(8)), Load(ClosedLoop(1), 10, (kind,)))
    right = 0.0003 + 5 * 0.0001 + 0.001 + 3 * 0.001 + 0.0002
    assert found.latency.p50 == pytest.approx(0.001 + right + 0.001)
    assert found.batch == 5

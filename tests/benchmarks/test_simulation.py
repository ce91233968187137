"""The replicas that sleep, which the simulator is compared with: batches, order, and what is counted."""

from __future__ import annotations

from threading import Event

from simulation import Request, asked, found_of, sleeping_network, slower

from glow_mlir.simulation.arrivals import ClosedLoop, Trace
from glow_mlir.simulation.service import Affine, Fixed, Measured
from glow_mlir.simulation.system import Batching


def no_time(rows: int) -> float:
    return 0.0


def test_each_request_is_answered_once_by_batches_of_the_size() -> None:
    with sleeping_network([no_time] * 4, Batching(5), lambda seconds: None) as network:
        requests = asked(network, ClosedLoop(16), 1_600)
        assert len({id(request) for request in requests}) == 1_600
        assert network.statistics.rows == 1_600
        assert network.statistics.calls >= 1_600 / 5


def test_what_waits_when_a_device_is_free_is_one_batch() -> None:
    is_begun, may_end = Event(), Event()
    batches: list[int] = []

    def counting(rows: int) -> float:
        batches.append(rows)
        return 0.0

    def sleep(seconds: float) -> None:
        is_begun.set()
        may_end.wait()

    with sleeping_network([counting], Batching(4), sleep) as network:
        first = Request(network)
        is_begun.wait()
        others = [Request(network) for _ in range(6)]
        may_end.set()
        for request in (first, *others):
            request.wait()
    assert batches == [1, 4, 2]


def test_open_loads_wait_for_nobody() -> None:
    with sleeping_network([no_time], Batching(3, 60.0), lambda seconds: None) as network:
        assert len(asked(network, Trace((0.0,) * 9), 9)) == 9
        assert (network.statistics.calls, network.statistics.rows) == (3, 9)


def test_answers_are_counted_while_requests_come() -> None:
    found = found_of([0.0, 1.0, 2.0, 4.0], [1.5, 2.5, 4.0, 9.0])
    assert found.throughput == 3 / 4
    assert found.p99 == 5.0


def test_laws_are_slower_by_what_sleeping_takes() -> None:
    laws = [slower(law, (1.0, 2.0)) for law in (Fixed(1.0), Affine(1.0, 2.0), Measured((0.5, 1.0)))]
    assert laws == [Measured((2.0, 3.0)), Measured((2.0, 3.0), 2.0), Measured((1.5, 2.5, 2.0, 3.0))]

"""The queue in front of replicas: order, batches, bounds, deadlines, and who has the next call."""

from __future__ import annotations

import pytest

from glow_mlir.errors import OptionError
from glow_mlir.simulation.arrivals import ClosedLoop, FixedRate, Kind, Load, Poisson, Trace
from glow_mlir.simulation.engine import simulate
from glow_mlir.simulation.result import Result
from glow_mlir.simulation.service import Affine, Exponential, Fixed, Law, Measured
from glow_mlir.simulation.system import Batching, Hop, Stage, System, replicated

BASE = System(((Stage("model", "device", Fixed(1.0)),),))


def begins(result: Result) -> list[float]:
    """The seconds at which calls began."""
    return [span.begin / 1e9 for span in result.spans]


def served(times: tuple[float, ...], system: System, *kinds: Kind, seed: int = 0) -> Result:
    """Requests at those times."""
    return simulate(system, Load(Trace(times), kinds=kinds or (Kind(),)), seed=seed, traced=True)


def with_batches(size: int, delay: float) -> System:
    """A replica that takes a second for a call, and a tenth for each row."""
    return System(((Stage("model", "device", Affine(1.0, 0.1)),),), Batching(size, delay))


def test_full_batch_begins_at_once() -> None:
    found = served((0.0, 0.1, 0.2), with_batches(3, 9.0))
    assert begins(found) == pytest.approx([0.2])
    assert found.latency.mean == pytest.approx(0.1 + 1.3)


def test_oldest_waits_no_longer_than_the_delay() -> None:
    found = served((0.0, 0.1, 0.7), with_batches(3, 0.5))
    assert begins(found) == pytest.approx([0.5, 1.7])
    assert found.batch == pytest.approx(1.5)


def test_delay_that_is_over_waits_for_a_replica() -> None:
    found = served((0.0, 0.6, 1.0), with_batches(8, 0.5))
    assert begins(found) == pytest.approx([0.5, 1.6])


def test_without_delay_a_batch_is_what_waits_when_a_replica_is_free() -> None:
    found = served((0.0, 0.1, 0.2, 0.3, 5.0), with_batches(2, 0.0))
    assert begins(found) == pytest.approx([0.0, 1.1, 2.3, 5.0])


def test_requests_that_come_at_once_are_one_batch() -> None:
    assert served((0.0,) * 5, with_batches(8, 0.0)).calls == 1


def test_batch_has_rows_as_they_fit_and_nobody_overtakes() -> None:
    found = served((0.0,) * 6, with_batches(4, 0.0), Kind(sizes=(3,)))
    assert found.calls == 6
    large = served((0.0,), with_batches(4, 7.0), Kind(sizes=(9,)))
    assert begins(large) == [0.0]
    assert large.batch == 9


def test_lower_priority_comes_first() -> None:
    kinds = (Kind("batch", 1, priority=1), Kind("urgent", 1, priority=0))
    found = served((0.0,) * 20, BASE, *kinds)
    assert found.by_kind["urgent"].p999 < found.by_kind["batch"].p50


def test_full_queue_refuses() -> None:
    found = served((0.0, 0.1, 0.2, 0.3, 1.05), System(BASE.replicas, queue=2))
    assert (found.answered, found.refused) == (4, 1)
    assert found.latency.p999 == pytest.approx(4 - 1.05)


def test_refused_clients_try_again() -> None:
    found = simulate(System(BASE.replicas, queue=1), Load(ClosedLoop(3, retry=0.3), 30))
    assert found.refused > 0
    assert found.answered + found.refused == 30
    assert found.throughput == pytest.approx(1.0, rel=0.2)


def test_deadline_ends_waiting_and_no_call() -> None:
    found = served((0.0, 0.1, 0.2), BASE, Kind(deadline=0.95))
    assert (found.answered, found.expired) == (2, 1)
    assert found.latency.p999 == pytest.approx(1.9)


def test_expired_client_asks_again_at_its_deadline() -> None:
    found = simulate(BASE, Load(ClosedLoop(2), 4, (Kind(deadline=0.5),)), traced=True)
    assert (found.answered, found.expired) == (2, 2)
    assert begins(found) == pytest.approx([0.0, 1.0])


def test_deadline_may_pass_before_the_queue() -> None:
    found = served((0.0, 0.0), System(BASE.replicas, overhead=0.2), Kind(deadline=0.3))
    assert (found.answered, found.expired) == (1, 1)


def test_expired_request_leaves_room() -> None:
    found = served((0.0, 0.1, 0.5), System(BASE.replicas, queue=1), Kind(deadline=0.3))
    assert (found.answered, found.expired, found.refused) == (1, 2, 0)


def test_replica_with_fewest_calls_is_next_then_the_one_used_longest_ago() -> None:
    stages = [((Stage("m", f"d{number}", Fixed(seconds)),)) for number, seconds in enumerate((3.0, 1.0, 1.0))]
    found = served((0.0, 0.1, 0.2, 1.5, 1.6, 1.7), System(tuple(stages), depth=2))
    assert [span.queue for span in found.spans] == ["d0", "d1", "d2", "d1", "d2", "d0"]


def test_depth_lets_calls_wait_at_their_device() -> None:
    shallow, deep = (served((0.0,) * 4, System(BASE.replicas, depth=depth)) for depth in (1, 4))
    assert shallow.latency == deep.latency
    assert (shallow.queued.p999, deep.queued.p999) == (3.0, 0.0)


def test_device_does_what_it_is_given_in_order() -> None:
    # Of the second call nothing begins on the first device before the first call has come back to it.
    there_and_back = (
        Stage("there", "d0", Fixed(1.0)),
        Stage("other", "d1", Fixed(1.0), (Hop(0),)),
        Stage("back", "d0", Fixed(1.0), (Hop(1),)),
    )
    found = served((0.0, 0.0), System((there_and_back,), depth=2))
    assert begins(found) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])


def test_utilisation_is_of_all_that_a_device_does_at_once() -> None:
    found = served((0.0, 0.0), System(BASE.replicas, depth=2, calls={"device": 4}))
    assert found.utilisation == pytest.approx({"device": 0.5})


def test_same_seed_gives_the_same_and_another_something_else() -> None:
    system = replicated(System(((Stage("m", "d", Exponential(0.01)),),), Batching(4, 0.01)), 3)
    kinds = (Kind("a", 2, (1, 2, 3)), Kind("b", 1, (1,), 1, 0.05))
    first, again, other = (simulate(system, Load(Poisson(300.0), 500, kinds), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_warmup_is_served_and_not_counted() -> None:
    found = simulate(BASE, Load(ClosedLoop(1), 10, warmup=4))
    assert (found.requests, found.answered, found.calls) == (6, 6, 10)


def test_measured_seconds_are_those_that_were_measured() -> None:
    found = simulate(System(((Stage("m", "d", Measured((0.1, 0.4))),),)), Load(ClosedLoop(1), 2_000))
    assert (found.latency.p50, found.latency.p999) == (pytest.approx(0.1), pytest.approx(0.4))
    assert found.latency.mean == pytest.approx(0.25, rel=0.05)


def test_measured_seconds_are_beside_those_of_rows() -> None:
    law = Measured((0.1, 0.4), 0.01)
    found = simulate(System(((Stage("m", "d", law),),), Batching(3)), Load(ClosedLoop(1), 500, (Kind(sizes=(3,)),)))
    assert (found.latency.p50, found.latency.p999) == (pytest.approx(0.13), pytest.approx(0.43))


def test_a_thousand_devices_are_no_trouble() -> None:
    found = simulate(replicated(BASE, 1_000), Load(ClosedLoop(1_500), 30_000, warmup=3_000))
    assert found.throughput == pytest.approx(1_000, rel=1e-3)
    assert len(found.utilisation) == 1_000


def stage(law: Law = Fixed(1.0), *after: Hop, share: float = 1.0) -> System:
    """A replica of two stages."""
    return System(((BASE.replicas[0][0], Stage("second", "other", law, after, share)),))


WRONG: dict[str, tuple[System, Load, str]] = {
    "no replica": (System(()), Load(ClosedLoop(1)), "no stages"),
    "negative": (stage(Fixed(-1.0)), Load(ClosedLoop(1)), "stage 'second' takes -1.0 seconds"),
    "nothing measured": (stage(Measured(())), Load(ClosedLoop(1)), "no measured seconds"),
    "cycle": (stage(Fixed(1.0), Hop(1)), Load(ClosedLoop(1)), "not behind what it is after"),
    "hop": (stage(Fixed(1.0), Hop(0, -1.0)), Load(ClosedLoop(1)), "a hop to stage 'second'"),
    "share": (stage(share=1.5), Load(ClosedLoop(1)), "a share of 1.5"),
    "depth": (System(BASE.replicas, depth=0), Load(ClosedLoop(1)), "depth is 0"),
    "device": (System(BASE.replicas, calls={"gpu": 2}), Load(ClosedLoop(1)), "no stage is on device 'gpu'"),
    "delay": (System(BASE.replicas, Batching(2, -0.1)), Load(ClosedLoop(1)), "delay of a batch is -0.1"),
    "queue": (System(BASE.replicas, queue=0), Load(ClosedLoop(1)), "room for 0 requests"),
    "no clients": (BASE, Load(ClosedLoop(0)), "0 clients"),
    "no rate": (BASE, Load(FixedRate(0.0)), "0.0 requests come a second"),
    "backwards": (BASE, Load(Trace((1.0, 0.5))), "times of a trace decrease"),
    "nobody": (BASE, Load(Trace(())), "there are no requests"),
    "all left out": (BASE, Load(ClosedLoop(1), 5, warmup=5), "5 of 5 requests are left out"),
    "no rows": (BASE, Load(ClosedLoop(1), kinds=(Kind(sizes=()),)), "no weight, rows or deadline"),
    "same names": (BASE, Load(ClosedLoop(1), kinds=(Kind(), Kind())), "names of their own"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_one_line(case: str) -> None:
    system, load, reason = WRONG[case]
    with pytest.raises(OptionError, match=reason):
        simulate(system, load)

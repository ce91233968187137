"""Networks behind queues: order, batches, bounds, deadlines, cancellation, and what becomes of a removed one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from host_networks import Gate, made, rows_of, threads_left

from glow_mlir.errors import (
    CancelledError,
    ExecutionError,
    InputError,
    OptionError,
    QueueFullError,
    TimeLimitError,
    UnknownNetworkError,
)
from glow_mlir.host.network import Network


def held(network: Network, gate: Gate, calls: int = 1) -> list[Any]:
    """Requests that are computed as long as the gate is shut, so that others wait."""
    found = [network.submit(rows_of(0)) for _ in range(calls)]
    for _ in found:
        assert gate.entered.acquire(timeout=30)
    return found


def test_answers_are_those_of_the_model() -> None:
    with made(lambda x: x * 2) as network:
        np.testing.assert_array_equal(network.run(rows_of(3))["y"], [[6, 6]])
        np.testing.assert_array_equal(network.submit(rows_of(4)).result()["y"], [[8, 8]])
        np.testing.assert_array_equal(asyncio.run(network.infer(rows_of(5)))["y"], [[10, 10]])
        assert network.run(rows_of(1), outputs=["y"]).keys() == {"y"}
        assert network.run(rows_of(1), outputs=iter(["y"])).keys() == {"y"}
        assert network.submit(rows_of(1), outputs=(name for name in "y")).result().keys() == {"y"}
        assert not network.run(rows_of(1), outputs=())
        data = network.data()
        assert (data["succeeded"], data["calls"], data["waiting"]) == (7, 7, 0)


def test_lower_priorities_come_first_and_equal_ones_in_turn() -> None:
    gate, order = Gate(), list[float]()

    def compute(x: np.ndarray) -> np.ndarray:
        gate.pass_through()
        order.append(float(x[0, 0]))
        return x

    with made(compute) as network:
        first = held(network, gate)
        answers = [network.submit(rows_of(n), priority=p) for n, p in enumerate((0, 1, -1, 0, 1, -1), 1)]
        gate.open()
        for answer in (*first, *answers):
            answer.result(timeout=30)
    assert order == [0, 3, 6, 1, 4, 2, 5]


def test_a_full_queue_refuses_at_once() -> None:
    gate = Gate()
    with made(gate.through, queue=2) as network:
        busy = held(network, gate)
        waiting = [network.submit(rows_of(1)) for _ in range(2)]
        with pytest.raises(QueueFullError, match="the queue of 'model' is full: 2 requests wait"):
            network.submit(rows_of(1))
        assert waiting[0].cancel()
        again = network.submit(rows_of(1))
        gate.open()
        for answer in (*busy, waiting[1], again):
            answer.result(timeout=30)
        assert network.statistics.counts == {
            "succeeded": 3, "failed": 0, "cancelled": 1, "expired": 0, "refused": 1
        }  # fmt: skip


def test_requests_are_computed_together() -> None:
    gate, calls = Gate(), list[int]()

    def compute(x: np.ndarray) -> np.ndarray:
        gate.pass_through()
        calls.append(len(x))
        return x + 1

    with made(compute, batch=4) as network:
        first = held(network, gate)
        answers = [network.submit(rows_of(n, n)) for n in (1, 2, 2, 4)]
        gate.open()
        for n, answer in zip((1, 2, 2, 4), answers, strict=True):
            np.testing.assert_array_equal(answer.result(timeout=30)["y"], np.full((n, 2), n + 1))
        assert first[0].result()["y"].shape == (1, 2)
        assert calls == [1, 3, 2, 4]
        with pytest.raises(InputError, match="expected at most 4 samples in a request, got 5"):
            network.submit(rows_of(1, 5))
        assert (network.data()["calls"], network.data()["samples"]) == (4, 10)


def test_the_first_request_waits_no_longer_than_the_delay() -> None:
    calls: list[int] = []

    def compute(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return x

    with made(compute, batch=3, delay=60.0) as network:
        answers = [network.submit(rows_of(n)) for n in range(3)]
        for answer in answers:  # A full call waits for nobody.
            answer.result(timeout=30)
    assert calls == [3]
    with made(compute, batch=3, delay=0.01) as network:
        network.submit(rows_of(0)).result(timeout=30)
        network.run(rows_of(0))
    assert calls == [3, 1, 1]


def test_a_request_of_a_batch_that_fails_fails_alone() -> None:
    gate = Gate()

    def compute(x: np.ndarray) -> np.ndarray:
        gate.pass_through()
        if (x < 0).any():
            raise ExecutionError("a negative number")
        return x

    with made(compute, batch=4) as network:
        first = held(network, gate)
        answers = [network.submit(rows_of(n)) for n in (1, -1, 2)]
        gate.open()
        first[0].result(timeout=30)
        for n, answer in zip((1, -1, 2), answers, strict=True):
            if n < 0:
                with pytest.raises(ExecutionError, match="a negative number"):
                    answer.result(timeout=30)
            else:
                np.testing.assert_array_equal(answer.result(timeout=30)["y"], [[n, n]])


def test_deadlines_hold_in_the_queue_and_while_it_is_computed() -> None:
    gate = Gate()
    with made(gate.through) as network:
        begin = time.perf_counter()
        late = [network.submit(rows_of(0), timeout=0.05) for _ in range(2)]
        for answer in late:
            with pytest.raises(TimeLimitError, match=r"timed out after 0\.05 seconds"):
                answer.result(timeout=30)
        assert time.perf_counter() - begin < 25
        assert network.waiting == 0
        gate.open()
        assert network.statistics.counts["expired"] == 2
        network.submit(rows_of(0), timeout=60).result(timeout=30)


def test_cancelling_takes_effect() -> None:
    gate = Gate()
    with made(gate.through) as network:
        (running,) = held(network, gate)
        waiting = network.submit(rows_of(1))
        for answer in (waiting, running):
            assert answer.cancel()
            assert not answer.cancel()
            with pytest.raises(CancelledError, match="a request of 'model' was cancelled"):
                answer.result(timeout=0)
        gate.open()
        done = network.submit(rows_of(2))
        done.result(timeout=30)
        assert not done.cancel()
        assert network.statistics.counts["cancelled"] == 2

    async def given_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(network.infer(rows_of(1)), 0.05)

    gate = Gate()
    with made(gate.through) as network:
        asyncio.run(given_up())
        assert network.statistics.counts["cancelled"] == 1
        gate.open()


def test_what_does_not_fit_is_told_at_once() -> None:
    with made(lambda x: x) as network:
        for given in ({"x": np.zeros((1, 3), np.float32)}, {}, {**rows_of(1), "z": 1}):
            for call in (network.run, network.submit):
                with pytest.raises(InputError):
                    call(given)
        with pytest.raises(InputError, match="there is no output 'w'"):
            network.submit(rows_of(1), outputs=["w"])
        network.run(rows_of(1))


def test_a_removed_network_answers_those_that_wait_or_ends_them() -> None:
    for seconds in (60.0, 0.0):
        gate = Gate()
        with made(gate.through) as network:
            answers = [*held(network, gate), *(network.submit(rows_of(1)) for _ in range(3))]
            closing = threading.Thread(target=network.close, args=(seconds,))
            closing.start()
            while network.is_ready:
                time.sleep(0.001)
            with pytest.raises(UnknownNetworkError, match="'model' was removed"):
                network.submit(rows_of(1))
            if seconds:
                gate.open()
            else:
                for answer in answers:
                    with pytest.raises(CancelledError, match="'model' was removed"):
                        answer.result(timeout=30)
                gate.open()
            closing.join(30)
            assert not closing.is_alive()
            for answer in answers if seconds else ():
                answer.result(timeout=0)
    assert not threads_left()


def failing(times: int) -> Callable[[np.ndarray], np.ndarray]:
    """What raises so many times, as a device does that is gone, and then computes."""
    left = [None] * times

    def compute(x: np.ndarray) -> np.ndarray:
        if left:
            left.pop()
            raise RuntimeError("the device is gone")
        return x

    return compute


def test_another_replica_computes_what_one_failed_to() -> None:
    def gone(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("the device is gone")

    with made(gone, lambda x: x) as network:
        for _ in range(20):
            network.submit(rows_of(1)).result(timeout=30)
        assert network.replicas[0].failures > 0
        assert network.statistics.counts["failed"] == 0
    with made(failing(1)) as network:
        with pytest.raises(ExecutionError, match="'model' failed on replica 0: RuntimeError: the device is gone"):
            network.submit(rows_of(1)).result(timeout=30)
        network.submit(rows_of(1)).result(timeout=30)


def test_the_place_of_a_call_that_hangs_goes_to_another() -> None:
    gate = Gate()
    with made(gate.through, call_limit=0.05) as network:
        for _ in range(2):
            with pytest.raises(TimeLimitError, match=r"a call of 'model' took longer than 0\.05 seconds"):
                network.submit(rows_of(1)).result(timeout=30)
        assert not network.is_ready
        gate.open()


@pytest.mark.parametrize("options", [{"queue": -1}, {"batch": 0}, {"delay": 1.0}, {"replicas": 0}])
def test_options_that_make_no_sense_are_told(options: Mapping[str, Any]) -> None:
    with pytest.raises(OptionError):
        made(lambda x: x, **options)


def test_many_threads_get_their_own_answers() -> None:
    with made(lambda x: x * 3, batch=8, queue=1000) as network, ThreadPoolExecutor(16) as pool:

        def ask(n: int) -> bool:
            found = network.run(rows_of(n)) if n % 2 else network.submit(rows_of(n)).result()
            return bool((found["y"] == 3 * n).all())

        assert all(pool.map(ask, range(2000)))
        assert network.statistics.counts["succeeded"] == 2000

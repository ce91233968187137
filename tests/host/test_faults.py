"""Load and faults: whatever happens, every request gets an answer or an error, once, and nothing is left behind."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from host_networks import FunctionRunner, made, rows_of, session, threads_left
from models import GraphBuilder, linear
from onnx import TensorProto

from glow_mlir.errors import CancelledError, ExecutionError, GlowError, QueueFullError, UnknownNetworkError
from glow_mlir.host.batches import Batches
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network
from glow_mlir.host.replicas import Replica
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.hosting import HostingOptions

OUTCOMES = {"succeeded", "failed", "cancelled", "expired", "refused"}


def outcome_of(network: Network, rng: random.Random, number: int) -> str:
    """Ask for something, sometimes give it up, or within a time that is short; check the answer, and say what came."""
    kind = rng.random()
    timeout = rng.choice((0.0005, 0.005)) if kind < 0.15 else None
    inputs = rows_of(number, rng.randint(1, 3))
    try:
        if kind > 0.9:
            found = network.run(inputs, priority=rng.randint(-1, 1))
        else:
            answer = network.submit(inputs, timeout=timeout, priority=rng.randint(-1, 1))
            if 0.15 < kind < 0.3:
                time.sleep(rng.random() * 0.002)
                answer.cancel()
            found = answer.result(timeout=60)
    except QueueFullError:
        return "refused"
    except TimeoutError:
        return "expired"
    except CancelledError:
        return "cancelled"
    except ExecutionError:
        return "failed"
    np.testing.assert_array_equal(found["y"], inputs["x"] * 2)
    return "succeeded"


def test_ten_thousand_requests_have_one_outcome_each() -> None:
    def compute(x: np.ndarray) -> np.ndarray:
        if x[0, 0] % 97 == 0:
            raise ExecutionError("a number that it does not like")
        return x * 2

    count = 10_000
    with made(compute, calls=2, batch=8, queue=12) as network, ThreadPoolExecutor(16) as pool:
        rngs = [random.Random(seed) for seed in range(16)]

        def client(number: int) -> Counter[str]:
            return Counter(outcome_of(network, rngs[number], n) for n in range(number, count, 16))

        found = sum(pool.map(client, range(16)), Counter[str]())
        assert sum(found.values()) == count
        network.close(wait=30)
        assert +Counter(network.statistics.counts) == found
        assert found["succeeded"] > count / 4
        assert {"cancelled", "failed"} <= found.keys() <= OUTCOMES


class Faulty(FunctionRunner):
    """Computes, but at a random moment raises, hangs for a while, or is gone for good."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(self._faulty)
        self._rng = rng
        self._fault = rng.choice(("raises", "hangs", "is gone"))
        self._left = rng.randint(0, 20)
        self._lock = threading.Lock()
        self.woken = threading.Event()

    def _faulty(self, x: np.ndarray) -> np.ndarray:
        with self._lock:
            self._left -= 1
            left = self._left
        if left == 0 and self._fault == "hangs":
            self.woken.wait(30)
        if (left == 0 and self._fault == "raises") or (left <= 0 and self._fault == "is gone"):
            raise RuntimeError(self._fault)
        return x * 2


@pytest.mark.parametrize("seed", range(100))
def test_a_device_that_fails_at_a_random_moment(seed: int) -> None:
    rng = random.Random(seed)
    faulty = Faulty(rng)
    runners = [faulty] if seed % 3 == 0 else [faulty, FunctionRunner(lambda x: x * 2)]
    timetable, first = Timetable("glow-host-timetable"), session().first
    options = HostingOptions(batch=4, queue=1000, call_limit=0.05)
    replicas = [(Replica(f"replica {number}", runner), 1) for number, runner in enumerate(runners)]
    network = Network("model", "1", first, replicas, Batches("N", first.inputs, first.outputs, 4), options, timetable)
    answers = [network.submit(rows_of(n)) for n in range(40)]
    found = Counter[str]()
    for n, answer in enumerate(answers):
        try:
            np.testing.assert_array_equal(answer.result(timeout=30)["y"], np.full((1, 2), 2 * n))
            found["succeeded"] += 1
        except CancelledError:
            found["expired"] += 1
        except GlowError:
            found["failed"] += 1
    if len(runners) > 1:
        assert found["failed"] == 0  # Another one has computed them.
    faulty.woken.set()
    network.close(wait=5)
    timetable.close()
    counts = network.statistics.counts
    assert sum(counts.values()) == sum(found.values()) == 40
    assert counts["succeeded"] == found["succeeded"]
    assert not threads_left()


def network_model(width: int) -> Any:
    """A small network of any batch."""
    g = GraphBuilder(width)
    result = g.node("Relu", linear(g, "x", 8, width))
    return g.model({"x": (TensorProto.FLOAT, ("N", 8))}, {result: ("N", width)})


def test_networks_come_and_go_under_load() -> None:
    x = np.ones((1, 8), np.float32)
    ended, found = threading.Event(), Counter[str]()
    lock = threading.Lock()
    with Host() as host:
        wanted: dict[str, tuple[int, ...]] = {}
        for width in (3, 5):
            host.add(f"net{width}", network_model(width), batch=4, queue=64)
            wanted[f"net{width}"] = (1, width)

        def client(seed: int) -> None:
            rng = random.Random(seed)
            while not ended.is_set():
                name = rng.choice(list(wanted))
                try:
                    (array,) = host.run(name, {"x": x}).values()
                    outcome = "succeeded"
                    assert array.shape == wanted[name]
                except UnknownNetworkError:
                    outcome = "unknown"
                except (CancelledError, QueueFullError):
                    outcome = "ended"
                with lock:
                    found[outcome] += 1

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            host.add("net3", network_model(3), batch=4, queue=64)
            host.remove("net5", wait=1.0)
            host.add("net5", network_model(5), batch=4, queue=64)
        ended.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert found["succeeded"] > 0
    assert not threads_left()


def test_what_is_answered_is_kept_by_nobody() -> None:
    with made(lambda x: x, calls=2) as network:
        inputs = rows_of(1, 64)
        kept = weakref.ref(inputs["x"])
        answer = network.submit(inputs, timeout=3600)
        found = weakref.ref(answer.result(timeout=30)["y"])
        del inputs, answer
        network.submit(rows_of(0)).result(timeout=30)
        network.submit(rows_of(0)).result(timeout=30)
        gc.disable()
        try:
            end = time.monotonic() + 30
            while (kept() is not None or found() is not None) and time.monotonic() < end:
                time.sleep(0.001)
            assert kept() is None
            assert found() is None
        finally:
            gc.enable()

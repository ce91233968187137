"""Workers: processes that compute calls, end, and are replaced."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from host_networks import threads_left
from models import GraphBuilder, linear
from onnx import TensorProto

from glow_mlir.errors import ExecutionError, GlowError, OptionError
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network
from glow_mlir.host.processes import ProcessRunner, WorkerTask
from glow_mlir.host.shared_regions import Regions
from glow_mlir.runtime.array_layout import kinds_of, layout_of


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a small network of any batch, and beside it one with a result of a size that data decides."""
    g = GraphBuilder(0)
    y = g.node("Relu", linear(g, "x", 8, 16))
    places = g.node("NonZero", y)
    model = g.model({"x": (TensorProto.FLOAT, ("N", 8))}, {y: ("N", 16)})
    found = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(model, found)
    model.graph.output.append(onnx.helper.make_tensor_value_info(places, TensorProto.INT64, (2, None)))
    onnx.save(model, found.with_name("sizes.onnx"))
    return found


@pytest.fixture
def host() -> Generator[Host]:
    """A host that leaves nothing behind."""
    with Host() as made:
        yield made
    assert not threads_left()


def samples(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs of so many samples."""
    return {"x": np.random.default_rng(seed).standard_normal((count, 8), np.float32)}


def pids(network: Network) -> list[int]:
    """What the system calls the workers."""
    return [replica.runner.pid for replica in network.replicas if isinstance(replica.runner, ProcessRunner)]


def test_answers_are_those_of_this_process(path: Path, host: Host) -> None:
    here, there = host.add("here", path, batch=8), host.add("there", path, workers="processes", replicas=2, batch=8)
    assert len(set(pids(there))) == 2
    sizes = [host.add(way, path.with_name("sizes.onnx"), workers=way) for way in ("threads", "processes")]
    for count in (1, 3, 8, 2):
        for name, array in sizes[1].run(samples(count)).items():
            np.testing.assert_array_equal(array, sizes[0].run(samples(count))[name])
        inputs = samples(count, count)
        for name, array in there.run(inputs).items():
            np.testing.assert_array_equal(array, here.run(inputs)[name])
    answers = [there.submit(samples(1, n)) for n in range(20)]
    for n, answer in enumerate(answers):
        np.testing.assert_allclose(answer.result(30)["relu_2"], here.run(samples(1, n))["relu_2"], atol=1e-6)
    assert there.memory_bytes > 0


def test_outputs_stay_as_they_are_while_somebody_has_them(path: Path, host: Host) -> None:
    network = host.add("model", path, workers="processes")
    found = [network.run(samples(2, n))["relu_2"] for n in range(6)]
    wanted = [array.copy() for array in found]
    for n in range(20):
        network.run(samples(2, 100 + n))
    for array, exact in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array, exact)


def test_mistakes_are_told_as_they_are_here(path: Path, host: Host) -> None:
    with pytest.raises(GlowError, match="cannot be read"):
        host.add("model", path.with_name("missing.onnx"), workers="processes")
    with pytest.raises(OptionError, match="cannot be sent to a worker"):
        ProcessRunner(WorkerTask(lambda: None, {}))
    assert host.networks == []


def test_a_worker_that_is_killed_is_replaced(path: Path, host: Host) -> None:
    network = host.add("model", path, workers="processes", replicas=2)
    wanted = network.run(samples(1))["relu_2"].copy()
    for turn in range(4):
        killed = pids(network)[turn % 2]
        os.kill(killed, signal.SIGKILL)
        for _ in range(4):
            np.testing.assert_array_equal(network.submit(samples(1)).result(60)["relu_2"], wanted)
        assert killed not in pids(network)
    assert network.statistics.counts["failed"] == 0


def test_workers_are_killed_under_load(path: Path, host: Host) -> None:
    network, ended = host.add("model", path, workers="processes", replicas=2, queue=1000), threading.Event()

    def kill() -> None:
        while not ended.wait(0.3):
            for pid in pids(network)[:1]:
                if pid:
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answers = [network.submit(samples(1, n)) for n in range(300)]
    outcomes: list[Any] = []
    for answer in answers:
        try:
            outcomes.append(answer.result(60)["relu_2"].shape)
        except ExecutionError as error:  # Both of its workers were killed.
            outcomes.append(str(error))
    ended.set()
    killer.join()
    assert all(outcome == (1, 16) or "the worker ended with signal 9" in outcome for outcome in outcomes)
    assert outcomes.count((1, 16)) > 200


def test_workers_end_with_the_network(path: Path, host: Host) -> None:
    found = pids(host.add("model", path, workers="processes", replicas=2))
    host.remove("model")
    end = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in found) and time.monotonic() < end:
        time.sleep(0.01)
    assert not [pid for pid in found if os.path.exists(f"/proc/{pid}")]


def test_regions_are_used_again_when_nobody_has_their_arrays() -> None:
    regions = Regions()
    region, _ = regions.taken(100)
    description, _ = layout_of(kinds_of([("y", np.zeros(3))]))
    arrays = regions.arrays(region, description)
    assert regions.taken(10)[0] is not region
    part = arrays["y"][1:]
    del arrays
    gc.collect()
    assert regions.taken(10)[0] is not region
    del part
    assert regions.taken(10)[0] is region
    regions.give_back(region)
    larger, small = regions.taken(10_000)
    assert larger.size >= 10_000
    assert region in small

"""Stages of a model in workers of their own: equal results, several requests at once, and workers that end."""

from __future__ import annotations

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
from onnx import TensorProto, helper

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, InputError, OptionError, UnsupportedError
from glow_mlir.host.host import Host
from glow_mlir.host.network import Network
from glow_mlir.host.pipelines import PipelineRunner
from glow_mlir.host.processes import ProcessRunner
from glow_mlir.host.requests import Answer

WIDTH, ROWS = 256, 32


def layers(count: int, *, skips: bool = False, rows: int | str = ROWS) -> onnx.ModelProto:
    """So many layers; where it skips, the input and the first of them are read again by the last."""
    g = GraphBuilder(0)
    first = result = g.node("Relu", linear(g, "x", WIDTH, WIDTH))
    for _ in range(count - 1):
        result = g.node("Relu", linear(g, result, WIDTH, WIDTH))
    outputs: dict[str, Any] = {}
    if skips:
        outputs[first] = (rows, WIDTH)
        result = g.node("Add", g.node("Add", result, first), "x")
    return g.model({"x": (TensorProto.FLOAT, (rows, WIDTH))}, {**outputs, result: (rows, WIDTH)})


def inputs(seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((ROWS, WIDTH), np.float32)}


@pytest.fixture
def host() -> Generator[Host]:
    """A host that leaves nothing behind."""
    with Host() as made:
        yield made
    assert not threads_left()


def runners(network: Network) -> list[Any]:
    """The workers of the first replica, stage by stage."""
    runner = network.replicas[0].runner
    assert isinstance(runner, PipelineRunner)
    return [stage.runner for stage in runner.stages]


def pids(network: Network) -> list[int]:
    """What the system calls them."""
    return [runner.pid for runner in runners(network) if isinstance(runner, ProcessRunner)]


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("skips", [False, True])
def test_answers_are_those_of_the_whole(host: Host, workers: str, stages: int, skips: bool) -> None:
    model = layers(6, skips=skips)
    names = [output.name for output in model.graph.output]
    network = host.add("net", model, workers=workers, stages=stages)
    assert len(runners(network)) == stages
    assert [argument.name for argument in network.inputs] == ["x"]
    assert [argument.name for argument in network.outputs] == names
    whole = InferenceSession(model)
    answers = [network.submit(inputs(seed)) for seed in range(12)]
    for seed, answer in enumerate(answers):
        found = answer.result(60)
        assert list(found) == names
        for name, array in zip(names, whole.run(None, inputs(seed)), strict=True):
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)
    assert network.run(inputs(), outputs=names[-1:]).keys() == set(names[-1:])
    assert network.memory_bytes > 6 * 4 * WIDTH * WIDTH
    with pytest.raises(InputError, match="must be float32"):
        network.run({"x": np.zeros((ROWS, WIDTH + 1), np.float32)})


def test_stages_compute_at_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    network = host.add("net", layers(4), stages=2)
    first, second = runners(network)
    entered, is_waited = threading.Semaphore(0), list[bool]()

    def run_first(given: Any, run: Any = first.run) -> Any:
        entered.release()
        return run(given)

    def run_second(given: Any, run: Any = second.run) -> Any:
        if not is_waited:  # For the first stage of both requests.
            is_waited.extend(entered.acquire(timeout=20) for _ in range(2))
        return run(given)

    monkeypatch.setattr(first, "run", run_first)
    monkeypatch.setattr(second, "run", run_second)
    for answer in [network.submit(inputs(seed)) for seed in range(2)]:
        answer.result(60)
    assert is_waited == [True, True]


@pytest.mark.parametrize("stage", [0, 1])
def test_a_stage_whose_worker_ends_is_replaced(host: Host, stage: int) -> None:
    network = host.add("net", layers(4), workers="processes", stages=2)
    wanted = network.run(inputs())
    before = pids(network)
    os.kill(before[stage], signal.SIGKILL)
    for _ in range(3):
        for name, array in network.submit(inputs()).result(60).items():
            np.testing.assert_array_equal(array, wanted[name])
    after = pids(network)
    assert after[stage] != before[stage]
    assert after[1 - stage] == before[1 - stage]


def test_workers_that_end_under_load_lose_no_request(host: Host) -> None:
    network = host.add("net", layers(4), workers="processes", stages=2, queue=200)
    wanted = [next(iter(network.run(inputs(seed)).values())) for seed in range(4)]
    answers: list[Answer] = []
    for number in range(60):
        answers.append(network.submit(inputs(number % 4)))
        if number in (10, 30):
            os.kill(pids(network)[number // 30], signal.SIGKILL)
            time.sleep(0.05)
    failed = 0
    for number, answer in enumerate(answers):
        try:
            (found,) = answer.result(60).values()
        except GlowError:  # Of which two workers have ended, one after the other.
            failed += 1
        else:
            np.testing.assert_array_equal(found, wanted[number % 4])
    assert failed <= 4
    counts = network.statistics.counts
    assert counts["succeeded"] + counts["failed"] == 64


def test_files_of_stages_go_with_the_network(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    host.add("net", layers(4), workers="processes", stages=2).run(inputs())
    assert list(tmp_path.glob("glow-stages-*/*.mlir"))
    host.remove("net")
    end = time.monotonic() + 20
    while list(tmp_path.glob("glow-stages-*")) and time.monotonic() < end:
        time.sleep(0.01)
    assert not list(tmp_path.glob("glow-stages-*"))


def test_what_has_no_stages(host: Host) -> None:
    with pytest.raises(OptionError, match="cannot batch"):
        host.add("net", layers(4), stages=2, batch=4)
    with pytest.raises(OptionError, match="not on devices"):
        host.add("net", layers(4), stages=2, devices="cpu")
    free = layers(4, rows="N")
    with pytest.raises(GlowError, match="'N' of input 'x'"):
        host.add("net", free, stages=2)
    with pytest.raises(UnsupportedError, match="partitions take numbers"):
        host.add("net", free, stages=2, dimensions={"N": (1, 8)})
    assert not host.names


def test_a_model_that_is_little_has_fewer_stages(host: Host) -> None:
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xyz")
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    network = host.add("net", helper.make_model(helper.make_graph(nodes, "graph", [x], [y, z]), ir_version=9), stages=4)
    found = network.run({"x": np.array([1, 2], np.float32)})
    assert {name: array.tolist() for name, array in found.items()} == {"y": [-1, -2], "z": [1, 2]}

"""Replicas as actors of Ray, on a cluster of this machine."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from host_networks import rows_of
from models import GraphBuilder, linear
from onnx import TensorProto

from glow_mlir.errors import GlowError
from glow_mlir.host.host import Host
from glow_mlir.host.pipelines import PipelineRunner

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Generator[Any]:
    """A cluster of this machine, as a program may have one already."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="error")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a layer."""
    g = GraphBuilder(0)
    result = g.node("Relu", linear(g, "x", 2, 5))
    found = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(g.model({"x": (TensorProto.FLOAT, ("N", 2))}, {result: ("N", 5)}), found)
    return found


def test_answers_are_those_of_this_process(path: Path) -> None:
    with Host() as host:
        here = host.add("here", path, batch=4)
        there = host.add("there", path, batch=4, workers="ray", replicas=2)
        answers = [there.submit(rows_of(n, n % 3 + 1)) for n in range(12)]
        for n, answer in enumerate(answers):
            (wanted,), (found,) = here.run(rows_of(n, n % 3 + 1)).values(), answer.result(60).values()
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
            assert found.flags.writeable
        assert there.memory_bytes > 0


def test_an_actor_that_is_killed_is_replaced(path: Path, cluster: Any) -> None:
    with Host() as host:
        network = host.add("net", path, workers="ray", replicas=2)
        (wanted,) = network.run(rows_of(1)).values()
        for turn in range(2):
            runner: Any = network.replicas[turn].runner
            before = runner._actor
            cluster.kill(before)
            for _ in range(4):
                (found,) = network.submit(rows_of(1)).result(60).values()
                np.testing.assert_array_equal(found, wanted)
            assert runner._actor is not before
        assert network.statistics.counts["failed"] == 0


def test_mistakes_are_told_as_they_are_here(path: Path) -> None:
    with Host() as host, pytest.raises(GlowError, match="cannot be read"):
        host.add("net", path.with_name("none.onnx"), workers="ray")


def test_stages_are_actors_of_which_one_that_is_killed_is_replaced(cluster: Any) -> None:
    width = 256
    g = GraphBuilder(0)
    result = "x"
    for _ in range(4):
        result = g.node("Relu", linear(g, result, width, width))
    model = g.model({"x": (TensorProto.FLOAT, (32, width))}, {result: (32, width)})
    given = [np.random.default_rng(seed).standard_normal((32, width), np.float32) for seed in range(8)]
    with Host() as host:
        whole, network = host.add("whole", model), host.add("stages", model, workers="ray", stages=2)
        wanted = [whole.run({"x": x})[result] for x in given]
        runner = network.replicas[0].runner
        assert isinstance(runner, PipelineRunner)
        first, second = (cast("Any", stage.runner) for stage in runner.stages)
        for killed in (None, first, second):
            before = None if killed is None else killed._actor
            if killed is not None:
                cluster.kill(before)
            answers = [network.submit({"x": x}) for x in given[: 8 if killed is None else 1]]
            for answer, expected in zip(answers, wanted, strict=False):
                np.testing.assert_allclose(answer.result(60)[result], expected, rtol=1e-5, atol=1e-5)
            assert killed is None or killed._actor is not before
        assert network.statistics.counts["failed"] == 0

"""Workers, their jobs and environments, and turns with engines that are here anyway."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from models import GraphBuilder, random_inputs
from onnx import TensorProto

from contest.client import Worker, WorkerFailure, one_line
from contest.engines import ENGINES
from contest.environments import EnvironmentFailure, environment, last_words
from contest.job import Job
from contest.operations import flops
from contest.probe import Probe
from contest.turns import Settings, Turns
from contest.workloads import WORKLOADS, Workload


def small(folder: Path) -> Workload:
    """A product of matrices with its inputs, on disk."""
    g = GraphBuilder(0)
    y = g.node("MatMul", "input", g.weight(np.eye(3, 4, dtype=np.float32)))
    model = g.model({"input": (TensorProto.FLOAT, [2, 3])}, {y: [2, 4]})
    path, inputs = folder / "model.onnx", folder / "inputs.npz"
    path.write_bytes(model.SerializeToString())
    np.savez(inputs, allow_pickle=False, **random_inputs(model, np.random.default_rng(0)))
    return Workload("small", path, inputs, [y], flops(model))


def job(workload: Workload, engine: str, threads: int = 1) -> Job:
    home = str(workload.model.parent)
    return Job(engine, str(workload.model), str(workload.inputs), workload.outputs, home, threads, [0])


def test_job_survives_its_text(tmp_path: Path):
    written = job(small(tmp_path), "glow")
    assert Job.from_json(written.to_json()) == written


def test_worker_answers(tmp_path: Path):
    workload = small(tmp_path)
    worker = Worker(job(workload, "glow"), Path(sys.executable), tmp_path / "log", timeout=120)
    try:
        assert len(worker.seconds(3)) == 3
        with np.load(workload.inputs) as inputs:
            np.testing.assert_allclose(worker.outputs()[0], inputs["input"] @ np.eye(3, 4), rtol=1e-6)
        assert worker.facts["load_seconds"] > 0
        assert worker.run_bytes() >= 0
    finally:
        worker.stop()


def test_worker_says_why_it_fails(tmp_path: Path):
    with pytest.raises(WorkerFailure, match=r"No module named 'contest.runners.nothing'"):
        Worker(job(small(tmp_path), "nothing"), Path(sys.executable), tmp_path / "log", timeout=120)


def test_worker_that_dies_is_named_with_its_last_words(tmp_path: Path):
    false = tmp_path / "python"
    false.write_text("#!/bin/sh\necho 'Error: out of luck' >&2\nkill -11 $$\n")
    false.chmod(0o755)
    with pytest.raises(WorkerFailure, match="died of SIGSEGV: Error: out of luck"):
        Worker(job(small(tmp_path), "glow"), false, tmp_path / "log", timeout=120)


def test_worker_that_hangs_is_given_up(tmp_path: Path):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(WorkerFailure, match="no answer within"):
        Worker(job(small(tmp_path), "glow"), slow, tmp_path / "log", timeout=0.2)


def test_turns_measure_all_and_name_who_does_not_run(tmp_path: Path):
    settings = Settings(rounds=2, cores=[0], budget=0.01, timeout=120, folder=tmp_path)
    pythons: dict[str, Path | str] = {
        "glow": Path(sys.executable),
        "onnxruntime": Path(sys.executable),
        "openvino": "cannot be installed: no wheel",
    }
    measured = Turns(small(tmp_path), settings, Probe([0])).run(pythons)
    assert list(measured.timed()) == ["glow", "onnxruntime"]
    assert all(len(result.seconds) == 2 for result in measured.timed().values())
    assert measured.results["glow"].difference is not None
    assert measured.results["openvino"].reason == "cannot be installed: no wheel"
    assert len(measured.probes) == 2
    assert measured.repeated <= 2


def test_slow_engines_take_part_in_few_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("contest.turns.SLOW", 1)
    settings = Settings(rounds=5, cores=[0], budget=0.01, timeout=120, folder=tmp_path)
    pythons: dict[str, Path | str] = dict.fromkeys(("glow", "onnxruntime"), Path(sys.executable))
    measured = Turns(small(tmp_path), settings, Probe([0])).run(pythons)
    assert sorted(len(result.seconds) for result in measured.timed().values()) == [3, 5]


def test_environment_that_cannot_be_made_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "python").write_text("#!/bin/sh\necho 'ERROR: no such version' >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(EnvironmentFailure, match="no such version"):
        environment("engine", ["engine==1"], tmp_path)


def test_every_engine_has_a_runner():
    folder = Path(environment.__code__.co_filename).parent / "runners"
    assert {path.stem for path in folder.glob("*.py")} == set(ENGINES)


def test_last_words_prefer_an_error():
    assert last_words("a\nERROR: b\nc\n") == "ERROR: b"
    assert last_words("a\n\n b \n") == "b"
    assert last_words("") == "no output"


def test_one_line_is_short():
    assert one_line("first:\nsecond\nthird") == "first: second"
    assert len(one_line("x" * 1000)) == 200


@pytest.mark.long
@pytest.mark.parametrize(("name", "expected"), [("mobilenet_v2", 0.602e9), ("resnet18", 3.63e9), ("chain_math", 0)])
def test_operations_are_counted(name: str, expected: float):
    assert flops(WORKLOADS[name]()) == pytest.approx(expected, rel=0.01)

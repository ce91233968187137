"""Replicas that are derived from compiled models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from glow_mlir import InferenceSession
from glow_mlir.errors import OptionError
from glow_mlir.runtime.host_programs import Allocate, Call, Free, HostProgram, RecordEvent, Step, Transfer, WaitEvent
from glow_mlir.runtime.partitions import PartitionedExecutable
from glow_mlir.runtime.queue_trace import QueueTrace, Span, tracing
from glow_mlir.simulation.arrivals import ClosedLoop, Load
from glow_mlir.simulation.engine import simulate
from glow_mlir.simulation.program_stages import from_host_program, measured_seconds
from glow_mlir.simulation.service import Affine, Fixed, Measured
from glow_mlir.simulation.system import Hop, Stage, System

STEPS: tuple[Step, ...] = (
    Allocate(2, "gpu:0", 400),
    Transfer("gpu:0", 2, 0, 400),
    Call("gpu:0", "first", (2, 3)),
    Transfer("gpu:0", 4, 3, 100),
    RecordEvent("gpu:0", 0),
    Free(2),
    Call("gpu:0", "side", (3,)),
    RecordEvent("other:0", 1),
    WaitEvent("cpu:0", 0),
    WaitEvent("cpu:0", 1),
    Call("cpu:0", "second", (4, 1)),
)


def test_stages_follow_queues_and_events() -> None:
    program = HostProgram("main", (), STEPS)
    laws = {"first": 0.003, "side": [0.001, 0.002], "second": Affine(0.001, 0.01)}
    found = from_host_program(program, laws, lambda nbytes: nbytes / 1e6, wake_seconds=5e-5)
    assert found == (
        Stage("transfer", "gpu:0", Fixed(0.0004)),
        Stage("first", "gpu:0", Fixed(0.003), (Hop(0),)),
        Stage("transfer", "gpu:0", Fixed(0.0001), (Hop(1),)),
        Stage("side", "gpu:0", Measured((0.001, 0.002)), (Hop(2),)),
        Stage("second", "cpu:0", Affine(0.001, 0.01), (Hop(2, 5e-5),)),
    )
    answer = simulate(System((found,)), Load(ClosedLoop(1), 10))
    assert answer.latency.p50 == pytest.approx(400e-6 + 0.003 + 100e-6 + 5e-5 + 0.011)


def test_entry_without_seconds_is_one_line() -> None:
    with pytest.raises(OptionError, match="entry 'side' has no seconds"):
        from_host_program(HostProgram("main", (), STEPS), {"first": 1.0})


def test_traces_give_seconds() -> None:
    trace = QueueTrace([Span("cpu:0", "main", 0, 2_000_000), Span("cpu:0", "main", 0, 3_000_000)])
    assert measured_seconds(trace) == {"main": Measured((0.002, 0.003))}


def test_compiled_pipeline_is_two_stages_whose_seconds_a_trace_has(tmp_path: Path) -> None:
    placement = tmp_path / "placement.json"
    placement.write_text(json.dumps({"cpu:1": ["classifier", "softmax"]}), "utf-8")
    model = str(ROOT / "examples" / "digits.onnx")
    session = InferenceSession(model, devices="cpu,cpu", placement=str(placement))
    inputs = {"image": np.zeros((1, 1, 8, 8), np.float32)}
    session.run(None, inputs)
    trace = QueueTrace()
    with tracing(trace):
        session.run(None, inputs)
    executable = session.executable
    assert isinstance(executable, PartitionedExecutable)
    (program,) = executable.programs.values()
    assert isinstance(program, HostProgram)
    found = from_host_program(program, measured_seconds(trace))
    assert [stage.device for stage in found] == ["cpu:0", "cpu:1"]
    assert found[1].after == (Hop(0),)

"""`glow-run` on several devices: what it writes, and what it is told of all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from in_process import run_tool

from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import read_module
from glow_mlir.tools.glow_run import main

TEXT = """
glow_high.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = glow_high.relu %x : tensor<8xf32> loc("first")
  %b = glow_high.exp %a : tensor<8xf32> loc("second")
  glow_high.return %b
}
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A model in two partitions."""
    model, placement = tmp_path / "model.mlir", tmp_path / "placement.json"
    model.write_text(TEXT)
    placement.write_text('{"cpu:0": ["first"], "cpu:1": ["second"]}')
    return [str(model), "--devices", "cpu,cpu", "--placement", str(placement)]


def run(folder: Path, *arguments: str) -> str:
    """Run the tool; its error, if any."""
    environment = {"GLOW_CACHE_DIR": str(folder / "cache")}
    return run_tool(main, arguments, program="glow-run", environment=environment, directory=folder).stderr.decode()


def test_phases_of_all_devices_are_written(arguments: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "phases"
    assert not run(tmp_path, *arguments, "--dump-phases", str(folder))
    names = {path.name for path in folder.iterdir()}
    for part in ("main_part_0", "main_part_1"):
        assert {f"06-lowered-{part}.mlir", f"13-llvm-{part}.s"} <= names
    assert "05-host-program.mlir" in names
    for path in folder.glob("*-main_part_1.mlir"):
        read_module(path, new_context())


def test_fields_are_those_of_all_devices(arguments: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "phases"
    run(tmp_path, *arguments, "--accuracy", "strict", "--threads", "2", "--dump-phases", str(folder))
    devices = (folder / "03-placed.mlir").read_text().partition("glow.devices")[2].splitlines()[0]
    assert devices.count('threads = 2, accuracy = "strict"') == 2


def test_values_of_devices_are_not_kept(arguments: list[str], tmp_path: Path) -> None:
    told = run(tmp_path, *arguments, "--dump-values", "values")
    assert "--dump-values keeps values of one machine, and --devices says several" in told


def test_placement_is_not_written_over(arguments: list[str], tmp_path: Path) -> None:
    assert "placement.json" in run(tmp_path, *arguments, "--json", arguments[-1])
    assert "first" in Path(arguments[-1]).read_text()


def test_queues_are_measured_traced_and_drawn(arguments: list[str], tmp_path: Path) -> None:
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    assert not run(tmp_path, *arguments, "--profile", "--trace", str(trace), "--dump-html", str(page))
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"cpu:0", "cpu:1"}
    assert {event["name"] for event in events if event["ph"] == "X"} == {"main_part_0", "main_part_1"}
    assert page.read_text().count("<rect") == 2


@pytest.mark.parametrize("stage", ["03-placed", "04-partitioned", "05-host-program"])
def test_module_of_each_stage_runs(arguments: list[str], tmp_path: Path, stage: str) -> None:
    outputs = [tmp_path / name for name in ("whole.npz", "rest.npz")]
    assert not run(tmp_path, *arguments, "--dump-phases", "phases", "--outputs", str(outputs[0]))
    assert not run(tmp_path, f"phases/{stage}.mlir", "--outputs", str(outputs[1]))
    whole, rest = (np.load(path)["result"] for path in outputs)
    np.testing.assert_array_equal(whole, rest)

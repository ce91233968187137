"""Compiled partitions are kept on disk, and loaded without the compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import random_inputs
from partition_models import SMALL

from glow_mlir import InferenceSession
from glow_mlir.runtime.cache import ArtifactCache
from glow_mlir.runtime.partitions import PartitionedExecutable

START = """
import sys
import numpy as np
import glow_mlir
session = glow_mlir.InferenceSession(sys.argv[1], devices=sys.argv[2], partition="pipeline")
arrays = np.load(sys.argv[3])
np.save(sys.argv[4], session.run(None, {name: arrays[name] for name in arrays.files})[0])
print("xdsl" in sys.modules, "onnx" in sys.modules)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is kept for the test."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def entries() -> int:
    """How many artifacts are kept."""
    folder = ArtifactCache().directory
    return len([path for path in folder.iterdir() if len(path.name) == 64]) if folder.exists() else 0


def test_second_start_is_without_the_compiler(tmp_path: Path) -> None:
    path, arrays, result = (tmp_path / name for name in ("model.onnx", "inputs.npz", "result.npy"))
    model = SMALL["resnet"]()
    onnx.save(model, path)
    inputs = random_inputs(model, np.random.default_rng(0))
    np.savez(arrays, allow_pickle=False, **inputs)
    first = InferenceSession(path, devices="cpu,cpu,own_memory=1", partition="pipeline").run(None, inputs)[0]
    assert entries() == 1
    command = [sys.executable, "-c", START, str(path), "cpu,cpu,own_memory=1", str(arrays), str(result)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.split() == ["False", "False"]
    np.testing.assert_array_equal(np.load(result), first)
    assert entries() == 1


def test_key_has_devices_and_the_files_that_place(tmp_path: Path) -> None:
    path, placement = tmp_path / "model.onnx", tmp_path / "placement.json"
    onnx.save(SMALL["recommendation"](), path)
    name = onnx.load(path).graph.node[-1].name
    for number, (devices, text) in enumerate((("cpu,cpu", "cpu:0"), ("cpu,cpu", "cpu:1"), ("cpu,cpu,cpu", "cpu:1")), 1):
        placement.write_text(f'{{"{text}": ["{name}"]}}')
        InferenceSession(path, devices=devices, placement=str(placement))
        assert entries() == number


def test_backends_that_keep_nothing_keep_nothing_together(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(SMALL["recommendation"](), path)
    InferenceSession(path, devices="cpu,interpreter")
    assert entries() == 0


def test_each_part_is_loaded_on_its_device(tmp_path: Path) -> None:
    path, placement, one = tmp_path / "model.onnx", tmp_path / "placement.json", "cuda,target=emulated-sm_80"
    model = SMALL["recommendation"]()
    onnx.save(model, path)
    placement.write_text(f'{{"cuda:1": ["{model.graph.node[-1].name}"]}}')
    inputs = random_inputs(model, np.random.default_rng(0))
    sessions = [InferenceSession(path, devices=f"{one},{one}", placement=str(placement)) for _ in range(2)]
    assert entries() == 1
    for session in sessions:
        executable = session.executable
        assert isinstance(executable, PartitionedExecutable)
        assert [device.name for device in executable.devices.values()] == ["emulated-cuda:0", "emulated-cuda:1"]
    first, second = (session.run(None, inputs)[0] for session in sessions)
    np.testing.assert_array_equal(first, second)

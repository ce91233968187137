"""
The memory that compiling and running a model takes at most, in a process of its own.

What Python, numpy and LLVM take is told by the same model with small weights; what weights add to it is bounded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak as Linux tells it")

TESTS = Path(__file__).parents[1]

SLACK = 24 << 20
"""Bytes for parts that are computed at once, what LLVM takes meanwhile, larger activations, and chance."""


def model(channels: int) -> onnx.ModelProto:
    """A convolution, its normalization, and a layer behind a flattening, which has its weights permuted."""
    random = np.random.default_rng(0)
    features = channels * 9
    arrays = {
        "filter": random.normal(size=(channels, channels, 3, 3)),
        "weights": random.normal(size=(1000, features)),
        **{name: random.uniform(1, 2, channels) for name in ("scale", "offset", "mean", "variance")},
    }
    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "scale", "offset", "mean", "variance"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "weights"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, 3, 3))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1000))
    constants = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def peaks(path: Path, cached: bool) -> tuple[int, int]:
    """The peak of memory and the bytes of the constants, of a session in a new process."""
    command = [sys.executable, "-m", "peak_memory", str(path), "cached" if cached else "cold"]
    places = {"PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent, TESTS / "support")))}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | places)
    peak, constants = done.stdout.split()
    return int(peak), int(constants)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The model with small and with large weights."""
    folder = tmp_path_factory.mktemp("models")
    paths = folder / "small.onnx", folder / "large.onnx"
    for path, channels in zip(paths, (32, 1536), strict=True):
        onnx.save(model(channels), path)
    return paths


def test_weights_are_in_memory_once_while_they_are_packed(saved: tuple[Path, Path]) -> None:
    (least, few), (most, many) = (peaks(path, cached=False) for path in saved)
    assert many - few > 100 << 20, "the weights are too small to tell"
    assert most - least < many - few + SLACK


def test_warm_start_reads_the_packed_weights_alone(
    saved: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path))
    for path in saved:
        peaks(path, cached=True)
    (least, few), (most, many) = (peaks(path, cached=True) for path in saved)
    assert most - least < many - few + SLACK


def test_session_leaves_no_weights_in_the_store(saved: tuple[Path, Path]) -> None:
    code = """
import gc, sys
from glow_mlir import InferenceSession
from glow_mlir.constants import weights
session = InferenceSession(sys.argv[1], cache=False)
gc.collect()
print(len(weights._STORE))
"""
    command = [sys.executable, "-c", code, str(saved[0])]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["0"]

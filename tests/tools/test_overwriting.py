"""No tool writes over what it reads, or over what it has just written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from glow_mlir.tools.glow_compile import main as glow_compile
from glow_mlir.tools.glow_import import main as glow_import
from glow_mlir.tools.glow_run import main as glow_run


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the working folder that would be read as a model."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    (tmp_path / "link.onnx").symlink_to("m.onnx")
    return path


@pytest.mark.parametrize("output", ["m.onnx", "./m.onnx", "link.onnx", "y.weights"])
def test_glow_import_writes_no_file_twice(model: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert glow_import([str(model), "-o", output]) == 1
    reason = "it is written twice" if output == "y.weights" else "it is read as well"
    line = f"{Path(output)}: error: cannot be written: {reason} (hint: name another file)\n"
    assert capsys.readouterr().err == line
    assert model.read_bytes() == b"model"
    assert not Path("y.weights").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--json", "./m.onnx"], "./m.onnx: error: cannot be written: it is read as well"),
        (["--inputs", "x.npz", "--outputs", "x.npz"], "x.npz: error: cannot be written: it is read as well"),
        (["--outputs", "x.npz", "--json", "x.npz"], "x.npz: error: cannot be written: it is written twice"),
    ],
)
def test_glow_run_writes_no_file_twice(
    model: Path, options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert glow_run(["m.onnx", *options]) == 1
    assert capsys.readouterr().err == f"{line} (hint: name another file)\n"
    assert model.read_bytes() == b"model"


@pytest.fixture
def divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the working folder whose weights lie beside it, under names that outputs may have."""
    monkeypatch.chdir(tmp_path)
    weights = [numpy_helper.from_array(np.ones(300, np.float32), name) for name in "ab"]
    nodes = [helper.make_node("Add", ["x", "a"], ["t"]), helper.make_node("Add", ["t", "b"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [300]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), ir_version=9)
    for tensor, name in zip(model.graph.initializer, ("m.weights", "m.weights.bin"), strict=True):
        set_external_data(tensor, name)
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(
    ("tool", "options", "file"),
    [
        (glow_import, ["-o", "m.mlir"], "m.weights"),
        (glow_import, ["--to-onnx", "m.weights.bin"], "m.weights.bin"),
        (glow_run, ["--json", "m.weights"], "m.weights"),
        (glow_run, ["--outputs", "./m.weights.bin"], "./m.weights.bin"),
        (glow_compile, ["-o", "."], "m.weights.bin"),
    ],
)
def test_the_weights_of_a_model_are_read_as_well(
    divided: Path,
    tool: Callable[[list[str]], int],
    options: list[str],
    file: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path.name: path.read_bytes() for path in divided.parent.iterdir()}
    assert tool(["m.onnx", *options]) == 1
    assert capsys.readouterr().err.startswith(
        (f"{file}: error: cannot be written: it is read", f"{file}: error: would")
    )
    assert {path.name: path.read_bytes() for path in divided.parent.iterdir()} == before


def test_devices_may_be_written_twice(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert glow_run(["m.onnx", "--json", "/dev/null", "--stats", "/dev/null"]) == 1
    assert "cannot be written" not in capsys.readouterr().err

"""No tool writes over what it reads, or over what it has just written."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_devices_may_be_written_twice(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert glow_run(["m.onnx", "--json", "/dev/null", "--stats", "/dev/null"]) == 1
    assert "cannot be written" not in capsys.readouterr().err

"""Files of `torch.export.save` are models everywhere, and nothing in them is unpickled."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import glow_mlir  # noqa: E402
from glow_mlir.errors import ModelError, UnsupportedError  # noqa: E402

pytestmark = pytest.mark.extra


def saved(path: Path) -> Any:
    """A module, written to a file with a free batch."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU()).eval()
    batch = torch.export.Dim("batch", max=64)
    torch.export.save(torch.export.export(module, (torch.randn(2, 4),), dynamic_shapes=({0: batch},)), path)
    return module


def changed(path: Path, change: Any) -> Path:
    """The archive with other contents: `change` maps a name and its bytes to new bytes, or to nothing."""
    target = path.with_name(f"changed{path.suffix}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            if (data := change(name, source.read(name))) is not None:
                archive.writestr(name, data)
    return target


def test_sessions(tmp_path: Path) -> None:
    """By path, for several batches, and by `from_torch`."""
    path = tmp_path / "model.pt2"
    module = saved(path)
    for session in (glow_mlir.InferenceSession(path), glow_mlir.from_torch(str(path))):
        for size in (2, 7):
            x = torch.randn(size, 4)
            (name,) = [item.name for item in session.get_inputs()]
            (found,) = session.run(None, {name: x.numpy()})
            np.testing.assert_allclose(found, module(x).detach(), atol=1e-6)


def test_tools(tmp_path: Path) -> None:
    """`glow-run` takes the file."""
    saved(tmp_path / "model.pt2")
    command = [sys.executable, "-m", "glow_mlir.tools.glow_run", "model.pt2", "--seed", "0"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "float32[1, 3]" in finished.stdout


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """Sample inputs are not read; weights that are pickles are refused."""
    path = tmp_path / "model.pt2"
    saved(path)
    bomb = io.BytesIO()
    torch.save({"here": print}, bomb)

    def with_bomb(name: str, data: bytes) -> bytes:
        return bomb.getvalue() if name.endswith("sample_inputs/model.pt") else data

    glow_mlir.InferenceSession(changed(path, with_bomb))

    def with_pickled_weights(name: str, data: bytes) -> bytes:
        if not name.endswith("weights_config.json"):
            return data
        config = json.loads(data)
        for item in config["config"].values():
            item["use_pickle"] = True
        return json.dumps(config).encode()

    with pytest.raises(UnsupportedError, match="it holds a pickle"):
        glow_mlir.InferenceSession(changed(path, with_pickled_weights))


def test_nothing_is_evaluated(tmp_path: Path) -> None:
    """Neither code in the place of a size, nor a function of PyTorch that is no operator."""
    path = tmp_path / "model.pt2"
    saved(path)

    def replaced(old: bytes, new: bytes) -> Path:
        return changed(path, lambda name, data: data.replace(old, new) if name.endswith("model.json") else data)

    with zipfile.ZipFile(path) as archive:
        (program,) = [archive.read(name) for name in archive.namelist() if name.endswith("model.json")]
    assert b"Symbol('s" in program
    size = program[program.index(b"Symbol('s") :].split(b'"')[0]
    for code in (b"__import__('os').system('true')", b"Symbol.mro()", b"[1][0]", b"exec('1')", b"Lambda(1, 2)"):
        with pytest.raises(UnsupportedError, match="is no formula"):
            glow_mlir.InferenceSession(replaced(size, code))
    for target in (b"torch.os.system", b"_operator.attrgetter", b"builtins.eval"):
        with pytest.raises(UnsupportedError, match="is no operator"):
            glow_mlir.InferenceSession(replaced(b"torch.ops.aten.linear.default", target))


def test_what_is_read_is_what_was_checked(tmp_path: Path) -> None:
    """Not another entry of the same name, up to case; texts that would be inflated are refused."""
    path, twice, small = (tmp_path / f"{name}.pt2" for name in ("model", "twice", "small"))
    module = saved(path)
    with zipfile.ZipFile(path) as source:
        contents = {name: source.read(name) for name in source.namelist()}
    (program,) = [name for name in contents if name.endswith("models/model.json")]
    hostile = contents[program].replace(b"torch.ops.aten.linear.default", b"torch.os.system")
    with zipfile.ZipFile(twice, "w") as archive:
        for name, data in contents.items():
            if name == program:
                archive.writestr(name.replace("model.json", "MODEL.JSON"), hostile)
            archive.writestr(name, data)
    x = torch.randn(2, 4)
    session = glow_mlir.InferenceSession(twice)
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found, module(x).detach(), atol=1e-6)
    with zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with pytest.raises(ModelError, match="is compressed"):
        glow_mlir.InferenceSession(small)


def test_damaged_files(tmp_path: Path) -> None:
    """One line each, with the file."""
    path = tmp_path / "model.pt2"
    saved(path)
    cut = tmp_path / "cut.pt2"
    cut.write_bytes(path.read_bytes()[:3000])
    for damaged in (
        cut,
        changed(path, lambda name, data: None if name.endswith("model.json") else data),
        changed(path, lambda name, data: b"{}" if name.endswith("model.json") else data),
        changed(path, lambda name, data: data[:5] if name.endswith("weight_0") else data),
        changed(path, lambda name, data: b"[]" if name.endswith("weights_config.json") else data),
    ):
        with pytest.raises(ModelError) as caught:
            glow_mlir.InferenceSession(damaged)
        assert str(damaged) in str(caught.value)
        assert "\n" not in str(caught.value)

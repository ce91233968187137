"""The optimized graph of a session as a model: where it and its constants go, and what they may not replace."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from glow_mlir import InferenceSession, SessionOptions
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.export import exporter

NAME = "session.optimized_model_external_initializers_file_name"
LEAST = "session.optimized_model_external_initializers_min_size_in_bytes"


def saving(path: Path, constants: str = "", least: int = 1) -> SessionOptions:
    """Options that write the optimized graph to a file, and its constants, where they are named, to one beside it."""
    told = SessionOptions()
    told.optimized_model_filepath = str(path)
    if constants:
        told.add_session_config_entry(NAME, constants)
        told.add_session_config_entry(LEAST, str(least))
    return told


def product_by(weight: onnx.TensorProto) -> onnx.ModelProto:
    """A matrix product of x, 2 × 20, and a constant, 20 × 3."""
    nodes = [onnx.helper.make_node("MatMul", ["x", weight.name], ["y"])]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2, size]) for name, size in (("x", 20), ("y", 3))]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight]), ir_version=9)


@pytest.mark.parametrize("is_within", [False, True])
def test_large_constants_of_the_optimized_graph_go_to_a_file_beside_it(
    tmp_path: Path, is_within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process is in the folder of those that were written before."""
    if is_within:
        monkeypatch.chdir(tmp_path)
    weight = onnx.numpy_helper.from_array(np.ones((20, 3), np.float32), "w")
    model = product_by(weight)
    for least, is_beside in ((100, True), (1000, False)):
        told = saving(tmp_path / "optimized.onnx", "weights.bin", least)
        for _ in range(2):
            InferenceSession(model, told, cache=False)
            beside = tmp_path / "weights.bin"
            assert (beside.stat().st_size if beside.exists() else 0) == (240 if is_beside else 0)
        (y,) = InferenceSession(tmp_path / "optimized.onnx").run(None, {"x": np.ones((2, 20), np.float32)})
        np.testing.assert_array_equal(y, np.full((2, 3), 20, np.float32))


@pytest.mark.parametrize("name", ["{folder}/weights.bin", "../weights.bin", "optimized.onnx", "./optimized.onnx", ".."])
def test_constants_of_an_optimized_model_go_beside_it(tmp_path: Path, name: str) -> None:
    """ONNX's readers take no other files; none that is there is touched."""
    folder = tmp_path / "models"
    folder.mkdir()
    told = saving(folder / "optimized.onnx", name.format(folder=tmp_path))
    others = [tmp_path / "weights.bin", folder / "optimized.onnx"]
    for path in others:
        path.write_bytes(b"other")
    with pytest.raises(OptionError, match="is not a valid file for the model's constants"):
        InferenceSession(product_by(onnx.numpy_helper.from_array(np.ones((20, 3), np.float32), "w")), told)
    assert [path.read_bytes() for path in others] == [b"other", b"other"]


# ---- what a session is made of ---------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model, source.onnx, whose weights lie beside it, in weights.data."""
    path = tmp_path / "source.onnx"
    model = product_by(onnx.numpy_helper.from_array(np.ones((20, 3), np.float32), "w"))
    onnx.save(model, path, save_as_external_data=True, location="weights.data", size_threshold=0)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["weights.data", "./weights.data", "source.onnx"])
def test_constants_replace_no_file_of_the_model(source: Path, name: str) -> None:
    before = contents(source.parent)
    with pytest.raises(OptionError, match=r"would replace what it is made of") as caught:
        InferenceSession(source, saving(source.with_name("optimized.onnx"), name), cache=False)
    assert caught.value.hint
    assert contents(source.parent) == before


@pytest.mark.parametrize("constants", ["", "other.data"])
@pytest.mark.parametrize("name", ["source.onnx", "weights.data"])
def test_a_model_replaces_no_file_of_that_it_is_made_of(source: Path, name: str, constants: str) -> None:
    before = contents(source.parent)
    with pytest.raises(OptionError, match=rf"{name}.*would replace what it is made of"):
        InferenceSession(source, saving(source.with_name(name), constants), cache=False)
    assert contents(source.parent) == before


def test_other_constants_do_not_free_the_files_of_the_model(source: Path) -> None:
    """A session with constants of its own is not of the file any more, which is still there for others."""
    told = saving(source.with_name("optimized.onnx"), "weights.data")
    told.add_external_initializers_from_files_in_memory(["weights.data"], [bytes(240)], [240])
    before = contents(source.parent)
    with pytest.raises(OptionError, match="would replace what it is made of"):
        InferenceSession(source, told, cache=False)
    assert contents(source.parent) == before


@pytest.mark.parametrize("constants", ["", "weights.bin"])
def test_a_model_replaces_no_module_that_it_is_made_of(tmp_path: Path, constants: str) -> None:
    path = tmp_path / "relu.mlir"
    path.write_text(
        "glow_high.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>) "
        "{\n%y = glow_high.relu %x : tensor<2xf32>\nglow_high.return %y\n}"
    )
    before = contents(tmp_path)
    with pytest.raises(OptionError, match="would replace what it is made of"):
        InferenceSession(path, saving(path, constants), cache=False)
    assert contents(tmp_path) == before


# ---- all or nothing --------------------------------------------------------------------------------------------


def test_a_failure_leaves_the_files_that_were_there(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("optimized.onnx", "weights.bin"):
        (tmp_path / name).write_bytes(b"earlier")
    before = contents(tmp_path)

    def failing(*args: object, **keywords: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporter.onnx, "save", failing)
    with pytest.raises(OptionError, match="cannot be written: No space left on device"):
        InferenceSession(source, saving(tmp_path / "optimized.onnx", "weights.bin"), cache=False)
    assert contents(tmp_path) == before


def test_constants_go_to_a_folder_that_is_there(source: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "sub").mkdir()
    InferenceSession(source, saving(tmp_path / "optimized.onnx", "sub/weights.bin"), cache=False)
    assert (folder / "weights.bin").stat().st_size == 240
    (y,) = InferenceSession(tmp_path / "optimized.onnx").run(None, {"x": np.ones((2, 20), np.float32)})
    np.testing.assert_array_equal(y, np.full((2, 3), 20, np.float32))


def test_constants_go_to_no_folder_elsewhere(source: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("nosub/weights.bin", "link/weights.bin"):
        with pytest.raises(OptionError, match=r"'\w+/weights.bin' has no folder beside the model") as caught:
            InferenceSession(source, saving(tmp_path / "models" / "optimized.onnx", name), cache=False)
        assert caught.value.hint
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["link"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_is_not_made_for_a_model(source: Path, tmp_path: Path) -> None:
    for constants in ("", "weights.bin"):
        with pytest.raises(OptionError, match="cannot be written: No such file or directory"):
            InferenceSession(source, saving(tmp_path / "no" / "optimized.onnx", constants), cache=False)
    assert not (tmp_path / "no").exists()


def test_pipes_and_folders_are_not_replaced(source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, constants in (("optimized.onnx", "folder"), ("optimized.onnx", "pipe"), ("pipe", "weights.bin")):
        with pytest.raises(OptionError, match=r"(folder|pipe): cannot be written: it is not a regular file"):
            InferenceSession(source, saving(tmp_path / name, constants), cache=False)
    assert (tmp_path / "folder").is_dir()
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe", "source.onnx", "weights.data"]

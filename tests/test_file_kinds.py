"""Files that are given in the place of others: each tool says what they are, and where they belong."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from in_process import Finished, run_tool

from glow_mlir import InferenceSession
from glow_mlir.errors import ModelError
from glow_mlir.support.file_kinds import BY_SUFFIX, KINDS, ONNX, TEXT, kind_of
from glow_mlir.tools import glow_import, glow_opt, glow_run

DIGITS = (ROOT / "examples" / "digits.onnx").read_bytes()


def saved(write: object, *arguments: object, **named: object) -> bytes:
    """What a function of numpy's writes."""
    stream = io.BytesIO()
    assert callable(write)
    write(stream, *arguments, **named)
    return stream.getvalue()


def zipped(*names: str) -> bytes:
    """An archive of files with those names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return stream.getvalue()


FILES = {
    "an ONNX model": DIGITS,
    "a .npy file": saved(np.save, np.zeros(3)),
    "a .npz file": saved(np.savez, x=np.zeros(3)),
    "an object": b"\x7fELF\2\1\1" + bytes(60),
    "a file of weights": b'\x20\0\0\0\0\0\0\0{"__metadata__":{}}' + bytes(8),
    "text in UTF-16": "module".encode("utf-16"),
    "a GGUF model": b"GGUF\3\0\0\0" + bytes(64),
    "an ExecuTorch program": b"\x18\0\0\0ET12" + bytes(64),
    "an OpenVINO model": b'<?xml version="1.0"?>\n<net name="x" version="11"></net>',
    "a Keras model": zipped("metadata.json", "config.json", "model.weights.h5"),
    "a program of torch.export": zipped("x/archive_format", "x/models/model.json"),
    "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "a web page": b"<!DOCTYPE html>\n<html></html>",
}


def given(tool: str, name: str, data: bytes, folder: Path) -> Finished:
    """Give a tool a file of that content."""
    (folder / name).write_bytes(data)
    return run_tool(
        {"opt": glow_opt.main, "run": glow_run.main, "import": glow_import.main}[tool], [name], directory=folder
    )


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("name", ["x.mlir", "x.bin"])
def test_glow_opt_says_what_is_no_text(what: str, name: str, tmp_path: Path) -> None:
    finished = given("opt", name, FILES[what], tmp_path)
    line = finished.stderr.decode()
    assert (finished.code, line.count("\n")) == (1, 1)
    assert line.startswith(f"{name}: error: is not text of a module, but {what}")
    assert "(hint: " in line


@pytest.mark.parametrize("what", [name for name in FILES if name != "an ONNX model"])
@pytest.mark.parametrize("tool", ["run", "import"])
def test_what_is_no_onnx_model_is_told_by_its_kind(tool: str, what: str, tmp_path: Path) -> None:
    finished = given(tool, "x.onnx", FILES[what], tmp_path)
    line = finished.stderr.decode()
    assert (finished.code, line.count("\n")) == (1, 1)
    assert line.startswith(f"x.onnx: error: is not an ONNX model, but {what}")
    assert "(hint: " in line
    assert [path.name for path in tmp_path.iterdir()] == ["x.onnx"]


@pytest.mark.parametrize("suffix", BY_SUFFIX)
@pytest.mark.parametrize("data", [b"\x08\x01", b"\0\0\1", zipped("x")], ids=["numbers", "zeros", "archive"])
def test_what_the_beginning_does_not_tell_the_name_does(suffix: str, data: bytes, tmp_path: Path) -> None:
    line = given("import", f"x{suffix}", data, tmp_path).stderr.decode()
    assert BY_SUFFIX[suffix].name in line
    assert kind_of(b"module {\n", "x.mlir") is TEXT


def test_bytes_that_are_a_path_are_told() -> None:
    with pytest.raises(ModelError, match=r"but text \(hint: bytes are the content of a model; the path of a file is"):
        InferenceSession(b"model.onnx")


def test_text_under_another_name_is_told(tmp_path: Path) -> None:
    line = given("run", "x.txt", b"builtin.module {}\n", tmp_path).stderr.decode()
    assert line.startswith(
        "x.txt: error: is not an ONNX model, but text (hint: a module as text is a file called .mlir"
    )


def test_a_module_needs_no_import(tmp_path: Path) -> None:
    line = given("import", "x.mlir", b"builtin.module {}\n", tmp_path).stderr.decode()
    assert line == "x.mlir: error: is a module already (hint: glow-opt runs passes over it, glow-run runs it)\n"


def test_a_cut_off_model_is_still_a_model(tmp_path: Path) -> None:
    assert b"is not an ONNX model, or is cut off" in given("run", "x.onnx", DIGITS[:1000], tmp_path).stderr


def test_a_bundle_is_run_by_its_own_loader(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    line = run_tool(glow_run.main, ["bundle"], directory=tmp_path).stderr.decode()
    assert "bundle: error: cannot be read: Is a directory (hint: " in line
    assert "glow_mlir.load_bundle" in line


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_text_of_any_editor_is_read(ends: bytes, mark: bytes, tmp_path: Path) -> None:
    text = mark + b"builtin.module {\n  glow_high.placeholder @x : tensor<4xf32> {input}\n  oops\n}\n"
    line = given("opt", "x.mlir", text.replace(b"\n", ends), tmp_path).stderr.decode()
    assert line.startswith("x.mlir:3:3: error: ")
    finished = given("opt", "x.mlir", text.replace(b"\n", ends).replace(b"oops", b""), tmp_path)
    assert (finished.code, finished.stdout.count(b"@x")) == (0, 1)


def test_each_kind_is_told_by_its_beginning() -> None:
    for kind in KINDS:
        assert kind_of(b"\0" * kind.offset + kind.start + kind.mark + b"\0\xff") is kind
    assert kind_of(b"", "x.onnx") is None
    assert kind_of(b"\xff\0\0", "x.onnx") is ONNX
    assert kind_of(b"module {\n") is TEXT
    assert kind_of(b"\xfe\0\1") is None


def test_an_archive_of_arrays_is_told_however_it_is_packed() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", saved(np.save, np.zeros(1000)))
    assert "npz" in getattr(kind_of(stream.getvalue()), "name", "")

"""Files of bundles: all in their places or none, and nothing that they are made of is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checkout import ROOT
from in_process import Finished, run_tool

from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.errors import OptionError
from glow_mlir.tools import glow_compile

MODEL = """
glow_high.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = glow_high.add %x, %x : tensor<2xf32>
  glow_high.return %y
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model."""
    (tmp_path / "neg.mlir").write_text(MODEL)
    return tmp_path


def compiled(folder: Path, *arguments: str) -> Finished:
    """Run `glow-compile` in a folder."""
    return run_tool(glow_compile.main, arguments, program="glow-compile", directory=folder)


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder by their paths, with what they hold."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_bundle_replaces_an_earlier_one_as_a_whole_and_leaves_the_rest(folder: Path) -> None:
    assert compiled(folder, "neg.mlir", "-o", "out", "--instrument", "--emit", "archive").code == 0
    (folder / "out" / "own.txt").write_text("own")
    assert compiled(folder, "neg.mlir", "-o", "out", "--constants", "object").code == 0
    names = {path.name for path in (folder / "out").iterdir()}
    ends = (".o", ".h", ".json", ".mlir", ".weights.bin", "-config.cmake")
    assert names == {"own.txt", *(f"neg{end}" for end in ends)}
    plain = folder / "plain"
    plain.mkdir()
    assert (folder / "out").stat().st_mode == plain.stat().st_mode


def test_the_current_folder_is_one_too(folder: Path) -> None:
    assert compiled(folder, "neg.mlir", "-o", ".", "--name", "other").code == 0
    assert (folder / "other.o").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "."], "neg.mlir: error: would replace what it is made of"),
        (["-o", "own"], "own: error: cannot be written: Is a directory"),
        (["-o", "file"], "file: error: cannot be written: Not a directory"),
        (["-o", "own", "--report", "own/neg.json"], "own/neg.json: error: is a file of the bundle itself"),
        (["-o", "new", "--report", "missing/report.json"], "missing/report.json: error: cannot be written"),
        (["-o", "new", "--name", ""], "glow-compile: error: --name is empty"),
        (["-o", "new", "--entry", ""], "glow-compile: error: --entry is empty"),
    ],
)
def test_what_cannot_be_written_changes_nothing(folder: Path, arguments: list[str], said: str) -> None:
    (folder / "own" / "neg.o").mkdir(parents=True)
    (folder / "own" / "neg.h").write_text("of mine")
    (folder / "file").write_text("of mine")
    before = contents(folder)
    done = compiled(folder, "neg.mlir", *arguments)
    assert (done.code, contents(folder)) == (1, before)
    assert said in done.stderr.decode()
    assert not any(name.startswith(".") for _, names, _ in os.walk(folder) for name in names)


def test_reports_are_written_beside_the_bundle_or_elsewhere(folder: Path) -> None:
    assert compiled(folder, "neg.mlir", "-o", "out", "--report", "out/report.json").code == 0
    assert compiled(folder, "neg.mlir", "-o", "out", "--report", "report.html").code == 0
    assert (folder / "out" / "report.json").exists()
    assert (folder / "report.html").exists()


def test_paths_may_have_signs_of_equality(folder: Path) -> None:
    (folder / "a=b").mkdir()
    (folder / "a=b" / "neg=.mlir").write_text(MODEL)
    assert compiled(folder, "a=b/neg=.mlir", "-o", "out").code == 0
    assert compiled(folder, "first=a=b/neg=.mlir", "second=neg.mlir", "-o", "two").code == 0


def test_objects_for_windows_and_apple_say_what_their_linkers_want(folder: Path) -> None:
    triples = {"windows": "scalar,triple=x86_64-pc-windows-msvc", "apple": "neon,triple=arm64-apple-darwin"}
    for name, target in triples.items():
        done = compiled(folder, "neg.mlir", "--target", target, "--emit", "archive", "-o", name)
        assert done.code == 0, done.stderr
    assert "The object needs from a linker: _fltused." in (folder / "windows" / "neg.h").read_text()
    assert b"\0_neg_run\0" in (folder / "apple" / "neg.a").read_bytes()[:400]


def test_a_bundle_has_an_entry() -> None:
    with pytest.raises(OptionError, match="there is no function to call"):
        bundle_of({}, "none", CompileOptions("cpu"))


def test_the_module_of_a_bundle_is_to_be_read_alone(folder: Path) -> None:
    """Its weights are in the constants, as kernels read them."""
    model = str(ROOT / "examples" / "digits.onnx")
    assert compiled(folder, model, "--bind", "N=1", "--target", "sse2", "-o", "made").code == 0
    done = compiled(folder, "made/digits.mlir", "-o", "again")
    assert done.code == 1
    assert b"are not loaded (hint: " in done.stderr
    assert b"bundles have none" in done.stderr
    assert not (folder / "again").exists()

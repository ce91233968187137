"""`glow-run` on modules with several functions, for several targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from in_process import Finished, run_tool

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.target import str_of
from glow_mlir.tools.glow_run import main

TWO_ENTRIES = """
glow_high.placeholder @x : tensor<64xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}
glow_high.func @first(@x, @y) attributes {target = #glow.target<FIRST>} {
  %x = glow_high.get @x : tensor<64xf32>
  %1 = glow_high.relu %x : tensor<64xf32>
  glow_high.save %1, @y
}
glow_high.func @second(@x, @y) attributes {target = #glow.target<SECOND>} {
  %x = glow_high.get @x : tensor<64xf32>
  %1 = glow_high.neg %x : tensor<64xf32>
  glow_high.save %1, @y
}
"""


def finished(folder: Path, *arguments: object) -> Finished:
    """Run the tool in that folder, with a cache of its own."""
    environment = {"GLOW_CACHE_DIR": str(folder / "cache")}
    return run_tool(main, [str(argument) for argument in arguments], environment=environment, directory=folder)


def run(folder: Path, *arguments: object) -> str:
    """Run the tool, which has to succeed without a word on stderr; its stdout."""
    result = finished(folder, *arguments)
    assert (result.stderr, result.code) == (b"", 0)
    return result.stdout.decode()


def output(path: Path) -> np.ndarray:
    """The output in a file."""
    with np.load(path) as arrays:
        return arrays["y"]


@pytest.fixture
def two_entries(tmp_path: Path) -> Path:
    """A module with two functions, for this machine and for one with fewer vectors."""
    host = get_backend("cpu").host()
    narrow = replace(host, vector_bits=min(64, host.vector_bits))
    path = tmp_path / "two.mlir"
    path.write_text(TWO_ENTRIES.replace("FIRST", str_of(host)).replace("SECOND", str_of(narrow)))
    return path


def test_entry_is_run_measured_checked_and_drawn(tmp_path: Path, two_entries: Path) -> None:
    options = ("--profile", "--check", "interpreter", "--dump-dot", "two.dot", "--iterations", "1", "--warmup", "0")
    text = run(tmp_path, two_entries, "--entry", "second", *options, "--outputs", "y.npz")
    assert "neg" in text
    assert "relu" not in text
    assert output(tmp_path / "y.npz").min() < 0
    run(tmp_path, two_entries, "--entry", "first", "--outputs", "z.npz")
    assert output(tmp_path / "z.npz").min() >= 0


def test_entry_that_there_is_not_is_told(tmp_path: Path, two_entries: Path) -> None:
    for options, name in (((), "main"), (("--entry", "third"), "third")):
        result = finished(tmp_path, two_entries, *options)
        assert result.code == 1
        assert f"there is no entry '{name}' (hint: the model has first, second)" in result.stderr.decode()


def test_phases_have_code_for_each_target(tmp_path: Path, two_entries: Path) -> None:
    run(tmp_path, two_entries, "--entry", "first", "--dump-phases", "phases")
    for name in ("first", "second"):
        (code,) = (tmp_path / "phases").glob(f"*-llvm-{name}.ll")
        assert f"define i32 @{name}(" in code.read_text()
        assert "target triple = " in code.read_text()
        assert f"{name}:" in code.with_suffix(".s").read_text()
    assert len(list((tmp_path / "phases").glob("*.s"))) == 2

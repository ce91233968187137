"""`python -m glow_mlir.examples` lists models and writes them, for whoever has the package and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from glow_mlir.examples import EXAMPLES, example


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "glow_mlir.examples", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_models_are_listed_and_written(tmp_path: Path) -> None:
    listed = run(folder=tmp_path)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(EXAMPLES)
    for name in EXAMPLES:
        assert run(name, folder=tmp_path).returncode == 0
        assert (tmp_path / name).read_bytes() == example(name)
    assert run("digits.onnx", "-o", os.devnull, folder=tmp_path).returncode == 0


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for arguments, reason in (
        (["digit.onnx"], "digit.onnx"),
        (["digits.onnx", "-o", "no/where.onnx"], "no/where.onnx"),
        (["-o", "x.onnx"], "name"),
    ):
        finished = run(*arguments, folder=tmp_path)
        assert finished.returncode == 1
        assert len(finished.stderr.splitlines()) == 1
        assert reason in finished.stderr
    assert list(tmp_path.iterdir()) == []

"""What is printed of PyTorch's graphs: short lines, with the words of one or several."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glow_mlir.torch.graph_reports import GraphReport


def test_lines_are_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site, program = tmp_path / "lib" / "site-packages", tmp_path / "program"
    program.mkdir()
    monkeypatch.chdir(program)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "lib"), str(site)])
    report = GraphReport(3, "inference", 1, f"{site}/torch/nn/linear.py:17", 0.5, 1, 2)
    report.eager[f"aten.sort ({program}/main.py:4)"] = "is not supported"
    assert str(report) == (
        "graph 3, inference, 1 operator: 1 compilation in 0.50 s, 2 calls (torch/nn/linear.py:17)\n"
        "  PyTorch computes aten.sort (main.py:4): is not supported"
    )

"""Forks of the process: one module of the package is told of them, and others tell that what begins anew."""

from __future__ import annotations

from checkout import ROOT, files


def test_one_module_is_told_of_forks() -> None:
    told = [path for path in files(".py") if "register_at_fork(" in path.read_text(encoding="utf-8")]
    here = ROOT / "tests" / "house" / "test_forks.py"
    assert set(told) - {here} == {ROOT / "glow_mlir" / "support" / "forks.py"}

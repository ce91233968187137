"""docs/stablehlo.md has the operations that there are, and what computes them."""

from __future__ import annotations

import runpy

from checkout import ROOT


def test_stablehlo_tables_are_fresh() -> None:
    page = ROOT / "docs" / "stablehlo.md"
    written = runpy.run_path(str(ROOT / "docs" / "generate_stablehlo.py"))["written"]
    assert written(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")

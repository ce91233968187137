"""docs/targets.md has the machines that there are."""

from __future__ import annotations

import runpy

from checkout import ROOT


def test_target_table_is_fresh() -> None:
    page = ROOT / "docs" / "targets.md"
    written = runpy.run_path(str(ROOT / "docs" / "generate_targets.py"))["written"]
    assert written(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")

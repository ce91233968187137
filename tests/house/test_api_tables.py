"""docs/api.md has the options, keys and names that the API works by."""

from __future__ import annotations

import runpy

from checkout import ROOT


def test_tables_of_the_api_are_fresh() -> None:
    page = ROOT / "docs" / "api.md"
    written = runpy.run_path(str(ROOT / "docs" / "generate_api.py"))["written"]
    assert written(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")

"""docs/code-map.md has a row for each package, and its picture is fresh."""

from __future__ import annotations

import re
import runpy

from checkout import ROOT

PAGE = ROOT / "docs" / "code-map.md"


def test_every_package_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    top = [path for path in (ROOT / "glow_mlir").iterdir() if not path.name.startswith("_") and path.name != "py.typed"]
    assert sorted(rows) == sorted({path.stem for path in top} - {"backend"})


def test_the_picture_is_fresh() -> None:
    generator = runpy.run_path(str(ROOT / "docs" / "generate_code_map.py"))
    assert generator["drawn"]() == generator["PICTURE"].read_text(encoding="utf-8")
    drawn = {package for boxes in generator["ROWS"].values() for package, _ in boxes}
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert drawn == rows - {"capi"}

"""The page about TensorFlow Lite names all operators that are imported, and no others."""

from __future__ import annotations

import re

from checkout import ROOT

from glow_mlir.frontends.tflite.node import IMPORTERS


def test_the_page_lists_the_operators() -> None:
    text = (ROOT / "docs" / "tflite.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (`[A-Z].+) \|$", text, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)]
    assert sorted(listed) == sorted(IMPORTERS.all())

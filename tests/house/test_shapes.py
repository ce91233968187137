"""Shapes are read through `dialects/shapes.py`, which knows that xDSL writes a size of run time as -1."""

from __future__ import annotations

import re

from checkout import ROOT

READS = re.compile(r"get_shape\(\)(?!\[0\])|shape\.data|\bDYNAMIC_INDEX\b")
"""How xDSL gives the shape of a type; that of a vector, whose size is a number, is read with an index."""


def test_nothing_else_reads_the_shapes_of_types():
    files = [path for room in ("dialects", "glow_mlir", "tools") for path in (ROOT / room).rglob("*.py")]
    readers = {path.resolve() for path in files if READS.search(path.read_text(encoding="utf-8"))}
    assert readers == {(ROOT / "dialects" / "shapes.py").resolve()}

"""Files that documents and docstrings name exist."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT, files

PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`")
"""A path of a Python file, from the top or from any room on."""

KNOWN = [path.relative_to(ROOT).as_posix() for path in files(".py")]


def missing(text: str) -> list[str]:
    """The files that a text names and that there are not."""
    return [name for name in PATH.findall(text) if not any(f"/{known}".endswith(f"/{name}") for known in KNOWN)]


@pytest.mark.parametrize("suffix", [".md", ".py"])
def test_named_files_exist(suffix: str) -> None:
    found = {path: names for path in files(suffix) if (names := missing(path.read_text(encoding="utf-8")))}
    assert not found


def test_the_check_finds_a_name() -> None:
    wrong = "nowhere.py"
    assert missing(f"see `codegen/{wrong}` and `house/test_sizes.py`") == [f"codegen/{wrong}"]

"""The site builds, with warnings as errors: every page is in the navigation, and every link leads somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from glow_mlir.ir.universe import PASSES

pytestmark = pytest.mark.extra
"""MkDocs builds the site."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert not finished.returncode, finished.stderr
    return folder


def test_reference_has_every_pass_and_operation(site: Path) -> None:
    passes = (site / "reference" / "passes.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in passes for name in PASSES)
    assert 'id="glow_high.conv"' in (site / "reference" / "glow_high.html").read_text(encoding="utf-8")
    assert 'id="glow_low.conv"' in (site / "reference" / "glow_low.html").read_text(encoding="utf-8")


def test_reference_has_every_tool(site: Path) -> None:
    page = (site / "reference" / "tools.html").read_text(encoding="utf-8")
    tools = [path.stem.replace("_", "-") for path in (ROOT / "tools").glob("glow_*.py")]
    assert tools
    assert all(f'id="{tool}"' in page and f"usage: {tool}" in page for tool in tools)


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text
        assert '<link rel="stylesheet" href="http' not in text


def test_words_for_tests_alone_are_not_shown(site: Path) -> None:
    assert "fragment" not in (site / "ir.html").read_text(encoding="utf-8").partition("<article")[2].partition("<p>")[0]

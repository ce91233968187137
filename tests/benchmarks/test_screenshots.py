"""The pictures of the page in the documentation: there, small, with words for those who do not see them."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
import screenshots
from browser import MISSING, browser_program
from checkout import ROOT

from glow_mlir.pictures.graph import Graph, Node
from glow_mlir.pictures.memory import Memory
from glow_mlir.pictures.page import Page, Shown

MOST = 150_000
"""Bytes of a picture."""


def size_of(png: Path) -> tuple[int, int]:
    """Width and height of a PNG in pixels."""
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("page", ["README.md", "docs/pipelines.md"])
def test_pictures_of_the_page_are_there(page: str) -> None:
    found = re.findall(r"!\[([^\]]*)\]\(([^)]*\.png)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert {Path(file).name for _, file in found} & set(screenshots.TAKEN.values())
    for words, file in found:
        assert len(words.split()) > 8, file
        picture = (ROOT / page).parent / file
        assert picture.stat().st_size < MOST
        assert size_of(picture) == (screenshots.WIDTH, screenshots.HEIGHT)


@pytest.mark.extra
@pytest.mark.skipif(browser_program() is None, reason=MISSING)
def test_pictures_are_taken(tmp_path: Path) -> None:
    graph = Graph([Node(screenshots.CHOSEN, "attention", "x", ("n",), "2 f32", 16)])
    page = tmp_path / "page.html"
    page.write_text(Page("page", [Shown("", Memory("@main", 0, 0, 0, 0, (), ()), {"allocated": graph})]).html())
    screenshots.take(page.as_uri(), tmp_path)
    taken = [tmp_path / name for name in screenshots.TAKEN.values()]
    assert [size_of(picture) for picture in taken] == [(screenshots.WIDTH, screenshots.HEIGHT)] * 2
    assert taken[0].read_bytes() != taken[1].read_bytes()


def test_without_a_browser_pictures_stay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = [(screenshots.FOLDER / name).read_bytes() for name in screenshots.TAKEN.values()]
    monkeypatch.setattr(screenshots, "browser_program", lambda: None)
    assert screenshots.main() == 1
    assert "stay as they are: there is no Chromium: make browser fetches one" in capsys.readouterr().err
    assert [(screenshots.FOLDER / name).read_bytes() for name in screenshots.TAKEN.values()] == before

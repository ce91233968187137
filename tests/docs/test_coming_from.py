"""What users of other tools do is there, and runs, or is refused with a reason."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT
from run_snippets import Block, Page, blocks_of

TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
ROWS = [
    (what.strip(), here.strip()) for what, here in re.findall(r"^\| (?!what \|)(.+?) \| (.+) \|$", TEXT, re.MULTILINE)
]
CODE = {what: re.findall(r"`([^`]+)`", here) for what, here in ROWS if not here.startswith("refused")}
LEAST = 40


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The folder and the variables that the commands share."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("page")
        patch.chdir(folder)
        patch.setenv("GLOW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        page = Page(folder)
        for block in blocks_of(TEXT):
            page.run(block)
        return page


def test_there_are_enough() -> None:
    assert len(ROWS) >= LEAST
    assert len({what for what, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize("here", [here for _, here in ROWS if here.startswith("refused")])
def test_what_is_refused_has_a_reason(here: str) -> None:
    assert len(here.removeprefix("refused:").split()) > 4 or "as above" in here


@pytest.mark.parametrize("what", CODE)
def test_what_there_is_runs(page: Page, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODE[what]
    monkeypatch.chdir(page.folder)
    for code in CODE[what]:
        if code.startswith("glow-"):
            page.run(Block("sh", "", False, code + "\n", 1, 0, 0))
        elif "(" in code or "." in code:
            page.run(Block("python", "", False, code + "\n", 1, 0, 0))

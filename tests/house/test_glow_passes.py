"""docs/glow-passes.md has all of Glow's passes, and what it names is there; links of all documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlir_tools import ROOT

from glow_mlir.driver.pipelines import pass_specs, passes_of

PAGE = ROOT / "docs" / "glow-passes.md"
INSTRUCTION_PASSES = 13
GRAPH_PASSES = 59
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its first two lines."""
    section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_all_passes_on_graphs_have_a_row() -> None:
    assert [row[0] for row in rows("On graphs")] == [str(number) for number in range(1, GRAPH_PASSES + 1)]


def test_all_passes_on_instructions_have_a_row() -> None:
    assert len({row[0] for row in rows("On instructions")}) == INSTRUCTION_PASSES


def test_a_row_says_what_does_the_work() -> None:
    """Each word set as code is a pass with its options; a row without a pass says why there is none."""
    reasons = ("not needed", "not done", "comes with quantized tensors", "--mlir-print", "[")
    for row in [*rows("On graphs"), *rows("On instructions")]:
        named = re.findall(r"`([^`]+)`", row[-1])
        assert all(passes_of(pass_specs([name])) for name in named), row
        assert named or any(reason in row[-1] for reason in reasons), row


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", document.read_text("utf-8")):
        assert link.startswith("http") or (document.parent / link).exists(), link

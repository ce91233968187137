"""The summary of the benchmarks says what the report has."""

from __future__ import annotations

import re

from checkout import ROOT

ROW = re.compile(r"^\| (\w[\w ]*) \|.*\| (\*\*[\d.]+\*\*)[^|]*( \| [^|]*\|)$", re.MULTILINE)
"""A row of the report: the model, then behind other columns the ratio and the best peer."""
MODELS = 11


def test_summary_is_that_of_the_report() -> None:
    report, summary = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("benchmarks.md", "how-fast.md"))
    _, *parts = re.split(r"^## (?:One thread|2 threads)$", report, flags=re.MULTILINE)
    one, two = ({name: ratio + peer for name, ratio, peer in ROW.findall(part.split("###")[0])} for part in parts)
    said = re.findall(r"^\| (\w[\w ]*) \| (\*\*.*)$", summary, re.MULTILINE)
    assert len(said) == MODELS
    assert said == [(name, f"{one[name][:-2].rstrip()} | {two[name]}") for name in one]


def test_readme_has_figures_of_the_summary() -> None:
    readme, summary = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/how-fast.md"))
    figures = re.findall(r"\| (\w[\w, ]*) \| (\*\*[\d.]+\*\*) \| (\*\*[\d.]+\*\*) \|", readme)
    assert len(figures) == 8
    for name, one, two in figures:
        row = re.search(rf"^\| {name.replace(', 8 images', '_b8')} \| (.*) \|$", summary, re.MULTILINE)
        assert row is not None
        assert re.findall(r"\*\*[\d.]+\*\*", row[1]) == [one, two]


def test_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 60

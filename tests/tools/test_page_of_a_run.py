"""`glow-run --dump-html`: the page is about what was compiled and measured."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from in_process import run_tool

from glow_mlir.tools.glow_run import main

DIGITS = ROOT / "examples" / "digits.onnx"


def run(folder: Path, *arguments: object) -> None:
    """Run the tool twice on a model."""
    words = [*map(str, arguments), "--iterations", "2", "--warmup", "0"]
    environment = {"GLOW_CACHE_DIR": str(folder / "cache")}
    finished = run_tool(main, words, program="glow-run", environment=environment, directory=folder)
    assert finished.code == 0, finished.stderr


def shown_on(page: Path) -> Any:
    """The data of a page about one compilation."""
    text = page.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1]
    (shown,) = json.loads(text.split("</script>")[0])["compilations"]
    return shown


def test_page_has_the_times_of_a_profile(tmp_path: Path) -> None:
    run(tmp_path, DIGITS, "--bind", "N=1", "--profile", "--dump-html", "page.html", "--json", "report.json")
    shown, report = shown_on(tmp_path / "page.html"), json.loads((tmp_path / "report.json").read_text())
    measured = [(step["instruction"], pytest.approx(step["median_us"])) for step in report["profile"]["instructions"]]
    assert len(measured) > 5
    assert [(step[0], step[5]) for step in shown["memory"]["steps"]] == measured
    assert shown["memory"]["time"] == pytest.approx(sum(step[5] for step in shown["memory"]["steps"]))
    assert [step[7] for step in shown["memory"]["steps"]] == [
        pytest.approx(step["min_us"]) for step in report["profile"]["instructions"]
    ]
    boxes = [node for node in shown["graphs"]["allocated"]["nodes"] if node[1] not in ("buffer", "input", "output")]
    assert [(node[0], node[9]) for node in boxes] == measured
    for stage in ("imported", "optimized"):
        assert {node[9] for node in shown["graphs"][stage]["nodes"]} == {None}
    run(tmp_path, DIGITS, "--bind", "N=1", "--dump-html", "page.html")
    assert shown_on(tmp_path / "page.html")["memory"]["time"] is None


def test_page_has_the_passes_by_stage(tmp_path: Path) -> None:
    run(tmp_path, DIGITS, "--bind", "N=1", "--dump-html", "page.html")
    shown = shown_on(tmp_path / "page.html")
    runs = [row for rows in shown["passes"].values() for row in rows]
    assert [number for number, *_ in runs] == list(range(1, len(runs) + 1))
    logged = {number: name for number, name in enumerate(shown["log"]["passes"]) if name}
    assert len(logged) > 5
    assert logged.items() <= {number: name for number, name, *_ in runs}.items(), "the log has the same numbers"
    assert all(seconds > 0 for _, _, _, _, seconds, _, _ in runs)
    (sunk,) = (row for row in shown["passes"]["optimized"] if row[1] == "sink-transposes")
    assert sunk[2] - sunk[3] == sum(old - now for _, old, now in sunk[6])
    assert ["sink-transpose", 2] in sunk[5]
    for (_, _, _, after, *_), (_, _, before, *_) in pairwise(runs):
        assert after == before


TWO = """
glow_high.placeholder @x : tensor<SIZExf32> {input}
glow_high.placeholder @y : tensor<SIZExf32> {output}
glow_high.func @NAME(@x, @y) {
  %x = glow_high.get @x : tensor<SIZExf32>
  %0 = glow_high.softmax %x {axis = 0} : tensor<SIZExf32>
  glow_high.save %0, @y
}
"""


@pytest.mark.parametrize("entry", ["first", "second"])
def test_page_is_about_the_entry(tmp_path: Path, entry: str) -> None:
    one = TWO.replace("SIZE", "4").replace("NAME", "first")
    other = TWO.replace("SIZE", "64").replace("NAME", "second").replace("@x", "@a").replace("@y", "@b")
    (tmp_path / "two.mlir").write_text(one + other)
    run(tmp_path, "two.mlir", "--entry", entry, "--profile", "--dump-html", "page.html")
    shown = shown_on(tmp_path / "page.html")
    assert shown["memory"]["function"].startswith(f"@{entry} ")
    assert shown["memory"]["time"] is not None
    (timed,) = (node for node in shown["graphs"]["allocated"]["nodes"] if node[9] is not None)
    assert any(detail.startswith(f"in: @{entry} ") for detail in timed[6])
    assert len(shown["graphs"]["allocated"]["functions"]) == 2


@pytest.mark.parametrize("stored", ["int8", "int4"])
def test_page_shows_narrow_weights(tmp_path: Path, stored: str) -> None:
    run(tmp_path, DIGITS, "--bind", "N=1", "--weights", stored, "--dump-html", "page.html")
    graphs = shown_on(tmp_path / "page.html")["graphs"]
    found = {stage: [node for node in graph["nodes"] if "classifier" in node[3]] for stage, graph in graphs.items()}
    assert [node[4] for node in found["imported"]] == ["1×10 f32"]
    for stage in ("optimized", "allocated"):
        (node,) = (node for node in found[stage] if node[0] == "blockwise_matmul")
        assert node[4] == f"1×10 f32, {stored} weights"
        assert f"bits: {stored[3:]}" in node[6]
        assert any(detail.startswith("codes: constant") and detail.endswith("ui8") for detail in node[6])
        assert any(detail.startswith("scales: constant") for detail in node[6])


def test_page_shows_the_precision(tmp_path: Path) -> None:
    run(tmp_path, DIGITS, "--bind", "N=1", "--precision", "bf16", "--dump-html", "page.html")
    graphs = shown_on(tmp_path / "page.html")["graphs"]
    assert not any("bf16" in node[4] for node in graphs["imported"]["nodes"])
    assert any(node[0] == "conv" and node[4].endswith(" bf16") for node in graphs["allocated"]["nodes"])

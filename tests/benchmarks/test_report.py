"""The report, its data and its picture, from made-up measurements."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from draw import main

from contest.figures import Spread
from contest.picture import Bar, draw, pictures_of
from contest.report import Run, compare, document, failures, ratio_table, table
from contest.turns import Measurement, Result


def measurement() -> Measurement:
    """Ours, an accurate peer half as fast, MNN somewhat faster than us, and one that does not run."""
    return Measurement(
        workload="net",
        flops=10**9,
        threads=1,
        peak=1e11,
        probes=[1e11, 0.95e11],
        results={
            "glow": Result(seconds=[0.02, 0.02], difference=1e-6, load_seconds=1.0, load_bytes=10**8),
            "onnxruntime": Result(seconds=[0.04, 0.04], difference=0.0),
            "ncnn": Result(reason="has no operator <Net>"),
            "mnn": Result(seconds=[0.016, 0.016], difference=1e-2),
        },
    )


def test_accurate_and_every_are_two_bars():
    accurate, every = compare(measurement(), accurate=True), compare(measurement(), accurate=False)
    assert accurate is not None
    assert every is not None
    assert (accurate.peer, accurate.ratio.middle) == ("onnxruntime", pytest.approx(2.0))
    assert (every.peer, every.ratio.middle) == ("mnn", pytest.approx(0.8))


def test_peer_whose_outputs_are_off_is_not_accurate():
    off = measurement()
    off.results["openvino"] = Result(seconds=[0.01, 0.01], difference=2e-3)
    accurate = compare(off, accurate=True)
    assert accurate is not None
    assert accurate.peer == "onnxruntime"


def test_nothing_is_compared_where_we_do_not_run():
    alone = measurement()
    alone.results["glow"] = Result(reason="threads=2 is not supported")
    assert compare(alone, accurate=False) is None
    assert "| net | – | – | – | – | – | – |" in ratio_table([alone])


def test_ratio_table_has_time_share_and_peers():
    row = ratio_table([measurement()]).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:4] == ["net", "20.00", "50%", "**2.00** (2.00 to 2.00)"]
    assert (cells[4], cells[6]) == ("ONNX Runtime", "MNN")


def test_who_does_not_run_is_named_with_the_reason():
    other = measurement()
    other.workload = "other"
    assert failures([measurement(), other]) == "- ncnn, net, other: has no operator <Net>"


def test_document_and_data_hold_all_parts():
    run = Run("a machine", 2, [measurement()])
    text = document(run, "benchmarks")
    for part in (
        "a machine: 2 rounds",
        "## One thread",
        "](benchmarks-one-thread.svg)",
        "has no operator",
        "onnxruntime 1.",
    ):
        assert part in text
    data = json.loads(json.dumps(run.as_data()))
    assert data["measurements"][0]["over_every"]["peer"] == "mnn"
    assert Run.from_data(data) == run


def parts(picture: str, tag: str) -> list[ElementTree.Element]:
    """The elements of one kind in a picture."""
    return [element for element in ElementTree.fromstring(picture).iter() if element.tag.endswith(f"}}{tag}")]


def test_picture_is_sorted_and_says_where_we_are_slower():
    bars = [Bar("slow", Spread(0.7, 0.8, 0.9), "a < b"), Bar("fast", Spread(1.9, 2.0, 2.1), "other")]
    picture = draw("A title", "a note", bars)
    names = [text.text for text in parts(picture, "text") if text.get("class") == "name"]
    assert names == ["fast", "slow"]
    kinds = [(bar.get("class"), float(bar.get("width", ""))) for bar in parts(picture, "rect")[1:]]
    assert [kind for kind, _ in kinds] == ["faster", "slower"]
    assert kinds[0][1] == pytest.approx(2.5 * kinds[1][1], rel=0.01)
    (line,) = (line for line in parts(picture, "line") if line.get("class") == "equal")
    assert float(line.get("x1", "")) == pytest.approx(190 + kinds[0][1] / 2, abs=0.2)


def test_pictures_of_a_page_are_those_of_its_tables():
    page = document(Run("a machine", 2, [measurement()]), "page")
    ((name, picture),) = pictures_of(page, "page").items()
    assert f"]({name})" in page
    assert "2.00 × ONNX Runtime" in picture


def test_pictures_of_the_documentation_are_fresh():
    assert main(["--check"]) == 0


def test_a_picture_without_a_table_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "page.md"
    page.write_text("## One thread\n\n![One thread](page-one-thread.svg)\n\n| other | columns |\n")
    monkeypatch.setattr("draw.PAGE", page)
    assert main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/page.md: no table has the figures of page-one-thread.svg\n"
    assert list(tmp_path.iterdir()) == [page]


def test_table_is_markdown():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"

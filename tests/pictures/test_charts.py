"""Charts and pages are well-formed, and things stand where their numbers say."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from glow_mlir.pictures.charts import (
    EDGE,
    MAX_CORNERS,
    WIDTH,
    Curve,
    Dot,
    Html,
    curves,
    document,
    histogram,
    paragraph,
    scatter,
    table,
)

SVG = "{http://www.w3.org/2000/svg}"


def test_points_stand_where_their_numbers_say() -> None:
    dots = [Dot(1.0, 0.0, "a < b"), Dot(2.0, 5.0, "middle"), Dot(3.0, 10.0, "last", is_marked=True)]
    found = ElementTree.fromstring(scatter(dots, "x", "y", dots))
    circles = found.findall(f"{SVG}circle")
    assert [circle.findtext(f"{SVG}title") for circle in circles] == ["a < b", "middle", "last"]
    assert [circle.get("class") for circle in circles] == ["point", "point", "point marked"]
    x, y = ([float(circle.get(axis, "")) for circle in circles] for axis in ("cx", "cy"))
    assert x[0] == pytest.approx(EDGE)
    assert x[2] == pytest.approx(WIDTH - EDGE)
    assert x[1] == pytest.approx((x[0] + x[2]) / 2)
    assert y[0] > y[1] > y[2]
    line = found.find(f"{SVG}polyline")
    assert line is not None
    assert len(line.get("points", "").split()) == 5


def test_curves_have_colours_and_names_and_means_of_many_points() -> None:
    many = Curve("a < b", [(float(x), float(x)) for x in range(10 * MAX_CORNERS)])
    few = Curve("few", [(0.0, 0.0), (10.0 * MAX_CORNERS, 10.0 * MAX_CORNERS)])
    found = ElementTree.fromstring(curves([many, Curve("none", []), few], "x", "y"))
    lines = found.findall(f"{SVG}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [MAX_CORNERS, 2]
    assert len({line.get("stroke") for line in lines}) == 2
    titles = [circle.findtext(f"{SVG}title") for circle in found.findall(f"{SVG}circle")]
    assert titles == ["few 0 at 0", "few 10000 at 10000"]
    assert {"a < b", "few"} < {text.text for text in found.findall(f"{SVG}text")}
    first, last = (pair.split(",") for pair in lines[0].get("points", "").split()[:: MAX_CORNERS - 1])
    assert float(first[0]) == pytest.approx(EDGE, abs=1)
    assert float(last[0]) == pytest.approx(WIDTH - EDGE, abs=1)
    assert curves([Curve("none", [])], "x", "y") == ""


@pytest.mark.parametrize("number", [0.0, 1.0, -3e-7, 1e9])
def test_a_single_point_is_a_chart(number: float) -> None:
    found = ElementTree.fromstring(scatter([Dot(number, number, "")], "x", "y"))
    circle = found.find(f"{SVG}circle")
    assert circle is not None
    assert all(np.isfinite(float(circle.get(axis, ""))) for axis in ("cx", "cy"))


def test_a_histogram_has_a_bar_for_what_occurred() -> None:
    centers, counts = np.arange(128) - 63.5, np.zeros(128, np.int64)
    counts[[0, 64, 65, 127]] = [1, 1000, 1000, 1]
    found = ElementTree.fromstring(histogram(centers, counts, (-32.0, 32.0)))
    heights = [float(bar.get("height", "")) for bar in found.findall(f"{SVG}rect")]
    assert len(heights) == 3
    assert heights[1] > heights[0] == heights[2] > 0
    first, last = (float(cut.get("x1", "")) for cut in found.findall(f"{SVG}line"))
    assert first + last == pytest.approx(float(found.get("width", "")), abs=0.5)
    ElementTree.fromstring(histogram(np.zeros(8), np.array([5, 0, 0, 0, 0, 0, 0, 0])))


def test_pages_hold_any_text() -> None:
    cells = [["<&>", Html("<b>x</b>")], ["plain", "second"]]
    page = document("a & b", [paragraph("1 < 2"), table(["one", "two"], cells, [1])])
    found = ElementTree.fromstring(page.partition("\n")[2])
    assert [row.get("class") for row in found.iter("tr")] == [None, None, "marked"]
    assert [cell.text for cell in found.iter("td")] == ["<&>", None, "plain", "second"]
    assert "src=" not in page
    assert "href=" not in page

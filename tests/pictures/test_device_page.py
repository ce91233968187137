"""The page about a model on several devices."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from glow_mlir.partitioning.report import DeviceShare, PlannedStep
from glow_mlir.pictures.charts import Bar, lanes
from glow_mlir.pictures.device_page import device_page
from glow_mlir.runtime.queue_trace import QueueTrace, Span

SHARES = [
    DeviceShare("npu:0", 8, 900, {"w": 3600}, 1, 2, 512, {"exp 'growth'": "it has <none>"}),
    DeviceShare("cpu:0", 2, 100, {}, 1),
]
PLAN = [PlannedStep("npu:0", "", 256), PlannedStep("npu:0", "main_part_0"), PlannedStep("cpu:0", "main_part_1")]


def test_page_shows_order_shares_and_refusals() -> None:
    page = device_page("model", SHARES, PLAN, None)
    for text in (
        "npu:0",
        "90.0%",
        "transfer of 256 bytes",
        "main_part_1",
        "exp &#x27;growth&#x27;",
        "it has &lt;none&gt;",
    ):
        assert text in page
    assert "median" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_page_shows_the_last_of_measured_runs() -> None:
    trace = QueueTrace()
    for run in range(3):
        start = 1_000_000 * run
        trace.add(Span("npu:0", "transfer", start, start + 1_000))
        trace.add(Span("npu:0", "main_part_0", start + 1_000, start + 100_000 * (run + 1)))
        trace.add(Span("cpu:0", "main_part_1", start + 400_000, start + 500_000))
    page = device_page("model", SHARES, PLAN, trace)
    assert page.count("<rect") == 3
    assert "main_part_0: 299.0 µs" in page
    assert "<td>main_part_0</td><td>3</td><td>199.0</td><td>99.0</td>" in page


def test_lanes_are_in_the_picture() -> None:
    bars = [Bar("a", 0, 2, "first"), Bar("b", 2, 10, "second", is_marked=True), Bar("a", 9, 10, "third")]
    drawn = ElementTree.fromstring(lanes(bars, "µs"))
    width, height = float(drawn.attrib["width"]), float(drawn.attrib["height"])
    boxes = [box.attrib for box in drawn if box.tag.endswith("rect")]
    assert len(boxes) == 3
    for box in boxes:
        assert 0 <= float(box["x"]) <= float(box["x"]) + float(box["width"]) <= width
        assert 0 <= float(box["y"]) <= float(box["y"]) + float(box["height"]) <= height
    assert boxes[0]["y"] == boxes[2]["y"] != boxes[1]["y"]

"""Calls end inside kernels whose time is decided by values, on one thread and on two."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest

from glow_mlir import InferenceSession
from glow_mlir.errors import TimeLimitError

REGIONS = """
<ir_version: 10, opset_import: ["" : 18]>
regions (float[1,64,64,64] x, float[N,4] boxes, int64[N] images) => (float[N,64,2,2] y) {
  y = RoiAlign<output_height = 2, output_width = 2>(x, boxes, images)
}
"""
SUPPRESSED = """
<ir_version: 10, opset_import: ["" : 18]>
suppressed (float[1,N,4] boxes, float[1,1,N] scores, int64 most) => (int64[M,3] y) {
  y = NonMaxSuppression(boxes, scores, most)
}
"""


def regions(count: int) -> dict[str, np.ndarray]:
    """As many regions, each the whole image."""
    boxes = np.tile(np.array([0, 0, 64, 64], np.float32), (count, 1))
    return {"x": np.ones((1, 64, 64, 64), np.float32), "boxes": boxes, "images": np.zeros(count, np.int64)}


def boxes(count: int) -> dict[str, np.ndarray]:
    """As many boxes, none of which overlaps with another."""
    corners = np.arange(count, dtype=np.float32)[:, None] * 2 + np.array([0, 0, 1, 1], np.float32)
    scores = np.linspace(1, 2, count, dtype=np.float32)
    return {"boxes": corners[None], "scores": scores[None, None], "most": np.array(count)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [REGIONS, SUPPRESSED], ids=["RoiAlign", "NonMaxSuppression"])
def test_limits_reach_into_kernels(text: str, threads: int) -> None:
    make, few, many = (regions, 3, 40_000) if text is REGIONS else (boxes, 300, 150_000)
    session = InferenceSession(
        onnx.parser.parse_model(text).SerializeToString(),
        dimensions={"N": (1, many)},
        threads=threads,
        time_limit=0.05,
    )
    begin = time.process_time()
    with pytest.raises(TimeLimitError, match=r"longer than its limit of 0\.05 seconds"):
        session.run(None, make(many))
    assert time.process_time() - begin < 5, "it went on to the end"
    assert len(session.run(None, make(few))[0]) == few


ONE_CELL = {
    "RoiAlign": (4, "RoiAlign<output_height = 1, output_width = 1>(x, boxes, image)"),
    "MaxRoiPool": (5, "MaxRoiPool<pooled_shape = [1, 1]>(x, boxes)"),
}
"""Operator → how many numbers a region has, and what makes one cell of it."""


@pytest.mark.parametrize("kind", ONE_CELL)
def test_limits_reach_into_one_cell(kind: str) -> None:
    """The lines of a cell look, which may be all of an image: a fifth of the time that it takes ends it long before."""
    columns, made = ONE_CELL[kind]
    text = f"""
<ir_version: 10, opset_import: ["" : 18]>
cell (float[1,1,6000,6000] x, float[1,{columns}] boxes) => (float[1,1,1,1] y) {{
  image = Constant<value = int64[1] {{0}}>()
  y = {made}
}}
"""
    model = onnx.parser.parse_model(text).SerializeToString()
    given = {"x": np.ones((1, 1, 6000, 6000), np.float32), "boxes": np.zeros((1, columns), np.float32)}
    given["boxes"][0, -2:] = 6000

    def seconds(session: InferenceSession) -> float:
        begin = time.process_time()
        session.run(None, given)
        return time.process_time() - begin

    free = InferenceSession(model)
    whole = min(seconds(free) for _ in range(2))
    limited = InferenceSession(model, time_limit=whole / 5)
    begin = time.process_time()
    with pytest.raises(TimeLimitError):
        limited.run(None, given)
    assert time.process_time() - begin < 0.7 * whole, "it went on to the end of the cell"


def test_far_regions_take_no_longer_than_near_ones() -> None:
    """A hundred million samples of a region lie outside of the image, and are not looked at."""
    session = InferenceSession(onnx.parser.parse_model(REGIONS).SerializeToString(), time_limit=5)
    inputs = regions(2)
    inputs["boxes"][0] = [0, 0, 1e9, 1e9]
    (found,) = session.run(None, inputs)
    assert np.all(found[0, :, 1] == 0)
    assert np.all(found[1] > 0)

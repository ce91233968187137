"""The points of the sweep are drawn by a seed, survive their file, and are counted in the report, refused or not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sweep.drawing import TEMPLATES, Draw
from sweep.drawn import name_of
from sweep.engines import differences, onnxruntime_engine, our_engine
from sweep.kinds import kinds
from sweep.points import Application, Operand, Point, given
from sweep.report import report
from sweep.timing import ONNXRUNTIME, OURS, Result, Settings, measure

SAMPLE = [("", "Conv"), ("", "TopK"), ("", "Loop"), ("", "SequenceInsert"), ("com.microsoft", "QLinearAdd")]


def drawn(key: tuple[str, str], seed: int = 3) -> Point:
    """A small point of an operator."""
    template, types = TEMPLATES[key]
    return template(Draw(seed, (16, 200)), key[1], types[0]).point(f"{name_of(*key)} 0", seed)


@pytest.mark.parametrize("key", SAMPLE, ids=[name_of(*key) for key in SAMPLE])
def test_point_is_the_same_from_its_file(key: tuple[str, str]) -> None:
    point = drawn(key)
    again = Point.from_data(json.loads(json.dumps(point.as_data())))
    assert again.graph == drawn(key).graph
    assert again.model() == point.model()
    for name, array in again.feeds().items():
        np.testing.assert_array_equal(array, point.feeds()[name])


def test_constants_are_in_the_model_and_free_sizes_stay_open() -> None:
    operands = [Operand((3, 5), free=True), None, given(0.5, "f32")]
    model = Application("Clip", operands).point("clip", 1).model()
    assert [value.name for value in model.graph.input] == ["x0"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert [tensor.name for tensor in model.graph.initializer] == ["x2"]


def test_named_kinds_have_names_of_their_own() -> None:
    points = list(kinds())
    assert len({point.name for point in points}) == len(points)


def test_engines_agree_on_a_bound_call() -> None:
    point = Application("Add", [Operand((7, 9)), Operand((9,))]).point("add", 1)
    ours, theirs = (make(point.model(), point.feeds()) for make in (our_engine, onnxruntime_engine))
    assert not differences(point, ours.results, theirs.results)
    assert ours.is_bound()
    ours.call(True)()


def test_what_is_refused_counts() -> None:
    point = Application("SampleOp", [Operand((4, 5))], domain="com.microsoft").point("sample", 1)
    result = measure(point, Settings(1, [0]))
    assert ONNXRUNTIME in result.micros
    assert result.ratio() is None
    text = report([point], {point.name: result}, {})
    assert "1 refused" in text
    assert "- sample: " in text


def test_report_lists_the_slow_ones_first() -> None:
    points = [Application("Relu", [Operand((4, 5))]).point(f"Relu {number}", 1) for number in range(3)]
    times = zip(points, (30.0, 90.0, 10.0), strict=True)
    results = {point.name: Result(point.name, {OURS: ours, ONNXRUNTIME: 25.0}) for point, ours in times}
    text = report(points, results, {"Nothing": "is there"})
    assert "| all | 3 | 0 | 1.20 | 3.60 | 33.3% | 66.7% |" in text
    assert text.index("- 3.60 Relu 1") < text.index("- 1.20 Relu 0")
    assert "Relu 2" not in text
    assert "- Nothing: is there" in text

"""Sizes and numbers of axes that no value has give one line that names node and reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import integers, model_of, node, refusal, value, weight

from glow_mlir.errors import ModelError, UnsupportedError


def one_hot(depth: float | list[float]) -> onnx.ModelProto:
    depths = numpy_helper.from_array(np.array(depth), "d")
    return model_of([node("OneHot", "x d v", name="hot")], initializers=[depths, weight("v", 0, 1)])


def resize_by(*scales: float, shape: Sequence[int] = (2,)) -> onnx.ModelProto:
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], "grow")
    return model_of([resize], [value("x", shape=shape)], initializers=[weight("s", *scales)])


def choice_by(condition: Sequence[bool]) -> onnx.ModelProto:
    """A model with an `If` of that condition."""
    constant = numpy_helper.from_array(np.array(condition, np.bool_), "c")
    return model_of([node("If", "c", name="choice", then_branch=BRANCH, else_branch=BRANCH)], initializers=[constant])


ONE_HOT = [integers("d", 3), weight("v", 0, 1)]
"""Depth and values of OneHot."""
RELU = node("Relu", name="act")
BRANCH = helper.make_graph([node("Relu", "x", "z")], "branch", [], [onnx.ValueInfoProto(name="z")])

CONTRADICTIONS: dict[str, tuple[onnx.ModelProto, str]] = {
    "negative depth": (one_hot(-5), "node 'hot': OneHot: -5 is not a valid depth (hint: "),
    "depths": (one_hot([2, 3]), "node 'hot': OneHot: an array of 2 elements is not a valid depth (hint: "),
    "depth that is no number": (one_hot(float("nan")), "node 'hot': OneHot: nan is not a valid depth (hint: "),
    "depth without end": (one_hot(float("inf")), "node 'hot': OneHot: inf is not a valid depth (hint: "),
    "negative size to fill": (
        model_of([node("ConstantOfShape", "n", name="fill")], initializers=[integers("n", 2, -5)]),
        "node 'fill': ConstantOfShape: no value has the shape (2, -5) (hint: ",
    ),
    "negative sizes to fill": (
        model_of([node("ConstantOfShape", "n", name="fill")], initializers=[integers("n", -2, -(2**60))]),
        "node 'fill': ConstantOfShape: no value has the shape (-2, -1152921504606846976) (hint: ",
    ),
    "negative size to broadcast to": (
        model_of([node("Expand", "x n", name="repeat")], initializers=[integers("n", -5, 2)]),
        "node 'repeat': Expand: no value has the shape (-5, 2) (hint: ",
    ),
    "negative number of copies": (
        model_of([node("Tile", "x n", name="repeat")], initializers=[integers("n", -5)]),
        "node 'repeat': Tile: repeats must not be negative",
    ),
    "numbers from several on": (
        model_of([node("Range", "a a b", name="count")], initializers=[integers("a", 1, 2), integers("b", 1)]),
        "node 'count': Range: bounds and step must be single numbers (hint: ",
    ),
    "proportions of no element": (
        model_of(
            [helper.make_node("Resize", ["x", "", "", "s"], ["y"], "fit", keep_aspect_ratio_policy="not_larger")],
            [value("x", shape=(0, 2))],
            initializers=[integers("s", 2, 3)],
        ),
        "node 'fit': Resize: shape (0, 2) has no elements to resize (hint: ",
    ),
    "axis that a scalar has not": (
        model_of([node("Squeeze", name="drop", axes=[0])], [value("x", shape=())], opset=11),
        "node 'drop': Squeeze: axes [0] are out of range for rank 0",
    ),
    "axis in front of the first, of rows": (
        model_of([node("Softmax", name="scores", axis=-9)], opset=11),
        "node 'scores': Softmax: axis -9 is out of range for rank 1",
    ),
    "axis behind the last, of rows": (
        model_of([node("Hardmax", name="scores", axis=3)], opset=11),
        "node 'scores': Hardmax: axis 3 is out of range for rank 1",
    ),
    "axis behind the last, of matrices": (
        model_of([node("Flatten", name="flat", axis=9)], opset=11),
        "node 'flat': Flatten: axis 9 is out of range for rank 1",
    ),
    "condition without an element": (
        choice_by([]),
        "node 'choice': If: expected 1 element in the condition, got 0 (hint: ",
    ),
    "condition of two elements": (
        choice_by([True, False]),
        "node 'choice': If: expected 1 element in the condition, got 2 (hint: ",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictory_size(case: str) -> None:
    model, expected = CONTRADICTIONS[case]
    assert expected in refusal(model, ModelError)


UNSUPPORTED: dict[str, tuple[onnx.ModelProto, str]] = {
    "more axes than numpy has": (
        model_of([node("Unsqueeze", "x a", name="wide")], initializers=[integers("a", *range(70))]),
        "node 'wide': a value of 71 axes is not supported (hint: values have at most 32 axes",
    ),
    "one axis more than operators take": (
        model_of([node("OneHot", "x d v", name="wide", axis=0)], [value("x", shape=[1] * 32)], initializers=ONE_HOT),
        "node 'wide': a value of 33 axes is not supported (hint: values have at most 32 axes",
    ),
    "input of too many axes": (
        model_of([RELU], [value("x", shape=[1] * 70)]),
        "a value of 70 axes is not supported (hint: values have at most 32 axes",
    ),
    "size without end beside none": (
        model_of([node("ConstantOfShape", "n", name="fill")], initializers=[integers("n", 0, 2**62)]),
        "node 'fill': a value of shape (0, 4611686018427387904) is too large (hint: check the sizes",
    ),
    "scale without end": (
        resize_by(1e30),
        "node 'grow': a value of shape (2000000030094932439753377710080,) is too large (hint: check the sizes",
    ),
    "scale without end beside no element": (
        resize_by(1, 1e30, shape=(0, 2)),
        "node 'grow': a value of shape (0, 2000000030094932439753377710080) is too large (hint: check the sizes",
    ),
    "scale that f32 cannot multiply": (
        resize_by(3e38),
        "node 'grow': a value of shape (340282346638528859811704183484516925440,) is too large (hint: check the sizes",
    ),
    "scale without end, as an operand of Upsample": (
        model_of([node("Upsample", "x s", name="grow")], initializers=[weight("s", 1e30)], opset=9),
        "node 'grow': a value of shape (2000000030094932439753377710080,) is too large (hint: check the sizes",
    ),
    "scale without end, as an attribute of Upsample": (
        model_of([node("Upsample", name="grow", scales=[1e30], mode="linear")], opset=7),
        "node 'grow': a value of shape (2000000030094932439753377710080,) is too large (hint: check the sizes",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_unsupported_size(case: str) -> None:
    model, expected = UNSUPPORTED[case]
    assert expected in refusal(model, UnsupportedError)

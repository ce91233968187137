"""Which elements mode nearest of a resize takes: of exact arithmetic by sizes, of f32 quotients by scales."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from single_node import SingleNode, assert_equal
from single_operator import lower_operator, run_operator, single_operator

from glow_mlir.dialects.glow_high.resize import COORDINATES, ROUNDINGS, ResizeOp
from glow_mlir.interpreter.resize import nearest_elements

HALF = Fraction(1, 2)
ROUNDED = {
    "floor": floor,
    "ceil": ceil,
    "round_prefer_floor": lambda x: ceil(x - HALF),
    "round_prefer_ceil": lambda x: floor(x + HALF),
}
PAIRS = [(640, 224), (100, 56), (100, 224), (200, 448), (14, 18), (112, 32), (256, 512), (7, 1), (1, 7), (448, 200)]


def exact_place(word: str, before: int, after: int, y: int) -> Fraction:
    """The place in the input that ONNX's formulas say, without a rounding."""
    match word:
        case "asymmetric":
            return Fraction(y * before, after)
        case "align_corners":
            return Fraction(y * (before - 1), max(after - 1, 1))
        case "tf_half_pixel_for_nn":
            return (y + HALF) * before / after
        case _:
            return (y + HALF) * before / after - HALF


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("word", [word for word in COORDINATES if word != "tf_crop_and_resize"])
def test_elements_by_sizes_are_those_of_exact_arithmetic(word: str, rounding: str) -> None:
    for before, after in PAIRS:
        places = [exact_place(word, before, after, y) for y in range(after)]
        if word == "pytorch_half_pixel" and after == 1:
            places = [-HALF]
        wanted = [min(max(ROUNDED[rounding](x), 0), before - 1) for x in places]
        assert nearest_elements(word, rounding, before, after).tolist() == wanted, (before, after)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_elements_of_crops_are_those_of_exact_arithmetic(rounding: str) -> None:
    start, end = np.array([0.1, 0.7], np.float32).tolist()
    image = np.arange(30, dtype=np.float32)
    region = [start, end]
    module, op = single_operator(
        ResizeOp,
        [image],
        shape=(17,),
        coordinates="tf_crop_and_resize",
        rounding=rounding,
        roi=region,
    )
    places = [Fraction(start) * 29 + y * (Fraction(end) - Fraction(start)) * 29 / 16 for y in range(17)]
    wanted = [ROUNDED[rounding](place) for place in places]
    (before,) = run_operator(module, [image])
    assert before.tolist() == wanted
    lower_operator(module, op)
    (after,) = run_operator(module, [image])
    assert after.tolist() == wanted


@pytest.mark.parametrize("scale", [0.35, 1 / 3, 2.3, 0.6, 1.7, 3.0])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("word", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
def test_elements_by_scales_are_those_of_onnxruntime(word: str, rounding: str, scale: float) -> None:
    image = np.arange(100, dtype=np.float32).reshape(1, 1, 1, 100)
    operands = [image, None, np.array([1, 1, 1, scale], np.float32)]
    attributes = {"mode": "nearest", "coordinate_transformation_mode": word, "nearest_mode": rounding}
    assert_equal(
        SingleNode("Resize", operands, 19, attributes, constant=(2,)).by_us(),
        SingleNode("Resize", operands, 19, attributes).by_onnxruntime(),
    )


def test_sizes_of_some_axes_are_exact_beside_scales_of_others() -> None:
    image = np.arange(640 * 4, dtype=np.float32).reshape(4, 640)
    module, _ = single_operator(ResizeOp, [image], shape=(8, 224), scales=[2.0, 0.0])
    (result,) = run_operator(module, [image])
    columns = nearest_elements("half_pixel", "round_prefer_floor", 640, 224)
    np.testing.assert_array_equal(result, image[np.repeat(np.arange(4), 2)][:, columns])

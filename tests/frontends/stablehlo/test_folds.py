"""Reductions and folds of windows of StableHLO by any region, against loops over their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from stablehlo_programs import check, region, scalar_of, signature_of

OPERATIONS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "add": (lambda one, other: one + other, 0),
    "multiply": (lambda one, other: one * other, 1),
    "maximum": (max, -(2**31)),
    "minimum": (min, 2**31 - 1),
    "and": (lambda one, other: one & other, -1),
    "or": (lambda one, other: one | other, 0),
    "xor": (lambda one, other: one ^ other, 0),
}
"""Operation → what it does, and the number that changes nothing."""

AFFINE = """%e = stablehlo.multiply %a, %c : tensor<i32>
%f = stablehlo.multiply %b, %c : tensor<i32>
%g = stablehlo.add %f, %d : tensor<i32>
stablehlo.return %e, %g : tensor<i32>, tensor<i32>"""
"""x·a + b, then ·c + d: two operands, and an order that matters."""


def affine(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] * other[0], one[1] * other[0] + other[1]


def one_operation(word: str, x: np.ndarray) -> str:
    type_ = scalar_of(x)
    return region([x, x], f"%c = stablehlo.{word} %a, %b : {type_}\nstablehlo.return %c : {type_}")


@pytest.mark.parametrize("word", OPERATIONS)
@pytest.mark.parametrize("axes", [[1], [0, 2], [0, 1, 2], []])
def test_reductions_by_one_operation(word: str, axes: Sequence[int]) -> None:
    combined, neutral = OPERATIONS[word]
    x = np.random.default_rng(0).integers(1, 6, (2, 3, 5)).astype(np.int32)
    for start in (neutral, 3):
        expected = np.full([size for axis, size in enumerate(x.shape) if axis not in axes], start, np.int64)
        for position in np.ndindex(x.shape):
            kept = tuple(at for axis, at in enumerate(position) if axis not in axes)
            expected[kept] = combined(int(expected[kept]), int(x[position]))
        operands = [x, np.array(start, np.int32)]
        result = expected.astype(np.int32)
        properties = f"dimensions = array<i64: {', '.join(map(str, axes))}>" if axes else "dimensions = array<i64>"
        types = signature_of(operands, [result])
        body = f'%r = "stablehlo.reduce"(%0, %1) <{{{properties}}}> {one_operation(word, x)} : {types}'
        check(body, operands, [result])


@pytest.mark.parametrize("axes", [[1], [0, 2]])
def test_reductions_of_several_tensors_keep_the_order(axes: Sequence[int]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, (3, 7, 2)).astype(np.int32) for _ in range(2))
    operands = [x, y, np.array(1, np.int32), np.array(0, np.int32)]
    shape = [size for axis, size in enumerate(x.shape) if axis not in axes]
    found = np.empty(shape, object)
    for position in np.ndindex(*shape):
        found[position] = (1, 0)
    for position in np.ndindex(x.shape):
        kept = tuple(at for axis, at in enumerate(position) if axis not in axes)
        found[kept] = affine(found[kept], (int(x[position]), int(y[position])))
    expected = [np.vectorize(lambda pair, part=part: pair[part], otypes=[np.int32])(found) for part in range(2)]
    properties = f"dimensions = array<i64: {', '.join(map(str, axes))}>"
    types = signature_of(operands, expected)
    body = f'%r:2 = "stablehlo.reduce"(%0, %1, %2, %3) <{{{properties}}}> {region(operands, AFFINE)} : {types}'
    check(body, operands, expected)


@pytest.mark.parametrize("word", ["or", "and", "add", "maximum", "xor"])
def test_reductions_of_truth_values(word: str) -> None:
    x = np.random.default_rng(0).random((4, 3)) < 0.5
    combined = {"or": np.any, "add": np.any, "maximum": np.any, "and": np.all}.get(word, np.logical_xor.reduce)
    for operand in (x, x[:, :0]):
        start = np.array(word == "and")
        expected = combined(operand, axis=1) if operand.size else np.full(4, start)
        types = signature_of([operand, start], [expected])
        body = f'%r = "stablehlo.reduce"(%0, %1) <{{dimensions = array<i64: 1>}}> {one_operation(word, x)} : {types}'
        check(body, [operand, start], [np.asarray(expected)])


def test_regions_may_return_what_depends_on_no_element() -> None:
    x, start = np.zeros((4, 3), np.float32), np.array(0, np.float32)
    combined = region([x, x], "%c = stablehlo.constant dense<3.0> : tensor<f32>\nstablehlo.return %c : tensor<f32>")
    expected = np.full(4, 3, np.float32)
    types = signature_of([x, start], [expected])
    check(
        f'%r = "stablehlo.reduce"(%0, %1) <{{dimensions = array<i64: 1>}}> {combined} : {types}', [x, start], [expected]
    )
    expected = np.full((4, 1), 3, np.float32)
    body = f'%r = "stablehlo.reduce_window"(%0, %1) <{{window_dimensions = array<i64: 1, 3>}}> {combined} : '
    check(body + signature_of([x, start], [expected]), [x, start], [expected])


def test_map_of_several_tensors() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    combined = "%c = stablehlo.subtract %a, %b : tensor<f32>\nstablehlo.return %c : tensor<f32>"
    body = f'%r = "stablehlo.map"(%0, %1) <{{dimensions = array<i64: 0, 1>}}> {region([x, y], combined)} : '
    check(body + signature_of([x, y], [x]), [x, y], [x - y])


# ---- Windows

WINDOWS: dict[str, dict[str, list[int]]] = {
    "small": {"sizes": [2, 3]},
    "apart": {"sizes": [2, 3], "strides": [2, 1]},
    "padded": {"sizes": [3, 2], "padding": [1, 2, 0, 1]},
    "cut": {"sizes": [3, 2], "padding": [-1, 2, 1, -2]},
    "dilated": {"sizes": [2, 3], "dilations": [2, 3], "padding": [0, 1, 2, 2]},
    "holes": {"sizes": [2, 3], "base": [2, 3], "padding": [2, 0, 1, 1], "strides": [1, 2]},
    "running": {"sizes": [1, 9], "padding": [0, 0, 8, 0]},
    "running back": {"sizes": [5, 1], "padding": [0, 4, 0, 0]},
    "long": {"sizes": [1, 20], "padding": [0, 0, 9, 15]},
    "large": {"sizes": [5, 19], "padding": [2, 2, 9, 9]},
    "whole": {"sizes": [5, 9]},
    "empty": {"sizes": [6, 2]},
}


def windows_of(
    form: dict[str, list[int]], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], Callable[[tuple[int, ...]], list[tuple[int, ...]]]]:
    """The number of windows, and the elements of the tensor in a window, in order; neither padding nor holes count."""
    ones = [1, 1]
    strides, dilations, base = (form.get(word, ones) for word in ("strides", "dilations", "base"))
    pads = form.get("padding", [0] * 4)
    count: list[int] = []
    for axis, size in enumerate(shape):
        whole = (size - 1) * base[axis] + 1 + pads[2 * axis] + pads[2 * axis + 1]
        count.append(max((whole - (form["sizes"][axis] - 1) * dilations[axis] - 1) // strides[axis] + 1, 0))

    def elements(window: tuple[int, ...]) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        for offsets in np.ndindex(*form["sizes"]):
            at = [window[axis] * strides[axis] + offsets[axis] * dilations[axis] - pads[2 * axis] for axis in range(2)]
            is_element = all(number % base[axis] == 0 for axis, number in enumerate(at))
            place = tuple(number // base[axis] for axis, number in enumerate(at))
            if is_element and all(0 <= number < size for number, size in zip(place, shape, strict=True)):
                found.append(place)
        return found

    return tuple(count), elements


def properties_of(form: dict[str, list[int]]) -> str:
    words = {"sizes": "window_dimensions", "strides": "window_strides", "dilations": "window_dilations"}
    words["base"] = "base_dilations"
    parts = [f"{word} = array<i64: {', '.join(map(str, form[key]))}>" for key, word in words.items() if key in form]
    if "padding" in form:
        low, other = form["padding"][:2], form["padding"][2:]
        parts.append(f"padding = dense<[{low}, {other}]> : tensor<2x2xi64>")
    return f"<{{{', '.join(parts)}}}>"


@pytest.mark.parametrize("form", WINDOWS)
def test_folds_of_windows_by_one_operation(form: str) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (5, 9)).astype(np.int32)
    count, elements = windows_of(WINDOWS[form], x.shape)
    for word, (combined, neutral) in OPERATIONS.items():
        for start in (neutral, 2) if word in ("add", "maximum") else (neutral,):
            expected = np.full(count, start, np.int64)
            for window in np.ndindex(*count):
                for at in elements(window):
                    expected[window] = np.int64(combined(int(expected[window]), int(x[at]))).astype(np.int32)
            operands, result = [x, np.array(start, np.int32)], expected.astype(np.int32)
            types = signature_of(operands, [result])
            properties = properties_of(WINDOWS[form])
            body = f'%r = "stablehlo.reduce_window"(%0, %1) {properties} {one_operation(word, x)} : {types}'
            check(body, operands, [result])


@pytest.mark.parametrize("form", WINDOWS)
def test_folds_of_windows_by_a_region_keep_the_order(form: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-1, 2, (5, 9)).astype(np.int32) for _ in range(2))
    x = np.where(x == 0, 1, x)
    count, elements = windows_of(WINDOWS[form], x.shape)
    expected = [np.zeros(count, np.int32) for _ in range(2)]
    for window in np.ndindex(*count):
        found = (2, 5)
        for at in elements(window):
            found = affine(found, (int(x[at]), int(y[at])))
        for part, value in zip(expected, found, strict=True):
            part[window] = value
    operands = [x, y, np.array(2, np.int32), np.array(5, np.int32)]
    types, properties = signature_of(operands, expected), properties_of(WINDOWS[form])
    body = f'%r:2 = "stablehlo.reduce_window"(%0, %1, %2, %3) {properties} {region(operands, AFFINE)} : {types}'
    check(body, operands, expected)


@pytest.mark.parametrize("form", ["small", "apart", "padded", "whole"])
@pytest.mark.parametrize("word", ["add", "multiply", "any"])
def test_updates_go_to_the_chosen_element_of_each_window(form: str, word: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, (5, 9)).astype(np.float32)
    count, elements = windows_of(WINDOWS[form], x.shape)
    source, start = np.random.default_rng(1).integers(1, 4, count).astype(np.float32), np.array(1, np.float32)
    combined: dict[str, tuple[str, Callable[[float, float], float]]] = {
        "add": ("%c = stablehlo.add %a, %b : tensor<f32>", lambda old, new: old + new),
        "multiply": ("%c = stablehlo.multiply %b, %a : tensor<f32>", lambda old, new: old * new),
        "any": (
            "%d = stablehlo.add %a, %a : tensor<f32>\n%c = stablehlo.add %d, %b : tensor<f32>",
            lambda old, new: 2 * old + new,
        ),
    }
    expected = np.full(x.shape, start)
    for window in np.ndindex(*count):
        best = max(elements(window), key=lambda at: x[at])  # The first of several.
        expected[best] = combined[word][1](expected[best], source[window])
    select = "%c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    select = region([x, x], f"{select}stablehlo.return %c : tensor<i1>")
    scatter = region([x, x], f"{combined[word][0]}\nstablehlo.return %c : tensor<f32>")
    operands = [x, source, start]
    regions = f"{select[:-1]}, {scatter[1:]}"
    types, properties = signature_of(operands, [x]), properties_of(WINDOWS[form])
    body = f'%r = "stablehlo.select_and_scatter"(%0, %1, %2) {properties} {regions} : {types}'
    check(body, operands, [expected])

"""Operators of other shapes, element types and properties: machine code, the interpreter and ONNX's runtimes agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from breadth import share
from element_variants import ELEMENTS
from execute import Case, assert_same, check_all, module_of, runnable_targets
from image_variants import IMAGES
from other_runtimes import by_onnxruntime, by_reference
from product_variants import PRODUCTS

from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.frontends.onnx.export.exporter import exported_model
from glow_mlir.interpreter.machine import run_function

FAMILIES = {**ELEMENTS, **IMAGES, **PRODUCTS}
EACH = pytest.mark.parametrize("name", FAMILIES)

DIFFERENT = {
    "reversed_sequences": (2, "ONNX has batch and time on the first two axes"),
    "selections": (2, "NaN is no element like another"),
    "boxes": (1, "onnxruntime takes a negative number of boxes for all"),
    "softmaxes": (1, "a tensor without axes has none to take"),
    "pools": (2, "NaN does not win, and i64 is none of their types"),
    "pools_of_rows": (1, "windows of padding alone are refused"),
    "positions_of_maxima": (1, "NaN does not win"),
    "resizes": (3, "they lack a rule of coordinates, and truth values"),
    "grid_samples": (1, "infinities count where they are outside"),
    "pooled_regions": (1, "they lack f64"),
    "deformed_convolutions": (1, "they lack images of one axis"),
}
"""Family → how many of its cases neither onnxruntime nor ONNX's reference computes as we do, and why."""


@EACH
def test_variants(name: str) -> None:
    check_all([*FAMILIES[name].cases()], tolerance=FAMILIES[name].tolerance)


@EACH
@pytest.mark.parametrize("target", runnable_targets())
def test_variants_on_targets(name: str, target: str) -> None:
    cases = share([*FAMILIES[name].cases()], f"{name} on {target}")
    check_all(cases, target, FAMILIES[name].tolerance)


def differences(case: Case) -> Iterator[str]:
    """How onnxruntime, or else ONNX's reference, differs from the interpreter; nothing if one of them agrees."""
    module, inputs = module_of(case)
    try:
        model = exported_model(module)
    except UnsupportedOperatorsError:
        return
    expected, found = run_function(module, inputs), list[str]()
    tolerance = 2e-2 if any(array.dtype == np.float16 for array in expected.values()) else 1e-4
    for runtime in (by_onnxruntime, by_reference):
        try:
            assert_same(expected, runtime(model, inputs), tolerance)
        except Exception as error:  # Of any kind, where a runtime lacks a form of an operator.
            found.append(f"{case.operator.name} {case.properties}: {runtime.__name__}: {error}")
        else:
            return
    yield "\n".join(found)


@EACH
def test_variants_in_onnx(name: str) -> None:
    found = [item for case in FAMILIES[name].cases() for item in differences(case)]
    known, _ = DIFFERENT.get(name, (0, ""))
    assert len(found) == known, "\n".join(found)

"""Trained models: all tensors are those of LiteRT's reference kernels, quantized ones to the bit."""

from __future__ import annotations

import pytest
from tflite_reference import AllTensors
from tiny_models import mobilenet_v2, quantized_sine
from trained_tflite import ARCHIVES, SMALL, smooth_inputs, trained_model

pytestmark = pytest.mark.extra

CALLS = 50
MIN_DISTINCT = 20
"""The number of values that nearly all tensors take at least."""

SHAPES = ("SHAPE", "STRIDED_SLICE", "PACK")
"""Operators on sizes, which are what they are."""


@pytest.mark.parametrize("name", [*SMALL, *ARCHIVES])
def test_all_tensors_are_those_of_the_reference(name: str) -> None:
    model = AllTensors(trained_model(name))
    for arrays in smooth_inputs(model.file, CALLS):
        model.compare(arrays)
    model.check_floats()
    kinds = {number: item.kind for item in model.file.subgraphs[0].operators for number in item.outputs}
    counts = [len(values) for number, values in model.seen.items() if kinds[number] not in SHAPES]
    assert sum(count >= MIN_DISTINCT for count in counts) >= 0.8 * len(counts)


def test_all_tensors_of_a_quantized_sine() -> None:
    model = AllTensors(quantized_sine())
    for arrays in smooth_inputs(model.file, CALLS):
        model.compare(arrays)


@pytest.mark.long
def test_all_tensors_of_a_deep_network() -> None:
    model = AllTensors(mobilenet_v2())
    for arrays in smooth_inputs(model.file, 3):
        model.compare(arrays)

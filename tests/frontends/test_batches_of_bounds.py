"""Operators whose batch alone may be known at run time only: one compilation computes what one for each size does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession

BOUNDS = {"batch": (1, 6)}

FLOAT, INDEX = TensorProto.FLOAT, TensorProto.INT64

Inputs = dict[str, tuple[int, list[int | str]]]

MODELS: dict[str, tuple[int, Inputs, dict[str, Any]]] = {
    "Col2Im": (18, {"x": (FLOAT, ["batch", 8, 20])}, {}),
    "DeformConv": (
        19,
        {"x": (FLOAT, ["batch", 4, 5, 5]), "w": (FLOAT, [4, 2, 2, 2]), "offset": (FLOAT, ["batch", 8, 4, 4])},
        {"group": 2},
    ),
    "Det": (22, {"x": (FLOAT, ["batch", 3, 3])}, {}),
    "GridSample": (20, {"x": (FLOAT, ["batch", 3, 4, 5]), "grid": (FLOAT, ["batch", 2, 3, 2])}, {}),
    "ReverseSequence": (
        10,
        {"x": (FLOAT, ["batch", 5, 4]), "lengths": (INDEX, ["batch"])},
        {"batch_axis": 0, "time_axis": 1},
    ),
    "RoiAlign": (
        16,
        {"x": (FLOAT, [2, 3, 8, 8]), "rois": (FLOAT, ["batch", 4]), "images": (INDEX, ["batch"])},
        {"output_height": 2, "output_width": 3},
    ),
    "TfIdfVectorizer": (
        9,
        {"x": (INDEX, ["batch", 6])},
        {
            **{"max_gram_length": 2, "max_skip_count": 1, "min_gram_length": 2, "mode": "TF"},
            **{"ngram_counts": [0, 0], "ngram_indexes": [0, 1], "pool_int64s": [0, 1, 1, 0]},
        },
    ),
}
"""Operator → opset, element types and sizes of its inputs, and attributes."""

CONSTANTS = {"Col2Im": [np.array([5, 6]), np.array([2, 2])]}
"""Operator → what follows its inputs."""


def model_of(kind: str) -> bytes:
    """A model of one operator."""
    opset, inputs, attributes = MODELS[kind]
    constants = [numpy_helper.from_array(array, f"c{at}") for at, array in enumerate(CONSTANTS.get(kind, []))]
    node = helper.make_node(kind, [*inputs, *(item.name for item in constants)], ["y"], name="it", **attributes)
    described = [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()]
    graph = helper.make_graph([node], "batches", described, [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model.SerializeToString()


def arrays_of(kind: str, batch: int) -> dict[str, np.ndarray]:
    """Inputs with so many elements along the batch."""
    generator = np.random.default_rng(batch)
    shapes = {
        name: (element, [size if isinstance(size, int) else batch for size in sizes])
        for name, (element, sizes) in MODELS[kind][1].items()
    }
    return {
        name: generator.integers(0, 2, shape) if element == INDEX else generator.normal(size=shape).astype(np.float32)
        for name, (element, shape) in shapes.items()
    }


@pytest.mark.parametrize("kind", MODELS)
def test_one_compilation_for_all_batches(kind: str) -> None:
    content = model_of(kind)
    bounded = InferenceSession(content, dimensions=BOUNDS, cache=False)
    exact = InferenceSession(content, cache=False)
    for batch in (1, 4, 6):
        arrays = arrays_of(kind, batch)
        (found,), (wanted,) = bounded.run(None, arrays), exact.run(None, arrays)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)

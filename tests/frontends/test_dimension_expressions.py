"""Dimensions that are expressions of others: whichever of these are free, and wherever sizes are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glow_mlir import InferenceSession
from glow_mlir.errors import InputError, OptionError
from glow_mlir.frontends.onnx.importer import import_model, open_model
from glow_mlir.frontends.onnx.signature import signature_of
from glow_mlir.runtime.signature import MissingSizeError
from glow_mlir.support.symbols import with_numbers
from glow_mlir.tools.inputs.run_inputs import free_sizes


def model(middle: str = "M") -> onnx.ModelProto:
    """Three vectors side by side; the lengths of the first and the last one are `N` and `K`."""
    sizes = {"x": "N", "y": middle, "z": "K"}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in sizes.items()]
    output = helper.make_tensor_value_info("all", TensorProto.FLOAT, [None])
    graph = helper.make_graph([helper.make_node("Concat", list(sizes), ["all"], axis=0)], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def vectors(*sizes: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {name: random.normal(size=size).astype(np.float32) for name, size in zip("xyz", sizes, strict=True)}


@pytest.mark.parametrize(
    ("middle", "dimensions"),
    [
        ("M", {"M": "N + K"}),
        ("M", {"M": "N + K", "K": 3}),
        ("M", {"M": "N + K", "N": (1, None), "K": 3}),
        ("M", {"M": "N + K", "N": (0, 9)}),
        ("N + K", {"K": 3}),
        ("N + K", {"N": (1, None), "K": 3}),
    ],
)
def test_other_sizes_are_refused(middle: str, dimensions: dict[str, Any]) -> None:
    session = InferenceSession(model(middle), dimensions=dimensions, cache=False)
    for first in (2, 5):
        given = vectors(first, first + 3, 3)
        (found,) = session.run(None, given)
        np.testing.assert_array_equal(found, np.concatenate(list(given.values())))
        with pytest.raises(InputError, match=r"N \+ [3K]"):
            session.run(None, vectors(first, first + 4, 3))


@pytest.mark.parametrize(("text", "reason"), [("-1", "cannot be '-1' long"), ("2 * 2", "long"), ("N - 5", "is -2")])
def test_an_expression_has_other_dimensions_and_no_negative_size(text: str, reason: str) -> None:
    with pytest.raises(OptionError, match=f"dimension 'M' .*{reason}"):
        import_model(model(), {"N": 3, "M": text, "K": 1})


def test_an_expression_needs_no_size_of_its_own() -> None:
    with pytest.raises(MissingSizeError, match=r"^2 dimensions have no size: 'N' of input 'x', 'K' of input 'z'"):
        import_model(model(), {"M": "N + K"})


def test_given_sizes_are_numbers_in_expressions() -> None:
    known = {"past": 7, "heads": 2}
    assert with_numbers("past + tokens", known) == "7 + tokens"
    assert with_numbers("(tokens*heads+ 1) // 4", known) == "(tokens*2+ 1) // 4"
    assert with_numbers("past*heads", known) == 14
    assert with_numbers("past_tokens", known) == "past_tokens"


@pytest.mark.filterwarnings("ignore:unknown size")
def test_sizes_of_drawn_inputs_follow_from_others() -> None:
    arguments = signature_of(open_model(model()), {"M": "N + K"}).inputs
    assert free_sizes(arguments, {}) == {"N": 1, "K": 1, "N + K": 2}
    assert free_sizes(arguments, {"x": np.zeros(4)}) == {"N": 4, "K": 1, "N + K": 5}

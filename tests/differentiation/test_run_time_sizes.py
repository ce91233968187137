"""Gradients where sizes are known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients import central_differences, differentiated, run_machine_code
from operator_gradients import numbers
from xdsl.dialects.builtin import ModuleOp, f64, i64

from glow_mlir.dialects.glow_high import data_movement as movement
from glow_mlir.dialects.glow_high import indexing, reductions
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.dialects.sizes import shape_at
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.interpreter.machine import run_function
from glow_mlir.support.symbols import Sizes, Symbol, SymbolicSize

N = SymbolicSize.of(Symbol("n", 2, 6))
ROWS: Sizes = (N, 3)

CASES: dict[str, tuple[type[HighOp], dict[str, Any]]] = {
    "reshape": (movement.ReshapeOp, {"shape": (N * 3,)}),
    "tile": (movement.TileOp, {"repeats": (2, 1)}),
    "slice": (movement.SliceOp, {"starts": (1, 0), "ends": (N, 2)}),
    "slice of even rows": (movement.SliceOp, {"starts": (0, 0), "ends": (N, 3), "steps": (2, 1)}),
    "slice downwards": (movement.SliceOp, {"starts": (N - 1, 2), "ends": (-1, -1), "steps": (-2, -2)}),
    "pad": (movement.PadOp, {"pads": (1, 0, 1, 2)}),
    "pad with the edge": (movement.PadOp, {"pads": (3, 0, 1, 2), "mode": "edge"}),
    "pad with the mirror image": (movement.PadOp, {"pads": (1, 0, 1, 2), "mode": "reflect"}),
    "pad with repetitions": (movement.PadOp, {"pads": (1, 0, 2, 2), "mode": "wrap"}),
    "mean": (reductions.ReduceMeanOp, {"axes": (0,)}),
    "product": (reductions.ReduceProdOp, {"axes": (0, 1), "keepdims": False}),
    "running product": (reductions.CumProdOp, {"axis": 0}),
    "top k": (reductions.TopKOp, {"k": 2, "axis": 0}),
}


def _module(kind: type[HighOp], properties: dict[str, Any], *others: Sizes) -> ModuleOp:
    """The squares `y` of what an operator gives of rows `x`, and of indices where it takes some, and their gradient."""
    builder = ModuleBuilder()
    types = {"x": tensor(ROWS, f64), **{f"indices{place}": tensor(sizes, i64) for place, sizes in enumerate(others)}}
    x, *indices = builder.add_inputs(types, {}).values()
    result = builder.insert(kind.make(x, *indices, location=named_location("op"), **properties)).results[0]
    square = builder.insert(MulOp.make(result, result, location=named_location("square"))).results[0]
    builder.add_output("y", square)
    gradient = GradientOp.make(square, None, [x], location=named_location("gradient"))
    builder.add_output("dx", builder.insert(gradient).results[0])
    return differentiated(builder.finish("main"))


def _check(module: ModuleOp, inputs: dict[str, np.ndarray]) -> None:
    expected = central_differences(lambda values: run_function(module, values)["y"], inputs, "x")
    for found in run_function(module, inputs), run_machine_code(module.clone(), inputs):
        np.testing.assert_allclose(found["dx"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    _check(_module(*CASES[name]), {"x": numbers(*shape_at(ROWS, {"n": 5}))})


def test_gathers() -> None:
    rows = numbers(4, 3)
    _check(_module(indexing.GatherOp, {"axis": 1}, (N,)), {"x": rows, "indices0": np.array([2, 0, 2, -1])})
    batches = _module(indexing.GatherNDOp, {"batch_dims": 1}, (N, 2, 1))
    _check(batches, {"x": rows, "indices0": np.array([[[0], [2]], [[1], [1]], [[2], [-1]], [[0], [0]]])})


def test_border_that_repeats_more_than_is_known_has_none() -> None:
    with pytest.raises(UnsupportedError, match="the size n - 1 is known at run time only"):
        _module(movement.PadOp, {"pads": (4, 0, 0, 0), "mode": "reflect"})

"""Gradients of normalization by statistics: by the input and by each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients
from xdsl.ir import SSAValue

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.normalization import (
    BatchNormalizationOp,
    GroupNormalizationOp,
    HardmaxOp,
    InstanceNormalizationOp,
    LrnOp,
)
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

SHAPE, CHANNELS = (2, 3, 2, 4), 4


def drawn(*shape: int) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def parameters(*names: str, channels: int = CHANNELS) -> dict[str, np.ndarray]:
    """A positive number a channel for each name."""
    return {name: drawn(channels, number + 1)[:, 0] + 1.5 for number, name in enumerate(names)}


def check(kind: type[HighOp], inputs: Mapping[str, np.ndarray], **properties: Any) -> None:
    """Compare the gradient of the squares of what an operator gives."""

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(kind, *values.values(), **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, inputs)


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_normalization(axis: int) -> None:
    names = ("scale", "offset", "mean", "variance")
    inputs = {"x": drawn(*SHAPE), **parameters(*names, channels=SHAPE[axis])}
    check(BatchNormalizationOp, inputs, axis=axis, epsilon=0.1)


@pytest.mark.parametrize("axis", [-1, 1])
def test_instance_normalization(axis: int) -> None:
    inputs = {"x": drawn(*SHAPE), **parameters("scale", "offset", channels=SHAPE[axis])}
    check(InstanceNormalizationOp, inputs, axis=axis, epsilon=0.01)


@pytest.mark.parametrize(("axis", "groups"), [(-1, 2), (1, 2), (1, 1)])
def test_group_normalization(axis: int, groups: int) -> None:
    shape = (2, 4, 3) if axis == 1 else (2, 3, 4)
    inputs = {"x": drawn(*shape), **parameters("scale", "offset")}
    check(GroupNormalizationOp, inputs, axis=axis, groups=groups, epsilon=0.01)


@pytest.mark.parametrize(("size", "axis"), [(2, -1), (3, 1)])
def test_lrn(size: int, axis: int) -> None:
    check(LrnOp, {"x": drawn(2, 4, 2, 5)}, size=size, axis=axis, alpha=0.5, bias=1.5)


@pytest.mark.parametrize("shape", ["?x6x7", "4x?x7", "4x6x?"])
def test_lrn_of_sizes_known_at_run_time_only(shape: str) -> None:
    type_ = f"tensor<{shape}xf32, #glow.sizes<[s], s = 1 to 9>>"
    text = f"""
    glow_high.func @main(%x: {type_}, %g: {type_}) -> {type_} {{
      %y = glow_high.lrn %x {{size = 3, axis = 1, alpha = 0.5}} : {type_}
      %d = glow_high.gradient %y, %g, %x : {type_}
      glow_high.return %d
    }}
    """
    cpu, meaning = (
        InferenceSession(parse_module(text, new_context()), backend=backend, cache=False)
        for backend in ("cpu", "interpreter")
    )
    for size in (1, 2, 9):
        sizes = [size if part == "?" else int(part) for part in shape.split("x")]
        feeds = {"x": drawn(*sizes).astype(np.float32), "g": drawn(*sizes)[::-1].astype(np.float32)}
        np.testing.assert_allclose(cpu.run(None, feeds)[0], meaning.run(None, feeds)[0], rtol=1e-5, atol=1e-6)


def test_hardmax_has_no_slope() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return emit(AddOp, emit(HardmaxOp, values["x"]), values["x"])

    check_gradients(graph, {"x": drawn(2, 5)})


def test_second_derivative_of_batch_normalization() -> None:
    inputs = {"x": drawn(3, 2, 2), **parameters("scale", "offset", "mean", "variance", channels=2)}

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(BatchNormalizationOp, *values.values(), epsilon=0.1)
        slope = emit(GradientOp, emit(MulOp, y, emit(MulOp, y, y)), None, [values["x"]])
        return emit(MulOp, slope, slope)

    check_gradients(graph, inputs, ["x", "scale", "offset"], rtol=1e-4)

"""Gradients of convolutions: each property, layout and form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import Col2ImOp, ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.gradient import GradientOp

FIRST = {"layout": "channels_first"}

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Mapping[str, Any]]] = {
    "plain": ((2, 5, 4, 3), (4, 3, 2, 3), {}),
    "many images": ((4, 4, 5, 2), (3, 3, 2, 2), {"pads": (1, 0, 1, 1)}),
    "strides that leave a rest": ((4, 6, 7, 2), (3, 3, 2, 2), {"strides": (2, 3)}),
    "strides and pads": ((4, 6, 5, 2), (2, 3, 3, 2), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "windows that reach no end": ((1, 8, 8, 2), (2, 1, 3, 2), {"strides": (3, 3)}),
    "dilations": ((4, 6, 7, 1), (2, 3, 2, 1), {"dilations": (2, 3), "pads": (2, 1, 0, 2)}),
    "strides and dilations": ((4, 8, 7, 2), (2, 2, 3, 2), {"dilations": (2, 2), "strides": (2, 3)}),
    "pointwise": ((4, 3, 3, 3), (4, 1, 1, 3), {}),
    "pointwise with strides": ((2, 5, 4, 3), (2, 1, 1, 3), {"strides": (2, 2)}),
    "groups": ((2, 4, 4, 4), (6, 3, 2, 2), {"group": 2, "pads": (1, 1, 0, 0)}),
    "pointwise groups": ((2, 2, 3, 4), (4, 1, 1, 2), {"group": 2}),
    "depthwise": ((2, 5, 5, 3), (3, 3, 3, 1), {"group": 3, "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "depthwise with a multiplier": ((2, 4, 4, 2), (4, 3, 2, 1), {"group": 2}),
    "line": ((2, 7, 2), (3, 3, 2), {"strides": (2,), "pads": (1, 1)}),
    "volume": ((1, 3, 4, 3, 2), (2, 2, 2, 2, 2), {"pads": (1, 0, 0, 0, 1, 0)}),
    "channels first": ((4, 2, 5, 4), (3, 2, 3, 3), {**FIRST, "strides": (2, 1), "pads": (1, 1, 1, 1)}),
    "channels first, one image": ((1, 2, 5, 4), (3, 2, 2, 3), FIRST),
    "channels first, groups": ((2, 4, 4, 4), (4, 2, 2, 3), {**FIRST, "group": 2}),
    "channels first, depthwise": ((2, 3, 4, 4), (3, 1, 3, 3), {**FIRST, "group": 3, "pads": (1, 1, 1, 1)}),
    "channels first, pointwise": ((2, 3, 3, 2), (4, 3, 1, 1), FIRST),
}

TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], Mapping[str, Any]]] = {
    "plain": ((2, 3, 3, 2), (2, 2, 3, 3), {}),
    "strides": ((4, 3, 3, 2), (2, 3, 3, 2), {"strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 1)}),
    "long output padding": ((1, 3, 2, 2), (2, 2, 2, 1), {"strides": (1, 2), "output_padding": (2, 3)}),
    "dilations": ((1, 3, 4, 2), (2, 2, 2, 2), {"dilations": (2, 3), "pads": (0, 1, 1, 0)}),
    "groups": ((2, 3, 3, 4), (4, 2, 2, 1), {"group": 2, "strides": (2, 1)}),
    "channels first": ((2, 2, 3, 3), (2, 3, 2, 2), {**FIRST, "strides": (2, 2)}),
    "line": ((2, 4, 2), (2, 3, 2), {"strides": (2,)}),
}


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Numbers between -1 and 1."""
    generator = np.random.default_rng(len(shapes[0]))
    return [generator.uniform(-1, 1, shape) for shape in shapes]


def weighted(emit: Emit, value: SSAValue) -> SSAValue:
    """The square, so that the cotangent of a value is one of its own elements."""
    return emit(MulOp, value, value)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_conv(case: str) -> None:
    image, filter_, properties = CONVOLUTIONS[case]
    x, w, b = drawn(image, filter_, filter_[:1])

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return weighted(emit, emit(ConvOp, values["x"], values["w"], values["b"], **properties))

    check_gradients(graph, {"x": x, "w": w, "b": b})


@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv_transpose(case: str) -> None:
    image, filter_, properties = TRANSPOSED[case]
    outputs = filter_[1 if "layout" in properties else -1] * int(properties.get("group", 1))
    x, w, b = drawn(image, filter_, (outputs,))

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return weighted(emit, emit(ConvTransposeOp, values["x"], values["w"], values["b"], **properties))

    check_gradients(graph, {"x": x, "w": w, "b": b})


def test_col2im() -> None:
    properties = {"image_shape": (4, 5), "block_shape": (2, 3), "strides": (1, 2), "pads": (1, 0, 0, 1)}

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return weighted(emit, emit(Col2ImOp, values["x"], **properties))

    check_gradients(graph, {"x": drawn((2, 12, 8))[0]})


@pytest.mark.parametrize("kind", [ConvOp, ConvTransposeOp])
def test_second_derivative_by_the_input(kind: type[ConvOp | ConvTransposeOp]) -> None:
    x, w = drawn((1, 4, 3, 2), (2, 2, 2, 2))

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = weighted(emit, emit(kind, values["x"], values["w"], None, strides=(2, 1)))
        return weighted(emit, emit(GradientOp, y, None, [values["x"]]))

    check_gradients(graph, {"x": x, "w": w})

"""onnxruntime's operators on images in layouts of its own give what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from contrib_cases import ONNXRUNTIME, Contrib, assert_near, normal
from onnx import helper, numpy_helper
from onnx_models import refusal
from other_runtimes import by_onnxruntime

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model

F = Mapping[str, Any]
RANDOM = np.random.default_rng(11)
IMAGE = RANDOM.integers(0, 256, (2, 6, 7, 4)).astype(np.uint8)
"""Channels are last."""


def codes(*shape: int, dtype: str = "int8", most: int = 64) -> np.ndarray:
    return RANDOM.integers(-most if dtype == "int8" else 0, most, shape).astype(dtype)


def scalar(number: float, dtype: str = "float32") -> np.ndarray:
    return np.array(number, dtype)


def convolution(image: np.ndarray, outputs: int, group: int = 1, per_filter: bool = False) -> list[np.ndarray | None]:
    """The operands of a convolution of codes."""
    kind, channels = image.dtype.name, image.shape[-1]
    scale = RANDOM.uniform(0.005, 0.02, outputs if per_filter else ()).astype(np.float32)
    zeros = np.zeros(outputs if per_filter else (), np.int8)
    filters = codes(outputs, channels // group, 3, 3)
    bias = RANDOM.integers(-900, 900, outputs).astype(np.int32)
    return [
        *(image, scalar(0.02), scalar(3, kind), filters, scale, zeros, scalar(0.1), scalar(7, kind), bias),
    ]


@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 1], "pads": [1, 0, 1, 2]}, {"auto_pad": "SAME_UPPER"}])
@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("per_filter", [False, True])
def test_convolutions_of_codes_with_channels_last(attributes: F, group: int, per_filter: bool) -> None:
    """As onnxruntime writes them: all operands but the image are constants."""
    operands = convolution(IMAGE, 8, group, per_filter)
    case = Contrib(
        "QLinearConv", operands, {"channels_last": 1, "group": group, **attributes}, constant=range(1, len(operands))
    )
    wanted = case.expected()
    for backend in ("interpreter", "cpu"):
        (found,) = case.by_us(backend)
        assert found.dtype == wanted[0].dtype
        assert np.abs(found.astype(int) - wanted[0]).max() <= 1
        assert np.mean(found == wanted[0]) > 0.99


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("attributes", [{}, {"axes": [1, -1], "keepdims": 0}, {"axes": [-1]}])
def test_means_of_codes(attributes: F, dtype: str) -> None:
    operands = [codes(2, 3, 4, dtype=dtype), scalar(0.02), scalar(3, dtype), scalar(0.01), scalar(5, dtype)]
    case = Contrib("QLinearReduceMean", operands, attributes, constant=range(1, 5))
    x = (operands[0].astype(float) - 3) * 0.02
    axes = tuple(attributes.get("axes", range(3)))
    mean = x.mean(axis=axes, keepdims=bool(attributes.get("keepdims", 1)))
    limits = np.iinfo(dtype)
    # onnxruntime has the schema, and no kernel.
    wanted = np.clip(np.rint(mean / 0.01) + 5, limits.min, limits.max)
    for backend in ("interpreter", "cpu"):
        (found,) = case.by_us(backend)
        assert (found.dtype, found.shape) == (np.dtype(dtype), wanted.shape)
        assert np.abs(found - wanted).max() <= 1


def test_means_of_windows_of_integers_with_channels_last() -> None:
    operands = [IMAGE, scalar(0.02), scalar(3, "uint8"), scalar(0.015), scalar(9, "uint8")]
    window = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1], "channels_last": 1}
    case = Contrib("QLinearAveragePool", operands, window, constant=range(1, 5))
    (wanted,) = case.expected()
    for backend in ("interpreter", "cpu"):
        (found,) = case.by_us(backend)
        assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 2], "pads": [1, 0, 1, 1]}, {"auto_pad": "SAME_LOWER"}])
def test_maxima_of_windows_with_channels_last(attributes: F) -> None:
    Contrib("NhwcMaxPool", [IMAGE], {"kernel_shape": [3, 3], **attributes}).check()
    Contrib("NhwcMaxPool", [IMAGE.view(np.int8)], {"kernel_shape": [2, 3], **attributes}).check()


@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 1], "group": 2}, {"auto_pad": "SAME_UPPER"}])
@pytest.mark.parametrize(
    "activation", [{}, {"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.3]}]
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_convolutions_of_floats_with_channels_last(attributes: F, activation: F, dtype: str) -> None:
    """Those of the same image with channels first: onnxruntime has a kernel for processors with floats of 16 bits."""
    attributes = {**attributes, **activation, "kernel_shape": [3, 3]}
    filters, bias, addend = normal(8, 4 // attributes.get("group", 1), 3, 3), normal(8), normal(1, 8, 6, 7)
    operands = [normal(1, 4, 6, 7), filters, bias, *[addend] * ("auto_pad" in attributes)]
    (first,) = Contrib("FusedConv", operands, attributes).expected()
    places = {0, 3}
    given = [array.transpose(0, 2, 3, 1) if i in places else array for i, array in enumerate(operands)]
    case = Contrib("NhwcFusedConv", [np.ascontiguousarray(array.astype(dtype)) for array in given], attributes)
    case.check([first.transpose(0, 2, 3, 1).astype(dtype)])


# ---- the blocked layout: what onnxruntime writes is in test_optimized_models; here is what does not fit

BLOCKED = "com.microsoft.nchwc"


def blocked(
    nodes: Sequence[onnx.NodeProto], weights: Mapping[str, np.ndarray], shape: Sequence[int]
) -> onnx.ModelProto:
    """A model of one image."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name=nodes[-1].output[0])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in ((BLOCKED, 1), ("", 21), (ONNXRUNTIME, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def packed(filters: np.ndarray, block: int) -> np.ndarray:
    """Filters as onnxruntime packs them for blocks of that size."""
    outputs, inputs, *window = filters.shape
    wide = -(-inputs // block) * block if inputs >= block else inputs
    filled = np.zeros((-(-outputs // block) * block, wide, *window), np.float32)
    filled[:outputs, :inputs] = filters
    if wide % block:
        parts = filled.reshape(-1, block, wide, *window).transpose(0, 2, 3, 4, 1)
    else:
        parts = filled.reshape(-1, block, wide // block, block, *window).transpose(0, 2, 4, 5, 3, 1)
    return np.ascontiguousarray(parts).reshape(filled.shape)


@pytest.mark.parametrize(("block", "channels"), [(8, 24), (8, 40), (16, 24), (16, 32), (16, 40)])
def test_blocks_of_either_size(block: int, channels: int) -> None:
    """What fills blocks up tells their size; convolutions are those of the filters without it."""
    shapes = {"a": (channels, 3, 3, 3), "b": (channels, 1, 3, 3), "c": (20, channels, 1, 1)}
    weights = {name: normal(*shape) for name, shape in shapes.items()}
    biases = {f"{name}.bias": normal(len(array)) for name, array in weights.items()}
    pads = {"pads": [1, 1, 1, 1]}

    def nodes(domain: str, groups: int) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Conv", ["x", "a", "a.bias"], ["p"], domain=domain, **pads),
            helper.make_node("Sigmoid", ["p"], ["q"]),
            helper.make_node("Conv", ["q", "b", "b.bias"], ["r"], domain=domain, group=groups, **pads),
            helper.make_node("Add", ["q", "r"], ["s"]),
            helper.make_node("Conv", ["s", "c", "c.bias"], ["t"], domain=domain),
        ]

    x = {"x": normal(2, 3, 6, 6)}
    plain = blocked([*nodes("", channels), helper.make_node("Relu", ["t"], ["y"])], {**weights, **biases}, (2, 3, 6, 6))
    filled = {name: packed(array, block) for name, array in weights.items()}
    filled["b"] = packed(weights["b"], block)
    filled |= {name: np.pad(array, (0, -len(array) % block)) for name, array in biases.items()}
    outputs = [
        helper.make_node("ReorderOutput", ["t"], ["u"], domain=BLOCKED, channels=20),
        helper.make_node("Relu", ["u"], ["y"]),
    ]
    model = blocked([*nodes(BLOCKED, len(filled["b"])), *outputs], filled, (2, 3, 6, 6))
    assert_near(InferenceSession(model, cache=False).run(None, x), list(by_onnxruntime(plain, x).values()), 2e-5)
    convolutions = [op for op in import_model(model).walk() if isinstance(op, ConvOp)]
    assert [shape_of(op.filter)[0] for op in convolutions] == [channels, channels, 20]


def test_what_is_no_blocked_image_is_refused_in_one_line() -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], "c", domain=BLOCKED)
    out = helper.make_node("ReorderOutput", ["y"], ["z"], "r", domain=BLOCKED, channels=4)
    odd = blocked([conv, out], {"w": normal(12, 3, 3, 3)}, (1, 3, 8, 8))
    assert "filters of shape (12, 3, 3, 3) are not in blocks" in refusal(odd, ModelError)
    flat = blocked([conv, out], {"w": normal(16, 3, 3)}, (1, 3, 8))
    assert "operand 0 of Conv has 3 axes" in refusal(flat, ModelError)
    many = blocked(
        [conv, helper.make_node("ReorderOutput", ["y"], ["z"], domain=BLOCKED, channels=40)],
        {"w": normal(16, 3, 3, 3)},
        (1, 3, 8, 8),
    )
    assert "40 channels of 16" in refusal(many, ModelError)
    given = blocked([helper.make_node("Conv", ["x", "x"], ["y"], "c", domain=BLOCKED)], {}, (16, 3, 3, 3))
    assert "the filters of Conv depends on an input of the model" in refusal(given, UnsupportedError)

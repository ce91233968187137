"""Networks for images whose batch, height and width are known at run time only, by one compilation, as onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.errors import ModelError, UnsupportedError

BOUNDS = {"batch": (1, 4), "height": (8, 40), "width": (8, 40)}

SIZES = ((1, 8, 8), (1, 9, 33), (2, 32, 32), (3, 33, 17), (1, 40, 8), (1, 8, 40), (4, 40, 40), (1, 39, 38))
"""Batch, height and width of calls."""


class Network:
    """A model under construction, of an image `image` with three channels."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant((self.random.normal(size=shape) * scale).astype(np.float32))

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [name], name, **attributes))
        return name

    def conv(self, x: str, channels: tuple[int, int], side: int, step: int = 1, group: int = 1) -> str:
        """A convolution and the normalization behind it."""
        depth = channels[0] // group * side**2
        filters = self.normal(channels[1], channels[0] // group, side, side, scale=depth**-0.5)
        found = self.op("Conv", x, filters, strides=[step] * 2, pads=[side // 2] * 4, group=group)
        ones = [self.constant(self.random.uniform(0.5, 1.5, channels[1]).astype(np.float32)) for _ in range(2)]
        scale, variance = ones
        bias, mean = (self.normal(channels[1], scale=0.1) for _ in range(2))
        return self.op("BatchNormalization", found, scale, bias, mean, variance)

    def active(self, x: str, channels: tuple[int, int], side: int, step: int = 1, group: int = 1) -> str:
        return self.op("Relu", self.conv(x, channels, side, step, group))

    def pool(self, x: str, kind: str = "MaxPool", step: int = 2) -> str:
        return self.op(kind, x, kernel_shape=[3, 3], strides=[step] * 2, pads=[1] * 4)

    def classified(self, x: str, channels: int) -> str:
        flat = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.op("Gemm", flat, self.normal(channels, 10), self.normal(10))

    def model(self, result: str) -> bytes:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
        y = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", [image], [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def small() -> bytes:
    """A convolution and a pool, both by steps of two, and a classifier."""
    n = Network()
    return n.model(n.classified(n.pool(n.active("image", (3, 8), 3, 2)), 8))


def residual(channels: int) -> bytes:
    """In the manner of ResNet (He et al. 2015): a stem, and blocks of two convolutions with what skips them."""
    n = Network()
    x, before = n.pool(n.active("image", (3, channels), 7, 2)), channels
    for after, step in ((channels, 1), (2 * channels, 2), (4 * channels, 2)):
        y = n.conv(n.active(x, (before, after), 3, step), (after, after), 3)
        x = x if before == after else n.conv(x, (before, after), 1, step)
        x, before = n.op("Relu", n.op("Add", x, y)), after
    return n.model(n.classified(x, before))


def depthwise() -> bytes:
    """In the manner of MobileNet (Howard et al. 2019): one filter a channel, and channels that are weighed."""
    n = Network()
    x, before = n.active("image", (3, 16), 3, 2), 16
    for after, step in ((24, 2), (24, 1), (40, 2)):
        y = n.active(n.active(x, (before, 48), 1), (48, 48), 3, step, group=48)
        y = n.conv(y, (48, after), 1)
        weighed = n.op("Sigmoid", n.conv(n.op("GlobalAveragePool", y), (after, after), 1))
        y = n.op("Mul", y, weighed)
        x, before = n.op("Add", x, y) if before == after else y, after
    return n.model(n.classified(x, before))


def grown_again() -> bytes:
    """Smaller by steps, larger by interpolation, and means of blocks of which the last are cut."""
    n = Network()
    x = n.active(n.active("image", (3, 8), 3, 2), (8, 16), 3, 2)
    larger = n.op("Resize", x, "", n.constant(np.array([1, 1, 2, 1.5], np.float32)), mode="linear")
    larger = n.op("ConvTranspose", larger, n.normal(16, 8, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    x = n.op("AveragePool", n.active(larger, (8, 8), 3), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    return n.model(n.op("LRN", x, size=3))


def side_by_side() -> bytes:
    """Windows whose results lie beside each other in memory, in each order: what one writes outside shows in others."""
    n = Network()
    parts = n.pool("image"), n.conv("image", (3, 3), 3, 2), n.pool("image", "AveragePool")
    depthwise = n.conv("image", (3, 3), 3, 2, group=3)
    joined = [
        n.op("Concat", *parts, depthwise, axis=2),
        n.op("Concat", depthwise, *parts[::-1], axis=3),
        n.op("Concat", parts[1], depthwise, parts[0], axis=3),
        n.op("Concat", parts[2], depthwise, *parts[:2], axis=1),
    ]
    return n.model(n.op("Concat", *(n.op("Flatten", x) for x in joined), axis=1))


def branched() -> bytes:
    """In the manner of Inception (Szegedy et al. 2014): branches that are joined along the channels."""
    n = Network()
    x = n.active("image", (3, 8), 3, 2)
    x = n.op("Concat", n.active(x, (8, 5), 1), n.active(x, (8, 6), 3), n.active(n.pool(x, step=1), (8, 7), 1), axis=1)
    x = n.op("Concat", n.active(x, (18, 9), 3, 2), n.pool(x), axis=1)
    return n.model(n.op("ReduceMean", x, axes=[2, 3], keepdims=0))


def in_blocks() -> bytes:
    """Every second line and column, in blocks as channels (YOLOv5's focus), of a size that is a quotient itself."""
    n = Network()
    x = n.active("image", (3, 4), 3, 2)
    bounds = n.constant(np.array([1 << 60] * 2)), n.constant(np.array([2, 3])), n.constant(np.array([2, 2]))
    parts = [
        n.op("Slice", x, n.constant(np.array([row, column])), *bounds) for row, column in ((0, 0), (-1, -1), (0, -2))
    ]
    return n.model(n.op("Concat", *(n.op("GlobalMaxPool", part) for part in parts), axis=1))


MODELS: dict[str, Callable[[], bytes]] = {
    "small": small,
    "residual": lambda: residual(16),
    "residual, wide": lambda: residual(64),
    "depthwise": depthwise,
    "grown again": grown_again,
    "side by side": side_by_side,
    "branched": branched,
    "in blocks": in_blocks,
}


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", MODELS)
def test_one_compilation_serves_images_of_all_sizes(name: str, backend: str) -> None:
    content = MODELS[name]()
    session = InferenceSession(content, backend=backend, dimensions=BOUNDS, cache=False)
    reference = cast("Any", onnxruntime).InferenceSession(content)
    for batch, height, width in SIZES if backend == "cpu" else SIZES[1:2]:
        image = np.random.default_rng(batch).normal(size=(batch, 3, height, width)).astype(np.float32)
        (found,), (wanted,) = (any_session.run(None, {"image": image}) for any_session in (session, reference))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * float(np.abs(wanted).max()))
    assert not session.specializations


def test_results_have_sizes_that_users_see() -> None:
    n = Network()
    session = InferenceSession(n.model(n.pool(n.pool("image"))), dimensions=BOUNDS, cache=False)
    assert session.get_outputs()[0].shape == ["batch", 3, "(height + 3) floordiv 4", "(width + 3) floordiv 4"]


def test_images_smaller_than_a_window_are_no_size() -> None:
    n = Network()
    content = n.model(n.op("MaxPool", "image", kernel_shape=[9, 9]))
    with pytest.raises(
        ModelError, match=r"^node 'maxpool0': MaxPool: the window of 9 exceeds the padded input of height"
    ):
        InferenceSession(content, dimensions=BOUNDS, cache=False)


def test_padding_that_differs_with_the_size_is_refused() -> None:
    n = Network()
    content = n.model(n.op("MaxPool", "image", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"))
    with pytest.raises(UnsupportedError, match=r"^node 'maxpool0': MaxPool: auto_pad 'SAME_UPPER' by steps of 2 pads"):
        InferenceSession(content, dimensions=BOUNDS, cache=False)

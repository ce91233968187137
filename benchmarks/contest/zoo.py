"""Further networks for the benchmark: one or two of each family that users run, with seeded weights."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from models import GraphBuilder, calibrate_batch_norm, gru_network, he, layer_norm, linear, seeded_light_model
from onnx import TensorProto

FLOAT = int(TensorProto.FLOAT)


def _conv(
    g: GraphBuilder, x: str, channels: int, outputs: int, size: int, stride: int = 1, group: int = 1, act: str = ""
) -> str:
    """A square convolution that keeps the size but for its stride, its bias, and an activation."""
    weights = g.weight(he(g.rng, (outputs, channels // group, size, size), channels // group * size * size))
    bias = g.weight(np.full(outputs, 0.01, np.float32))
    x = g.node("Conv", x, weights, bias, strides=[stride] * 2, pads=[size // 2] * 4, group=group)
    return activation(g, x, act)


def activation(g: GraphBuilder, x: str, kind: str) -> str:
    """An activation as exporters write it; the empty name is none."""
    if kind == "Silu":
        return g.node("Mul", x, g.node("Sigmoid", x))
    if kind == "Gelu":
        erf = g.node("Erf", g.node("Mul", x, g.weight(np.float32(np.sqrt(0.5)))))
        half = g.node("Mul", x, g.weight(np.float32(0.5)))
        return g.node("Mul", half, g.node("Add", erf, g.weight(np.float32(1.0))))
    return g.node(kind, x) if kind else x


def _head(g: GraphBuilder, x: str, channels: int, classes: int = 1000) -> str:
    pooled = g.node("Flatten", g.node("GlobalAveragePool", x))
    return linear(g, pooled, channels, classes)


def _image(g: GraphBuilder, output: str, size: int, shape: Sequence[int]) -> onnx.ModelProto:
    return g.model({"input": (FLOAT, [1, 3, size, size])}, {output: list(shape)})


def _squeeze(g: GraphBuilder, x: str, channels: int, inner: int, gate: str, act: str) -> str:
    """Squeeze-and-excitation (Hu et al. 2018): channels scaled by a function of their means."""
    mean = g.node("GlobalAveragePool", x)
    return g.node("Mul", x, g.node(gate, _conv(g, _conv(g, mean, channels, inner, 1, act=act), inner, channels, 1)))


def _larger(g: GraphBuilder, x: str) -> str:
    """Each pixel four times."""
    scales = g.weight(np.array([1, 1, 2, 2], np.float32))
    return g.node(
        "Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


def efficientnet_b0() -> onnx.ModelProto:
    """EfficientNet-B0 (Tan and Le 2019)."""
    g = GraphBuilder(0)
    x, channels = _conv(g, "input", 3, 32, 3, 2, act="Silu"), 32
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    for expand, outputs, repeats, first, size in (*stages, (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for index in range(repeats):
            stride, hidden = first if index == 0 else 1, channels * expand
            y = _conv(g, x, channels, hidden, 1, act="Silu") if expand > 1 else x
            y = _conv(g, y, hidden, hidden, size, stride, hidden, "Silu")
            y = _squeeze(g, y, hidden, max(1, channels // 4), "Sigmoid", "Silu")
            y = _conv(g, y, hidden, outputs, 1)
            x = g.node("Add", x, y) if stride == 1 and channels == outputs else y
            channels = outputs
    return _image(g, _head(g, _conv(g, x, 320, 1280, 1, act="Silu"), 1280), 224, [1, 1000])


def mobilenet_v3() -> onnx.ModelProto:
    """MobileNetV3-Large (Howard et al. 2019)."""
    g = GraphBuilder(0)
    x, channels = _conv(g, "input", 3, 16, 3, 2, act="HardSwish"), 16
    relu, swish = "Relu", "HardSwish"
    for size, hidden, outputs, squeeze, act, stride in (
        *((3, 16, 16, 0, relu, 1), (3, 64, 24, 0, relu, 2), (3, 72, 24, 0, relu, 1), (5, 72, 40, 24, relu, 2)),
        *((5, 120, 40, 32, relu, 1), (5, 120, 40, 32, relu, 1), (3, 240, 80, 0, swish, 2), (3, 200, 80, 0, swish, 1)),
        *((3, 184, 80, 0, swish, 1), (3, 184, 80, 0, swish, 1), (3, 480, 112, 120, swish, 1)),
        *((3, 672, 112, 168, swish, 1), (5, 672, 160, 168, swish, 2), (5, 960, 160, 240, swish, 1)),
        (5, 960, 160, 240, swish, 1),
    ):
        y = _conv(g, x, channels, hidden, 1, act=act) if hidden != channels else x
        y = _conv(g, y, hidden, hidden, size, stride, hidden, act)
        y = _squeeze(g, y, hidden, squeeze, "HardSigmoid", "Relu") if squeeze else y
        y = _conv(g, y, hidden, outputs, 1)
        x = g.node("Add", x, y) if stride == 1 and channels == outputs else y
        channels = outputs
    return _image(g, _head(g, _conv(g, x, 160, 960, 1, act=swish), 960), 224, [1, 1000])


def resnext50() -> onnx.ModelProto:
    """ResNeXt-50 32x4d (Xie et al. 2017): grouped convolutions."""
    g = GraphBuilder(0)
    x = g.node(
        "MaxPool", _conv(g, "input", 3, 64, 7, 2, act="Relu"), kernel_shape=[3] * 2, strides=[2] * 2, pads=[1] * 4
    )
    channels = 64
    for hidden, repeats, first in ((128, 3, 1), (256, 4, 2), (512, 6, 2), (1024, 3, 2)):
        for index in range(repeats):
            stride = first if index == 0 else 1
            y = _conv(g, x, channels, hidden, 1, act="Relu")
            y = _conv(g, y, hidden, hidden, 3, stride, 32, "Relu")
            y = _conv(g, y, hidden, 2 * hidden, 1)
            x = x if index else _conv(g, x, channels, 2 * hidden, 1, stride)
            x, channels = g.node("Relu", g.node("Add", x, y)), 2 * hidden
    return _image(g, _head(g, x, channels), 224, [1, 1000])


def resnet50_v2() -> onnx.ModelProto:
    """ResNet-50 v2 (He et al. 2016): normalizations and activations stand in front of convolutions."""
    g = GraphBuilder(0)

    def conv(x: str, channels: int, outputs: int, size: int, stride: int = 1) -> str:
        weights = g.weight(he(g.rng, (outputs, channels, size, size), channels * size * size))
        return g.node("Conv", x, weights, strides=[stride] * 2, pads=[size // 2] * 4, kernel_shape=[size] * 2)

    def activated(x: str, channels: int) -> str:
        parts = (g.weight(np.full(channels, value, np.float32)) for value in (1.0, 0.0, 0.0, 1.0))
        return g.node("Relu", g.node("BatchNormalization", x, *parts))

    x = g.node("MaxPool", conv("input", 3, 64, 7, 2), kernel_shape=[3] * 2, strides=[2] * 2, pads=[1] * 4)
    channels = 64
    for hidden, repeats, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(repeats):
            stride = first if index == 0 else 1
            active = activated(x, channels)
            y = conv(activated(conv(active, channels, hidden, 1), hidden), hidden, hidden, 3, stride)
            y = conv(activated(y, hidden), hidden, 4 * hidden, 1)
            x = x if index else conv(active, channels, 4 * hidden, 1, stride)
            x, channels = g.node("Add", x, y), 4 * hidden
    model = _image(g, _head(g, activated(x, channels), channels), 224, [1, 1000])
    calibrate_batch_norm(model, np.random.default_rng(1))
    return model


def convnext_tiny() -> onnx.ModelProto:
    """ConvNeXt-T (Liu et al. 2022): 7x7 depthwise convolutions, products of channels in the last axis."""
    g = GraphBuilder(0)

    def norm(x: str, width: int) -> str:
        last = g.node("Transpose", x, perm=[0, 2, 3, 1])
        return g.node("Transpose", layer_norm(g, last, width), perm=[0, 3, 1, 2])

    def patches(x: str, channels: int, outputs: int, size: int) -> str:
        weights = g.weight(he(g.rng, (outputs, channels, size, size), channels * size * size))
        return g.node("Conv", x, weights, g.weight(np.zeros(outputs, np.float32)), strides=[size] * 2)

    x, channels = norm(patches("input", 3, 96, 4), 96), 96
    for width, blocks in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != channels:
            x, channels = patches(norm(x, channels), channels, width, 2), width
        for _ in range(blocks):
            y = g.node("Transpose", _conv(g, x, width, width, 7, group=width), perm=[0, 2, 3, 1])
            y = activation(g, linear(g, layer_norm(g, y, width), width, 4 * width), "Gelu")
            y = g.node("Mul", linear(g, y, 4 * width, width), g.weight(np.full(width, 0.1, np.float32)))
            x = g.node("Add", x, g.node("Transpose", y, perm=[0, 3, 1, 2]))
    pooled = layer_norm(g, g.node("Flatten", g.node("GlobalAveragePool", x)), 768)
    return _image(g, linear(g, pooled, 768, 1000), 224, [1, 1000])


def unet() -> onnx.ModelProto:
    """U-Net (Ronneberger et al. 2015) of half width on an image of 256x256, with transposed convolutions."""
    g = GraphBuilder(0)
    x, channels, skips = "input", 3, list[tuple[str, int]]()
    for width in (32, 64, 128, 256, 512):
        if skips:
            x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = _conv(g, _conv(g, x, channels, width, 3, act="Relu"), width, width, 3, act="Relu")
        channels = width
        skips.append((x, width))
    for skip, width in reversed(skips[:-1]):
        weights = g.weight(he(g.rng, (channels, width, 2, 2), channels))
        x = g.node("ConvTranspose", x, weights, g.weight(np.zeros(width, np.float32)), strides=[2, 2])
        x = g.node("Concat", skip, x, axis=1)
        x = _conv(g, _conv(g, x, 2 * width, width, 3, act="Relu"), width, width, 3, act="Relu")
        channels = width
    return _image(g, _conv(g, x, channels, 2, 1), 256, [1, 2, 256, 256])


def detector() -> onnx.ModelProto:
    """A detector like YOLOv5s (Jocher 2020) on an image of 320x320: cross-stage blocks, SiLU, resize, concatenation."""
    g = GraphBuilder(0)

    def conv(x: str, channels: int, outputs: int, size: int, stride: int = 1) -> str:
        return _conv(g, x, channels, outputs, size, stride, act="Silu")

    def cross(x: str, channels: int, outputs: int, count: int, add: bool = True) -> str:
        half = outputs // 2
        left, right = conv(x, channels, half, 1), conv(x, channels, half, 1)
        for _ in range(count):
            y = conv(conv(left, half, half, 1), half, half, 3)
            left = g.node("Add", left, y) if add else y
        return conv(g.node("Concat", left, right, axis=1), outputs, outputs, 1)

    x = conv(conv("input", 3, 32, 5, 2), 32, 64, 3, 2)
    x = conv(cross(x, 64, 64, 1), 64, 128, 3, 2)
    first = cross(x, 128, 128, 2)
    second = cross(conv(first, 128, 256, 3, 2), 256, 256, 3)
    x = conv(cross(conv(second, 256, 512, 3, 2), 512, 512, 1), 512, 256, 1)
    pools = [x]
    for _ in range(3):
        pools.append(g.node("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4))
    top = conv(conv(g.node("Concat", *pools, axis=1), 1024, 512, 1), 512, 256, 1)
    middle = conv(cross(g.node("Concat", _larger(g, top), second, axis=1), 512, 256, 1, False), 256, 128, 1)
    small = cross(g.node("Concat", _larger(g, middle), first, axis=1), 256, 128, 1, False)
    medium = cross(g.node("Concat", conv(small, 128, 128, 3, 2), middle, axis=1), 256, 256, 1, False)
    large = cross(g.node("Concat", conv(medium, 256, 256, 3, 2), top, axis=1), 512, 512, 1, False)
    rows: list[str] = []
    for y, channels, size in ((small, 128, 40), (medium, 256, 20), (large, 512, 10)):
        y = g.node("Reshape", _conv(g, y, channels, 255, 1), g.weight(np.array([1, 3, 85, size * size], np.int64)))
        y = g.node("Sigmoid", g.node("Transpose", y, perm=[0, 1, 3, 2]))
        rows.append(g.node("Reshape", y, g.weight(np.array([1, -1, 85], np.int64))))
    return _image(g, g.node("Concat", *rows, axis=1), 320, [1, 6300, 85])


def _attention(g: GraphBuilder, x: str, length: int, width: int, heads: int, mask: str | None) -> str:
    """Self-attention with one product for query, key and value, as GPT-2 has it."""
    joined = g.node("Split", linear(g, x, width, 3 * width), axis=2, outputs=3)
    split = g.weight(np.array([1, length, heads, width // heads], np.int64))
    parts = [joined, f"{joined}:1", f"{joined}:2"]
    perms = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    q, k, v = (
        g.node("Transpose", g.node("Reshape", part, split), perm=perm) for part, perm in zip(parts, perms, strict=True)
    )
    scores = g.node("Mul", g.node("MatMul", q, k), g.weight(np.float32((width // heads) ** -0.5)))
    scores = scores if mask is None else g.node("Add", scores, mask)
    merged = g.node("Transpose", g.node("MatMul", g.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return linear(g, g.node("Reshape", merged, g.weight(np.array([1, length, width], np.int64))), width, width)


def _transformer(g: GraphBuilder, x: str, layers: int, length: int, width: int, heads: int, causal: bool) -> str:
    """Layers that normalize first."""
    mask = g.weight(np.triu(np.full((length, length), -1e4, np.float32), 1)[None, None]) if causal else None
    for _ in range(layers):
        x = g.node("Add", x, _attention(g, layer_norm(g, x, width), length, width, heads, mask))
        hidden = activation(g, linear(g, layer_norm(g, x, width), width, 4 * width), "Gelu")
        x = g.node("Add", x, linear(g, hidden, 4 * width, width))
    return layer_norm(g, x, width)


def vit_small() -> onnx.ModelProto:
    """ViT-S/16 (Dosovitskiy et al. 2021) without its class token: 196 patches."""
    g = GraphBuilder(0)
    weights = g.weight(he(g.rng, (384, 3, 16, 16), 768))
    x = g.node("Conv", "input", weights, g.weight(np.zeros(384, np.float32)), strides=[16, 16])
    x = g.node("Transpose", g.node("Reshape", x, g.weight(np.array([1, 384, 196], np.int64))), perm=[0, 2, 1])
    x = g.node("Add", x, g.weight(g.rng.standard_normal((1, 196, 384)).astype(np.float32)))
    x = _transformer(g, x, 12, 196, 384, 6, causal=False)
    mean = g.node("ReduceMean", x, axes=[1], keepdims=0)
    return _image(g, linear(g, mean, 384, 1000), 224, [1, 1000])


def gpt2(length: int = 64, layers: int = 12, width: int = 768) -> onnx.ModelProto:
    """GPT-2 small (Radford et al. 2019) on a prompt, without the product with the vocabulary."""
    g = GraphBuilder(0)
    x = g.node("Gather", g.weight(g.rng.standard_normal((8192, width)).astype(np.float32)), "ids", axis=0)
    x = g.node("Add", x, g.weight(g.rng.standard_normal((length, width)).astype(np.float32)))
    x = _transformer(g, x, layers, length, width, width // 64, causal=True)
    return g.model({"ids": (int(TensorProto.INT64), [1, length])}, {x: [1, length, width]})


def wavenet() -> onnx.ModelProto:
    """Dilated convolutions along one axis with gates, as WaveNet (van den Oord et al. 2016) has them; 4096 samples."""
    g = GraphBuilder(0)
    length, width = 4096, 64

    def conv(x: str, channels: int, outputs: int, size: int, dilation: int = 1) -> str:
        weights = g.weight(he(g.rng, (outputs, channels, size), channels * size))
        bias, padding = g.weight(np.zeros(outputs, np.float32)), [dilation * (size - 1), 0]
        return g.node("Conv", x, weights, bias, dilations=[dilation], pads=padding)

    x, skip = conv("input", 1, width, 2), ""
    for dilation in [2**n for n in range(9)] * 2:
        gate = g.node("Sigmoid", conv(x, width, width, 2, dilation))
        y = g.node("Mul", g.node("Tanh", conv(x, width, width, 2, dilation)), gate)
        x = g.node("Add", x, conv(y, width, width, 1))
        part = conv(y, width, 128, 1)
        skip = g.node("Add", skip, part) if skip else part
    y = conv(g.node("Relu", conv(g.node("Relu", skip), 128, 128, 1)), 128, 256, 1)
    return g.model({"input": (FLOAT, [1, 1, length])}, {y: [1, 256, length]})


def generator() -> onnx.ModelProto:
    """The generator of DCGAN (Radford et al. 2016): transposed convolutions of 4x4 with stride 2."""
    g = GraphBuilder(0)
    x, channels = "input", 100
    for index, width in enumerate((512, 256, 128, 64, 3)):
        weights = g.weight(he(g.rng, (channels, width, 4, 4), channels * (16 if index == 0 else 4)))
        stride, pad = (1, 0) if index == 0 else (2, 1)
        bias = g.weight(np.zeros(width, np.float32))
        x = g.node("ConvTranspose", x, weights, bias, strides=[stride] * 2, pads=[pad] * 4)
        x, channels = g.node("Tanh" if width == 3 else "Relu", x), width
    return g.model({"input": (FLOAT, [1, 100, 1, 1])}, {x: [1, 3, 64, 64]})


def style_transfer() -> onnx.ModelProto:
    """Fast style transfer (Johnson et al. 2016): instance normalization, residual blocks, resize; 224x224."""
    g = GraphBuilder(0)

    def block(x: str, channels: int, outputs: int, size: int, stride: int, act: str) -> str:
        x = _conv(g, x, channels, outputs, size, stride)
        ones, zeros = g.weight(np.ones(outputs, np.float32)), g.weight(np.zeros(outputs, np.float32))
        return activation(g, g.node("InstanceNormalization", x, ones, zeros), act)

    x = block(block(block("input", 3, 32, 9, 1, "Relu"), 32, 64, 3, 2, "Relu"), 64, 128, 3, 2, "Relu")
    for _ in range(5):
        x = g.node("Add", x, block(block(x, 128, 128, 3, 1, "Relu"), 128, 128, 3, 1, ""))
    for channels in (128, 64):
        x = _larger(g, x)
        x = block(x, channels, channels // 2, 3, 1, "Relu")
    return _image(g, _conv(g, x, 32, 3, 9), 224, [1, 3, 224, 224])


def video() -> onnx.ModelProto:
    """ResNet-18 with 3-D convolutions (Hara et al. 2018) on 8 frames of 112x112."""
    g = GraphBuilder(0)

    def conv(x: str, channels: int, outputs: int, size: Sequence[int], stride: Sequence[int], act: str = "") -> str:
        weights = g.weight(he(g.rng, (outputs, channels, *size), channels * int(np.prod(size))))
        bias, pads = g.weight(np.zeros(outputs, np.float32)), [length // 2 for length in size] * 2
        return activation(g, g.node("Conv", x, weights, bias, strides=list(stride), pads=pads), act)

    x, channels = conv("input", 3, 64, (3, 7, 7), (1, 2, 2), "Relu"), 64
    for width, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = conv(x, channels, width, (3, 3, 3), [stride] * 3, "Relu")
            y = conv(y, width, width, (3, 3, 3), [1] * 3)
            x = x if channels == width else conv(x, channels, width, (1, 1, 1), [stride] * 3)
            x, channels = g.node("Relu", g.node("Add", x, y)), width
    return g.model({"input": (FLOAT, [1, 3, 8, 112, 112])}, {_head(g, x, 512, 400): [1, 400]})


def recommender() -> onnx.ModelProto:
    """A recommender like DLRM (Naumov et al. 2019): lookups, pairwise products, dense layers; 128 examples."""
    g = GraphBuilder(0)
    batch, tables, width = 128, 26, 64

    def dense(x: str, *widths: int) -> str:
        for inputs, outputs in itertools.pairwise(widths):
            x = g.node("Relu", linear(g, x, inputs, outputs))
        return x

    found = [dense("dense", 13, 512, 256, width)]
    for table in range(tables):
        index = g.node("Gather", "ids", g.weight(np.array([table])), axis=1)
        rows = g.weight(g.rng.standard_normal((100, width)).astype(np.float32) / 8)
        found.append(g.node("Gather", rows, index, axis=0))
    one = g.weight(np.array([1], np.int64))
    stacked = g.node("Concat", g.node("Unsqueeze", found[0], one), *found[1:], axis=1)
    pairs = g.node("MatMul", stacked, g.node("Transpose", stacked, perm=[0, 2, 1]))
    x = g.node("Concat", found[0], g.node("Flatten", pairs), axis=1)
    x = g.node("Sigmoid", linear(g, dense(x, width + 27 * 27, 512, 256), 256, 1))
    inputs = {"dense": (FLOAT, [batch, 13]), "ids": (int(TensorProto.INT64), [batch, tables])}
    return g.model(inputs, {x: [batch, 1]})


ZOO: dict[str, Callable[[], onnx.ModelProto]] = {
    **{
        name: functools.partial(seeded_light_model, name)
        for name in ("squeezenet", "shufflenet", "inception_v1", "densenet121", "bvlc_alexnet")
    },
    "efficientnet_b0": efficientnet_b0,
    "mobilenet_v3": mobilenet_v3,
    "resnet50_v2": resnet50_v2,
    "resnext50": resnext50,
    "convnext_tiny": convnext_tiny,
    "unet": unet,
    "detector": detector,
    "style_transfer": style_transfer,
    "generator": generator,
    "video": video,
    "vit_small": vit_small,
    "gpt2": gpt2,
    "wavenet": wavenet,
    "gru": functools.partial(gru_network, layers=2, steps=64, width=256, hidden=256),
    "recommender": recommender,
}
"""Name → what builds the network; 32-bit floats, one example unless its description says otherwise."""

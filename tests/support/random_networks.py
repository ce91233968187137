"""
Random networks of the blocks that people use, as ONNX models, by seed.

Convolutions with strides, dilations and groups, squeeze-and-excitation, inverted residuals, dense and shuffled blocks,
tokens with attention; one channel and odd sizes as well. Values stay near one, so that rounding errors do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import onnx
from models import GraphBuilder, he, layer_norm, linear
from onnx import TensorProto

Item = TypeVar("Item")

CHANNELS = (1, 2, 3, 4, 8, 16, 24, 64, 128)
"""How many channels a block may give."""

MAX_ELEMENTS = 20_000
"""Elements of the largest image of a network."""


@dataclass(frozen=True)
class Image:
    """A value of shape [batch, channels, sizes…]."""

    name: str
    channels: int
    sizes: tuple[int, ...]


@dataclass
class Network:
    """A network under construction."""

    seed: int
    g: GraphBuilder = field(init=False)
    batch: int = field(init=False)
    rank: int = field(init=False)

    def __post_init__(self) -> None:
        self.g = GraphBuilder(self.seed)
        self.batch = self.number(1, 3)
        self.rank = int(self.rng.choice([1, 2, 2, 2, 2, 3]))

    @property
    def rng(self) -> np.random.Generator:
        """Where all choices come from."""
        return self.g.rng

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float = 0.5) -> bool:
        """True as often as the probability says."""
        return bool(self.rng.random() < probability)

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of some items."""
        return items[int(self.rng.integers(len(items)))]

    def vector(self, size: int, low: float, high: float) -> str:
        """A constant with an element a channel."""
        return self.g.weight(self.rng.uniform(low, high, size).astype(np.float32))

    def scalar(self, number: float) -> str:
        """A constant without axes."""
        return self.g.weight(np.float32(number))

    def known(self, *numbers: int) -> str:
        """A list of whole numbers."""
        return self.g.weight(np.array(numbers, np.int64))

    def by_channel(self, low: float, high: float, channels: int) -> str:
        """A constant that broadcasts over images with one element a channel."""
        shape = (channels, *[1] * self.rank)
        return self.g.weight(self.rng.uniform(low, high, shape).astype(np.float32))

    def like(self, x: Image, name: str) -> Image:
        """Another value of the same shape."""
        return Image(name, x.channels, x.sizes)


# ---- parts of blocks -------------------------------------------------------------------------------------------


def conv(
    n: Network,
    x: Image,
    outputs: int,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    group: int = 1,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
) -> Image:
    """A convolution; by default with the padding that keeps sizes where the stride is one."""
    strides, dilations = strides or [1] * n.rank, dilations or [1] * n.rank
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if pads is None:
        pads = [*((extent - 1) // 2 for extent in extents), *(extent // 2 for extent in extents)]
    inner = x.channels // group
    weights = [n.g.weight(he(n.rng, (outputs, inner, *kernel), inner * math.prod(kernel)))]
    if n.chance():
        weights.append(n.vector(outputs, -0.1, 0.1))
    name = n.g.node(
        *("Conv", x.name, *weights),
        kernel_shape=list(kernel),
        strides=list(strides),
        dilations=list(dilations),
        group=group,
        pads=list(pads),
    )
    padded = [size + pads[axis] + pads[axis + n.rank] for axis, size in enumerate(x.sizes)]
    sizes = tuple((size - e) // s + 1 for size, e, s in zip(padded, extents, strides, strict=True))
    return Image(name, outputs, sizes)


def pointwise(n: Network, x: Image, outputs: int, stride: int = 1) -> Image:
    """A convolution whose kernel has one element."""
    return conv(n, x, outputs, [1] * n.rank, [stride] * n.rank)


def normalized(n: Network, x: Image) -> Image:
    """A batch normalization."""
    parts = [n.vector(x.channels, low, high) for low, high in ((0.5, 1.5), (-0.1, 0.1), (-0.1, 0.1), (0.5, 1.5))]
    return n.like(x, n.g.node("BatchNormalization", x.name, *parts))


def _gelu(n: Network, x: str) -> str:
    erf = n.g.node("Erf", n.g.node("Div", x, n.scalar(math.sqrt(2.0))))
    return n.g.node("Mul", n.g.node("Mul", x, n.g.node("Add", erf, n.scalar(1.0))), n.scalar(0.5))


ACTIVATIONS: Sequence[Callable[[Network, str], str]] = (
    lambda n, x: n.g.node("Relu", x),
    lambda n, x: n.g.node("Clip", x, n.scalar(0.0), n.scalar(6.0)),
    lambda n, x: n.g.node("LeakyRelu", x, alpha=0.1),
    lambda n, x: n.g.node("Elu", x),
    lambda n, x: n.g.node("HardSwish", x),
    lambda n, x: n.g.node("Mul", x, n.g.node("Sigmoid", x)),
    lambda n, x: n.g.node("Mul", n.g.node("Sigmoid", x), x),
    lambda n, x: n.g.node("Tanh", x),
    lambda n, x: n.g.node("Softplus", x),
    lambda n, x: n.g.node("Mul", x, n.g.node("Tanh", n.g.node("Softplus", x))),
    _gelu,
)
"""Activations, one of them spelled out in several ways."""


def activated(n: Network, x: Image) -> Image:
    """An activation, or a slope a channel."""
    if n.chance(0.1):
        return n.like(x, n.g.node("PRelu", x.name, n.by_channel(0.05, 0.3, x.channels)))
    return n.like(x, n.one_of(ACTIVATIONS)(n, x.name))


def finished(n: Network, x: Image) -> Image:
    """What follows a convolution: maybe a normalization, maybe an activation."""
    if n.chance():
        x = normalized(n, x)
    return activated(n, x) if n.chance(0.7) else x


def divisor(n: Network, *numbers: int) -> int:
    """A number that divides all of some."""
    return n.one_of([d for d in range(1, min(numbers) + 1) if all(number % d == 0 for number in numbers)])


# ---- blocks ----------------------------------------------------------------------------------------------------


def block_conv(n: Network, x: Image) -> Image:
    """A convolution of any form that the image has room for."""
    kernel = [n.number(1, min(5, size + 2)) for size in x.sizes]
    dilations = [n.number(1, 2) if (k - 1) * 2 + 1 <= size else 1 for k, size in zip(kernel, x.sizes, strict=True)]
    strides = [n.number(1, 3) for _ in x.sizes] if n.chance() else [n.number(1, 2)] * n.rank
    outputs = n.one_of(CHANNELS)
    group = divisor(n, x.channels, outputs) if n.chance(0.4) else 1
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    most = [extent // 2 + 1 for extent in extents]
    pads = [n.number(0, p) for p in most * 2] if n.chance(0.3) else None
    if pads is not None:
        for axis, size in enumerate(x.sizes):
            pads[axis] += max(0, extents[axis] - size - pads[axis] - pads[axis + n.rank])
    return finished(n, conv(n, x, outputs, kernel, strides, group, dilations, pads))


def block_pointwise(n: Network, x: Image) -> Image:
    """A normalization or activation in front of a convolution of one element, with any stride."""
    x = normalized(n, x) if n.chance() else x
    x = activated(n, x) if n.chance() else x
    return finished(n, pointwise(n, x, n.one_of(CHANNELS), n.number(1, 3)))


def block_excitation(n: Network, x: Image) -> Image:
    """Squeeze-and-excitation (Hu et al. 2018), then maybe a strided projection."""
    pooled = n.g.node("GlobalAveragePool", x.name)
    if n.chance(0.3):
        pooled = n.g.node("ReduceMean", x.name, n.known(*range(2, 2 + n.rank)), keepdims=1)
    squeezed = activated(n, pointwise(n, Image(pooled, x.channels, (1,) * n.rank), n.number(1, 8)))
    gate = pointwise(n, squeezed, x.channels).name
    gate = n.g.node(n.one_of(["Sigmoid", "HardSigmoid"]), gate)
    operands = [x.name, gate] if n.chance() else [gate, x.name]
    x = n.like(x, n.g.node("Mul", *operands))
    return pointwise(n, x, n.one_of(CHANNELS), n.number(1, 2)) if n.chance() else x


def block_inverted(n: Network, x: Image) -> Image:
    """An inverted residual (Sandler et al. 2018): expansion, depthwise convolution, projection, maybe a sum."""
    stride, size = n.number(1, 2), n.one_of([3, 3, 5])
    wide = finished(n, pointwise(n, x, x.channels * n.number(1, 4)))
    deep = finished(n, conv(n, wide, wide.channels, [size] * n.rank, [stride] * n.rank, group=wide.channels))
    deep = block_excitation(n, deep) if n.chance(0.3) else deep
    result = pointwise(n, deep, x.channels)
    result = normalized(n, result) if n.chance() else result
    return n.like(x, n.g.node("Add", x.name, result.name)) if result.sizes == x.sizes else result


def block_residual(n: Network, x: Image) -> Image:
    """A residual block (He et al. 2016), with a projection where it strides; activated before or behind."""
    stride, outputs = n.number(1, 2), n.one_of(CHANNELS)
    y = finished(n, conv(n, x, outputs, [3] * n.rank, [stride] * n.rank))
    y = conv(n, y, outputs, [3] * n.rank)
    other = x if stride == 1 and outputs == x.channels else pointwise(n, x, outputs, stride)
    total = n.like(y, n.g.node("Add", *([y.name, other.name] if n.chance() else [other.name, y.name])))
    return activated(n, total) if n.chance() else total


def block_dense(n: Network, x: Image) -> Image:
    """Branches beside each other, maybe the input among them (Huang et al. 2017; Szegedy et al. 2015)."""
    stride = n.number(1, 2) if n.chance(0.3) else 1
    branches = [x] if stride == 1 and n.chance() else []
    for _ in range(n.number(1, 3)):
        size = n.one_of([1, 1, 3, 5])
        branches.append(finished(n, conv(n, x, n.number(1, 16), [size] * n.rank, [stride] * n.rank)))
    joined = n.g.node("Concat", *(branch.name for branch in branches), axis=1)
    y = Image(joined, sum(branch.channels for branch in branches), branches[0].sizes)
    return pointwise(n, finished(n, y), n.one_of(CHANNELS)) if n.chance() else y


def block_shuffled(n: Network, x: Image) -> Image:
    """Channels that are dealt out anew to groups (Zhang et al. 2018), or split and computed apart."""
    if x.channels % 2:
        return block_conv(n, x)
    group = divisor(n, x.channels)
    inner = x.channels // group
    shape = n.g.node("Reshape", x.name, n.known(n.batch, group, inner, *x.sizes))
    dealt = n.g.node("Transpose", shape, perm=[0, 2, 1, *range(3, 3 + n.rank)])
    y = n.like(x, n.g.node("Reshape", dealt, n.known(n.batch, x.channels, *x.sizes)))
    if n.chance():
        return y
    half = x.channels // 2
    first = n.g.node("Split", y.name, n.known(half, half), outputs=2, axis=1)
    other = conv(n, Image(f"{first}:1", half, x.sizes), half, [3] * n.rank, group=half)
    return n.like(x, n.g.node("Concat", first, finished(n, other).name, axis=1))


def block_pooled(n: Network, x: Image) -> Image:
    """A pool, with rounding up and padding now and then."""
    kernel = [min(n.number(1, 3), size) for size in x.sizes]
    strides = [n.number(1, 2) for _ in x.sizes]
    pads = [n.number(0, k // 2) for k in kernel] * 2 if n.chance() else [0] * 2 * n.rank
    kind = n.one_of(["MaxPool", "AveragePool"])
    include = {"count_include_pad": int(n.chance())} if kind == "AveragePool" else {}
    name = n.g.node(kind, x.name, kernel_shape=kernel, strides=strides, pads=pads, **include)
    spans = [size + 2 * pads[axis] - kernel[axis] for axis, size in enumerate(x.sizes)]
    return Image(name, x.channels, tuple(span // stride + 1 for span, stride in zip(spans, strides, strict=True)))


def block_resized(n: Network, x: Image) -> Image:
    """An image twice as large: resampled, or by a transposed convolution."""
    if math.prod(x.sizes) > 400:
        return block_pooled(n, x)
    sizes = tuple(2 * size for size in x.sizes)
    if n.chance() or n.rank != 2:
        scales = n.g.weight(np.array([1, 1, *[2] * n.rank], np.float32))
        mode = "linear" if n.chance() else "nearest"
        return Image(n.g.node("Resize", x.name, "", scales, mode=mode), x.channels, sizes)
    outputs = n.one_of(CHANNELS[:-2])
    filters = n.g.weight(he(n.rng, (x.channels, outputs, 2, 2), x.channels))
    return Image(n.g.node("ConvTranspose", x.name, filters, strides=[2, 2]), outputs, sizes)


def block_cut(n: Network, x: Image) -> Image:
    """A border of any kind, or a part of the image, maybe backwards."""
    if n.chance():
        mode = n.one_of(["constant", "edge", "reflect"])
        widths = [n.number(0, min(2, size - 1)) for size in x.sizes] * 2
        pads = n.known(0, 0, *widths[: n.rank], 0, 0, *widths[n.rank :])
        sizes = tuple(size + 2 * width for size, width in zip(x.sizes, widths, strict=False))
        return Image(n.g.node("Pad", x.name, pads, mode=mode), x.channels, sizes)
    axis = n.number(2, 1 + n.rank)
    size = x.sizes[axis - 2]
    step = n.one_of([1, 2, -1, -2])
    start, end = (n.number(0, size // 2), size) if step > 0 else (n.number(-size - 2, size + 2), -(10**9))
    taken = range(*slice(start if step > 0 else None, end if step > 0 else None, step).indices(size))
    if step < 0:
        first = min(max(start + size if start < 0 else start, 0), size - 1)
        taken = range(first, -1, step)
    parts = [n.known(number) for number in (start, end, axis, step)]
    sizes = tuple(len(taken) if a == axis - 2 else s for a, s in enumerate(x.sizes))
    return Image(n.g.node("Slice", x.name, *parts), x.channels, sizes)


def block_arithmetic(n: Network, x: Image) -> Image:
    """Constants and the image itself, in a chain of elementwise operators."""
    y = x.name
    for _ in range(n.number(1, 4)):
        kind = n.one_of(["Add", "Mul", "Sub", "Max", "Min", "Abs", "Sin", "Cos", "Sqrt"])
        if kind in ("Abs", "Sin", "Cos"):
            y = n.g.node(kind, y)
        elif kind == "Sqrt":
            y = n.g.node("Sqrt", n.g.node("Add", n.g.node("Mul", y, y), n.scalar(1.0)))
        else:
            other = n.one_of([x.name, n.by_channel(0.5, 1.5, x.channels), n.scalar(0.7)])
            y = n.g.node(kind, *([y, other] if n.chance() else [other, y]))
    return n.like(x, n.g.node("Tanh", y) if n.chance(0.3) else y)


def block_instance(n: Network, x: Image) -> Image:
    """Statistics of each image."""
    factors = n.vector(x.channels, 0.5, 1.5), n.vector(x.channels, -0.1, 0.1)
    if math.prod(x.sizes) < 4:  # Their difference from the mean would be mostly rounding.
        return normalized(n, x)
    return n.like(x, n.g.node("InstanceNormalization", x.name, *factors, epsilon=1e-2))


def block_tokens(n: Network, x: Image) -> Image:
    """Pixels as tokens: attention and a dense layer around residual sums (Dosovitskiy et al. 2021)."""
    count, width = math.prod(x.sizes), x.channels
    if width < 4 or count > 200:
        return block_pointwise(n, x)
    heads = n.one_of([h for h in (1, 2, 4) if width % h == 0])
    flat = n.g.node("Reshape", x.name, n.known(n.batch, width, count))
    rows = n.g.node("Transpose", flat, perm=[0, 2, 1])
    y = layer_norm(n.g, rows, width)
    split = n.known(n.batch, count, heads, width // heads)
    q, k, v = (
        n.g.node("Transpose", n.g.node("Reshape", linear(n.g, y, width, width), split), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = n.g.node("Mul", n.g.node("MatMul", q, k), n.scalar((width // heads) ** -0.5))
    met = n.g.node("Transpose", n.g.node("MatMul", n.g.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    rows = n.g.node("Add", rows, n.g.node("Reshape", met, n.known(n.batch, count, width)))
    hidden = n.one_of(ACTIVATIONS)(n, linear(n.g, layer_norm(n.g, rows, width), width, 2 * width))
    rows = n.g.node("Add", rows, linear(n.g, hidden, 2 * width, width))
    back = n.g.node("Transpose", rows, perm=[0, 2, 1])
    return n.like(x, n.g.node("Reshape", back, n.known(n.batch, width, *x.sizes)))


BLOCKS: Sequence[Callable[[Network, Image], Image]] = (
    *(block_conv, block_pointwise, block_excitation, block_inverted, block_residual, block_dense, block_shuffled),
    *(block_pooled, block_resized, block_cut, block_arithmetic, block_instance, block_tokens),
)
"""What networks are made of."""


def head(n: Network, x: Image) -> tuple[str, list[int]]:
    """What classifies an image: its name and shape; or the image itself."""
    if n.chance():
        return x.name, [n.batch, x.channels, *x.sizes]
    classes = n.number(1, 20)
    pooled = n.g.node("Flatten", n.g.node("GlobalAveragePool", x.name))
    weights = n.g.weight(he(n.rng, (classes, x.channels), x.channels))
    logits = n.g.node("Gemm", pooled, weights, n.vector(classes, -0.1, 0.1), transB=1)
    return n.g.node("Softmax", logits, axis=-1) if n.chance() else logits, [n.batch, classes]


def network(seed: int) -> onnx.ModelProto:
    """The network of a seed; its input is `x`."""
    n = Network(seed)
    most = {1: 200, 2: 33, 3: 9}[n.rank]
    x = Image("x", n.one_of(CHANNELS), tuple(n.number(1, most) for _ in range(n.rank)))
    inputs = {"x": (int(TensorProto.FLOAT), [n.batch, x.channels, *x.sizes])}
    for _ in range(n.number(1, 5)):
        if x.channels * math.prod(x.sizes) > MAX_ELEMENTS:
            x = pointwise(n, x, n.number(1, 4), 3)
        x = n.one_of(BLOCKS)(n, x)
    name, shape = head(n, x)
    return n.g.model(inputs, {name: shape}, opset=18)

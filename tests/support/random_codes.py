"""
Random quantized networks, as ONNX models, by seed: codes between floats, operators on codes, codes by the call.

Scales are powers of two now and then, with inputs in the middle between two codes, where the rule of rounding shows.
Some such networks have only operators whose results are exact: then no code may differ. Operators on codes take scale
and zero point from the call now and then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from drawn_models import MICROSOFT, Case, Drawn, Value
from onnx import numpy_helper

Block = Callable[["Codes", Value], Value]

CODE_KINDS = ("uint8", "uint8", "int8", "int8", "uint16", "int16")
MAX_ELEMENTS = 3000
MAX_ROWS = 6


@dataclass(frozen=True)
class Scale:
    """Scale and zero point of codes, as initializers."""

    scale: str
    zero: str
    kind: str


@dataclass
class Codes:
    """A quantized network under construction; its values are floats."""

    g: Drawn
    rows: int | str
    even: bool
    """Whether scales are powers of two."""
    told: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """The scales and zero points that the call gives."""

    def factor(self, span: float) -> float:
        """A scale for numbers up to `span`, in about 100 steps."""
        found = float(np.float32(span / 100 * self.g.rng.uniform(0.5, 2.0)))
        return 2.0 ** round(math.log2(found)) if self.even else found

    def scale(self, span: float = 3.0, kind: str = "") -> Scale:
        """Scale and zero point of a tensor; zero points are anywhere, or in the middle."""
        kind = kind or self.g.one_of(CODE_KINDS)
        limits = np.iinfo(np.dtype(kind))
        middle = int(limits.max + limits.min + 1) // 2
        zero = middle + self.g.number(-40, 40) if self.g.chance(0.7) else middle
        return Scale(self.g.weight(self.factor(span)), self.g.weight(zero, kind), kind)

    def result_scale(self, kind: str) -> Scale:
        """Scale and zero point of what an operator on codes gives; each is given by the call now and then."""
        found = self.scale(kind=kind)
        return Scale(self.maybe_told(found.scale), self.maybe_told(found.zero), kind)

    def maybe_told(self, name: str) -> str:
        """An initializer, the last or the one before; an input in its place now and then."""
        if not self.g.chance(0.25):
            return name
        weight = next(weight for weight in reversed(self.g.weights) if weight.name == name)
        self.g.weights.remove(weight)
        self.told[name] = numpy_helper.to_array(weight)
        return name

    @property
    def parameters(self) -> list[Value]:
        """The inputs that are scales and zero points."""
        return [Value(name, (), str(array.dtype)) for name, array in self.told.items()]

    def quantized(self, x: str, scale: Scale) -> str:
        """Floats as codes."""
        return self.g.node("QuantizeLinear", x, scale.scale, scale.zero)

    def floats(self, x: str, scale: Scale) -> str:
        """Codes as floats."""
        return self.g.node("DequantizeLinear", x, scale.scale, scale.zero)

    def rounded(self, x: Value, span: float = 3.0) -> Value:
        """Floats that have been codes."""
        scale = self.scale(span)
        return Value(self.floats(self.quantized(x.name, scale), scale), x.shape)

    def weights(self, shape: Sequence[int], axis: int, kind: str = "") -> tuple[str, str, str]:
        """Codes of weights with their scales and zero points, one a tensor or one a channel."""
        kind = kind or self.g.one_of(["int8", "int8", "uint8"])
        limits = np.iinfo(np.dtype(kind))
        middle = (int(limits.max) + int(limits.min) + 1) // 2
        # Signed ones have 7 bits: onnxruntime's sums of two products of u8 and i8 end at 16 bits without VNNI.
        least, most = (-64, 64) if kind == "int8" else (limits.min, limits.max)
        codes = np.clip(np.rint(self.g.rng.normal(middle, 40, shape)), least, most)
        span = 200 / math.sqrt(math.prod(shape) / shape[axis])
        count = shape[axis] if self.g.chance() else 0
        factors = [self.factor(span / 60) for _ in range(count or 1)]
        zeros = [middle + (self.g.number(-3, 3) if kind == "uint8" else 0) for _ in range(1)] * (count or 1)
        return (
            self.g.weight(codes, kind),
            self.g.weight(factors if count else factors[0]),
            self.g.weight(zeros if count else zeros[0], kind),
        )

    def dense_weights(self, shape: Sequence[int], axis: int) -> str:
        """Weights as floats that are codes."""
        return self.g.node("DequantizeLinear", *self.weights(shape, axis), axis=axis)

    def kernel(self, x: Value, most: int = 3) -> tuple[dict[str, Any], tuple[int | str, ...]]:
        """A window of so many elements along an axis at most, its strides and pads, and the sizes of the result."""
        size = self.g.number(1, min(most, *(int(s) for s in x.shape[2:])))
        stride, pad = self.g.number(1, 2), self.g.number(0, size // 2)
        sizes = tuple((int(s) + 2 * pad - size) // stride + 1 for s in x.shape[2:])
        rank = len(sizes)
        return {"kernel_shape": [size] * rank, "strides": [stride] * rank, "pads": [pad] * 2 * rank}, sizes


ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Abs", "Neg", "Softplus")


def activation(c: Codes, x: Value) -> Value:
    """A function of one code, maybe spelled in two nodes."""
    form = c.g.number(0, 9)
    if form == 0:
        y = c.g.node("Mul", x.name, c.g.node("Sigmoid", x.name))
    elif form == 1:
        y = c.g.node("Clip", x.name, c.g.weight(-1.0), c.g.weight(2.0))
    elif form == 2:
        y = c.g.node("Softmax", x.name, axis=-1)
    elif form == 3:
        y = c.g.node("Gelu", x.name)
    else:
        y = c.g.node(c.g.one_of(ACTIVATIONS), x.name)
    return c.rounded(Value(y, x.shape), 1.0 if form == 2 else 3.0)


def conv(c: Codes, x: Value) -> Value:
    """A convolution of codes, with or without bias and activation."""
    if len(x.shape) < 3:
        return dense(c, x)
    x = c.rounded(x)
    window, sizes = c.kernel(x)
    inner = int(x.shape[1])
    depthwise = c.g.chance(0.3)
    outputs = inner if depthwise else c.g.number(1, 9)
    group = inner if depthwise else 1
    shape = [outputs, inner // group, *window["kernel_shape"]]
    operands = [x.name, c.dense_weights(shape, 0)]
    if c.g.chance():
        operands.append(c.g.normal(outputs, scale=0.3))
    y = c.g.node("Conv", *operands, group=group, **window)
    if c.g.chance(0.4):
        y = c.g.node("Relu", y)
    return c.rounded(Value(y, (x.shape[0], outputs, *sizes)))


def dense(c: Codes, x: Value) -> Value:
    """A product with a matrix of codes."""
    x = c.rounded(x) if c.g.chance(0.8) else x
    inner, outputs = int(x.shape[-1]), c.g.number(1, 12)
    if len(x.shape) == 2 and c.g.chance():
        turned = c.g.chance()
        matrix = c.dense_weights([outputs, inner] if turned else [inner, outputs], 0 if turned else 1)
        operands = [x.name, matrix, *([c.g.normal(outputs, scale=0.3)] if c.g.chance() else [])]
        y = c.g.node("Gemm", *operands, transB=int(turned))
    else:
        y = c.g.node("MatMul", x.name, c.dense_weights([inner, outputs], 1))
        y = c.g.node("Add", y, c.g.normal(outputs, scale=0.3)) if c.g.chance() else y
    return c.rounded(Value(y, (*x.shape[:-1], outputs)))


def binary(c: Codes, x: Value) -> Value:
    """Two tensors of codes, of scales of their own."""
    left, right = c.rounded(x), c.rounded(x, 2.0)
    kind = c.g.one_of(["Add", "Mul", "Sub", "Max", "Min"])
    return c.rounded(Value(c.g.node(kind, left.name, right.name), x.shape))


def joined(c: Codes, x: Value) -> Value:
    """Parts with scales of their own, beside each other."""
    parts = [c.rounded(x, c.g.rng.uniform(1, 4)) for _ in range(c.g.number(2, 3))]
    y = c.g.node("Concat", *(part.name for part in parts), axis=1)
    y = Value(y, (x.shape[0], int(x.shape[1]) * len(parts), *x.shape[2:]))
    return c.rounded(y) if c.g.chance() else y


def pooled(c: Codes, x: Value) -> Value:
    """A pool between codes."""
    if len(x.shape) < 3:
        return moved(c, x)
    x = c.rounded(x)
    kind = c.g.one_of(["MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean"])
    if kind == "GlobalAveragePool":
        return c.rounded(Value(c.g.node(kind, x.name), (*x.shape[:2], *[1] * len(x.shape[2:]))))
    if kind == "ReduceMean":
        return c.rounded(Value(c.g.node(kind, x.name, c.g.integers(-1), keepdims=0), x.shape[:-1]))
    window, sizes = c.kernel(x)
    return c.rounded(Value(c.g.node(kind, x.name, **window), (*x.shape[:2], *sizes)))


def padded(c: Codes, x: Value) -> Value:
    """A border around codes."""
    x = c.rounded(x)
    axis = len(x.shape) - 1
    mode = c.g.one_of(["constant", "edge", "reflect", "wrap"])
    most = max(0, int(x.shape[axis]) - 1) if mode in ("reflect", "wrap") else 2
    begin, end = (min(most, c.g.number(0, 2)) for _ in range(2))
    pads = [*[0] * axis, begin, *[0] * axis, end]
    operands = [x.name, c.g.integers(*pads)]
    if mode == "constant" and c.g.chance():
        operands.append(c.g.weight(c.g.one_of([0.0, 0.5, -1.0])))
    y = Value(c.g.node("Pad", *operands, mode=mode), (*x.shape[:axis], int(x.shape[axis]) + begin + end))
    return c.rounded(y) if c.g.chance() else y


def moved(c: Codes, x: Value) -> Value:
    """The same codes elsewhere; codes and not floats are moved now and then."""
    scale = c.scale()
    q, size = c.quantized(x.name, scale), int(x.shape[-1])
    form = c.g.number(0, 4)
    if form == 0 and len(x.shape) > 2:
        permutation = [0, *(int(axis) for axis in 1 + c.g.rng.permutation(len(x.shape) - 1))]
        y = Value(c.g.node("Transpose", q, perm=permutation), tuple(x.shape[axis] for axis in permutation))
    elif form == 1:
        step = c.g.one_of([1, 2, -1])
        bounds = (0, size) if step > 0 else (size - 1, -size - 1)
        taken = len(range(size)[::step])
        parts = [c.g.integers(number) for number in (*bounds, -1, step)]
        y = Value(c.g.node("Slice", q, *parts), (*x.shape[:-1], taken))
    elif form == 2:
        count = c.g.number(1, 4)
        places = c.g.integers(*(c.g.number(-size, size - 1) for _ in range(count)))
        y = Value(c.g.node("Gather", q, places, axis=-1), (*x.shape[:-1], count))
    elif form == 3:
        flat = math.prod(int(s) for s in x.shape[1:])
        y = Value(c.g.node("Flatten", q), (*x.shape[:1], flat))
    else:
        y = Value(c.g.node("Concat", q, q, axis=-1), (*x.shape[:-1], 2 * size))
    return Value(c.floats(y.name, scale), y.shape)


def resized(c: Codes, x: Value) -> Value:
    """Codes repeated, or between them."""
    if len(x.shape) != 4 or not isinstance(x.shape[0], int):
        return moved(c, x)
    x = c.rounded(x)
    mode = c.g.one_of(["nearest", "linear"])
    scales = c.g.weight([1, 1, 2, 2])
    places: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    y = c.g.node("Resize", x.name, "", scales, mode=mode, **places)
    return c.rounded(Value(y, (*x.shape[:2], *(2 * int(size) for size in x.shape[2:]))))


def normalized(c: Codes, x: Value) -> Value:
    """A normalization between codes."""
    x = c.rounded(x)
    size = int(x.shape[-1])
    y = c.g.node("LayerNormalization", x.name, c.g.normal(size), c.g.normal(size), axis=-1, epsilon=0.01)
    return c.rounded(Value(y, x.shape))


# ---- operators on codes ----------------------------------------------------------------------------------------


def qlinear_conv(c: Codes, x: Value) -> Value:
    """QLinearConv, with a bias now and then."""
    if len(x.shape) < 3:
        return qlinear_matmul(c, x)
    window, sizes = c.kernel(x)
    given = c.scale(kind=c.g.one_of(["uint8", "uint8", "int8"]))
    result = c.result_scale(given.kind)
    inner = int(x.shape[1])
    group = inner if c.g.chance(0.3) else 1
    outputs = inner if group > 1 else c.g.number(1, 9)
    weights = c.weights([outputs, inner // group, *window["kernel_shape"]], 0, "int8")
    operands = [c.quantized(x.name, given), given.scale, given.zero, *weights, result.scale, result.zero]
    if c.g.chance():
        operands.append(c.g.weight(np.rint(c.g.rng.normal(0, 300, outputs)), "int32"))
    y = c.g.node("QLinearConv", *operands, group=group, **window)
    return Value(c.floats(y, result), (x.shape[0], outputs, *sizes))


def qlinear_matmul(c: Codes, x: Value) -> Value:
    """QLinearMatMul, or onnxruntime's QGemm."""
    given = c.scale(kind=c.g.one_of(["uint8", "int8"]))
    result = c.result_scale(given.kind)
    inner, outputs = int(x.shape[-1]), c.g.number(1, 9)
    weights = c.weights([inner, outputs], 1, "int8")
    operands = [c.quantized(x.name, given), given.scale, given.zero, *weights]
    if len(x.shape) == 2 and c.g.chance():
        bias = c.g.weight(np.rint(c.g.rng.normal(0, 300, outputs)), "int32") if c.g.chance() else ""
        y = c.g.node("QGemm", *operands, bias, result.scale, result.zero, domain=MICROSOFT)
    else:
        y = c.g.node("QLinearMatMul", *operands, result.scale, result.zero)
    return Value(c.floats(y, result), (*x.shape[:-1], outputs))


def qlinear_function(c: Codes, x: Value) -> Value:
    """onnxruntime's operators of one or two tensors of codes."""
    kind = c.g.one_of(["uint8", "int8"])
    one, two, result = c.scale(kind=kind), c.scale(2.0, kind=kind), c.result_scale(kind)
    left = [c.quantized(x.name, one), one.scale, one.zero]
    right = [c.quantized(x.name, two), two.scale, two.zero]
    out = [result.scale, result.zero]
    form = c.g.number(0, 4)
    if form == 0:
        y = c.g.node(c.g.one_of(["QLinearAdd", "QLinearMul"]), *left, *right, *out, domain=MICROSOFT)
    elif form == 1:
        y = c.g.node(c.g.one_of(["QLinearSigmoid", "QLinearLeakyRelu"]), *left, *out, domain=MICROSOFT)
    elif form == 2:
        y = c.g.node("QLinearConcat", *out, *left, *right, axis=1, domain=MICROSOFT)
        return Value(c.floats(y, result), (x.shape[0], 2 * int(x.shape[1]), *x.shape[2:]))
    elif form == 3 and len(x.shape) == 4:
        window, sizes = c.kernel(x)
        y = c.g.node("QLinearAveragePool", *left, *out, domain=MICROSOFT, **window)
        return Value(c.floats(y, result), (*x.shape[:2], *sizes))
    elif len(x.shape) == 4:
        y = c.g.node("QLinearGlobalAveragePool", *left, *out, domain=MICROSOFT, channels_last=0)
        return Value(c.floats(y, result), (*x.shape[:2], 1, 1))
    else:
        y = c.g.node("QLinearAdd", *left, *right, *out, domain=MICROSOFT)
    return Value(c.floats(y, result), x.shape)


def exact_function(c: Codes, x: Value) -> Value:
    """
    An operator on codes that floats compute without an error, for scales that are powers of two.

    Halves are then halves, and become the same code everywhere.
    """
    kind = c.g.one_of(["uint8", "int8"])
    one, two = c.scale(kind=kind), c.scale(2.0, kind=kind)
    left = [c.quantized(x.name, one), one.scale, one.zero]
    right = [c.quantized(x.name, two), two.scale, two.zero]
    form, result, shape = c.g.number(0, 4), c.result_scale(kind), x.shape
    out = [result.scale, result.zero]
    if form == 0 and len(shape) > 2:
        window, sizes = c.kernel(x, most=2)
        y = c.g.node("QLinearAveragePool", *left, *out, domain=MICROSOFT, **window)
        shape = (*shape[:2], *sizes)
    elif form == 1:
        y = c.g.node("QLinearLeakyRelu", *left, *out, domain=MICROSOFT, alpha=0.5)
    elif form == 2:
        y = c.g.node("QLinearConcat", *out, *left, *right, axis=1, domain=MICROSOFT)
        shape = (x.shape[0], 2 * int(x.shape[1]), *x.shape[2:])
    else:
        y = c.g.node(c.g.one_of(["QLinearAdd", "QLinearMul"]), *left, *right, *out, domain=MICROSOFT)
    return Value(c.floats(y, result), shape)


# ---- codes by the call -----------------------------------------------------------------------------------------


def dynamic_matmul(c: Codes, x: Value) -> Value:
    """DynamicQuantizeLinear and MatMulInteger, or onnxruntime's operators that are both."""
    inner, outputs = int(x.shape[-1]), c.g.number(1, 9)
    codes, scale, zero = c.weights([inner, outputs], 1, c.g.one_of(["int8", "uint8"]))
    shape = (*x.shape[:-1], outputs)
    form = c.g.number(0, 2)
    if form == 0:
        bias = [c.g.normal(outputs)] if c.g.chance() else []
        return Value(c.g.node("DynamicQuantizeMatMul", x.name, codes, scale, zero, *bias, domain=MICROSOFT), shape)
    q, own, middle = c.g.several("DynamicQuantizeLinear", [x.name], 3)
    if form == 1:
        return Value(c.g.node("MatMulIntegerToFloat", q, codes, own, scale, middle, zero, domain=MICROSOFT), shape)
    sums = c.g.node("Cast", c.g.node("MatMulInteger", q, codes, middle, zero), to=1)
    return Value(c.g.node("Mul", sums, c.g.node("Mul", own, scale)), shape)


def dynamic_conv(c: Codes, x: Value) -> Value:
    """DynamicQuantizeLinear and ConvInteger."""
    if len(x.shape) < 3:
        return dynamic_matmul(c, x)
    window, sizes = c.kernel(x)
    outputs = c.g.number(1, 9)
    shape = [outputs, int(x.shape[1]), *window["kernel_shape"]]
    codes = c.g.weight(c.g.number(-90, 90) // 3 + np.rint(c.g.rng.normal(100, 30, shape)).clip(40, 200), "uint8")
    q, own, middle = c.g.several("DynamicQuantizeLinear", [x.name], 3)
    sums = c.g.node("ConvInteger", q, codes, middle, c.g.weight(c.g.number(90, 130), "uint8"), **window)
    y = c.g.node("Mul", c.g.node("Cast", sums, to=1), c.g.node("Mul", own, c.g.weight(c.factor(1.0))))
    return Value(y, (x.shape[0], outputs, *sizes))


def dynamic_quantized(c: Codes, x: Value) -> Value:
    """DynamicQuantizeLinear and back."""
    return Value(c.g.node("DequantizeLinear", *c.g.several("DynamicQuantizeLinear", [x.name], 3)), x.shape)


QDQ: Sequence[Block] = (
    *(activation, activation, conv, conv, dense, binary, joined, pooled, padded, moved, resized, normalized),
)
ON_QUANTIZED: Sequence[Block] = (qlinear_conv, qlinear_matmul, qlinear_function, qlinear_function)
BY_CALL: Sequence[Block] = (dynamic_matmul, dynamic_conv, dynamic_quantized)
EXACT: Sequence[Block] = (exact_function,)
SCHEMES: Sequence[Sequence[Block]] = (QDQ, QDQ, ON_QUANTIZED, BY_CALL, (*QDQ, *ON_QUANTIZED, *BY_CALL), EXACT)
"""What networks are made of; some of one kind alone."""


def quantized_case(seed: int) -> Case:
    """The network of a seed, a third with a number of rows that has bounds."""
    g = Drawn(np.random.default_rng([seed, 10]))
    bounded = g.chance(0.33)
    rows: int | str = "N" if bounded else g.number(1, 4)
    rank = g.one_of([2, 3, 4, 4])
    sizes = (g.number(1, 9), *(g.number(1, 8) for _ in range(rank - 2)))
    x = given = Value("x", (rows, *sizes))
    blocks = g.one_of(SCHEMES)
    c = Codes(g, rows, even=blocks is EXACT or g.chance(0.4))
    outputs = list[Value]()
    for _ in range(g.number(1, 4)):
        x = g.one_of(blocks)(c, x)
        if math.prod(int(size) for size in x.shape[1:]) > MAX_ELEMENTS:
            break
        if g.chance(0.15):
            outputs.append(x)
    if g.chance(0.3):
        scale = c.scale()
        outputs.append(Value(c.quantized(x.name, scale), x.shape, scale.kind))
    else:
        outputs.append(x)
    model = g.model([given, *c.parameters], list({value.name: value for value in outputs}.values()), opset=21)
    calls = [{"x": _numbers(g, (number, *sizes), c.even), **c.told} for number in _rows(g, rows)]
    return Case(model, calls, {"N": (1, MAX_ROWS)} if bounded else {}, codes=blocks is not EXACT)


def _rows(g: Drawn, rows: int | str) -> list[int]:
    return [rows] * g.number(1, 2) if isinstance(rows, int) else [g.number(1, MAX_ROWS) for _ in range(3)]


def _numbers(g: Drawn, shape: tuple[int, ...], even: bool) -> np.ndarray:
    numbers = g.rng.standard_normal(shape) * g.rng.uniform(0.3, 3.0)
    # In the middle between codes whose scale is a power of two, and on them.
    return (np.rint(numbers * 128) / 128 if even else numbers).astype(np.float32)

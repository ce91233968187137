"""Random models of floats and integers whose sizes have bounds, as ONNX models, by seed, for several calls each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from drawn_models import Case, Drawn, Size, Value

MOST = {"N": 8, "M": 6}
"""The largest size of each dimension; the smallest is one."""

UNARY = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Erf", "HardSwish", "Softplus", "Cos", "Floor")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


@dataclass
class Bounds:
    """A model under construction, and the values that blocks may read; those of floats stay near one."""

    g: Drawn
    values: list[Value] = field(default_factory=list[Value])

    def pick(self, *, rank: int = 1) -> Value:
        """One of the values, of that rank at least; the latest ones more often."""
        if not (found := [value for value in self.values if len(value.shape) >= rank]):
            x = self.pick()
            return self.add(self.g.node("Unsqueeze", x.name, self.g.integers(0)), [1, *x.shape])
        places = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.g.rng.choice(len(found), p=places / places.sum()))]

    def add(self, name: str, shape: Sequence[Size]) -> Value:
        """A new value that other blocks may read."""
        self.values.append(Value(name, tuple(shape)))
        return self.values[-1]

    def near_one(self, name: str, shape: Sequence[Size]) -> Value:
        """A new value, kept near one."""
        return self.add(self.g.node("Tanh", name), shape)

    def size_of(self, value: Value, axis: int) -> str:
        """The extent along an axis, as a list of one number."""
        return self.g.node("Shape", value.name, start=axis, end=axis + 1)


def known(value: Value) -> list[int]:
    """The axes of a value whose sizes are numbers."""
    return [axis for axis, size in enumerate(value.shape) if isinstance(size, int)]


def unary(b: Bounds) -> None:
    """A function of each element."""
    x = b.pick()
    b.add(b.g.node(b.g.one_of(UNARY), x.name), x.shape)


def binary(b: Bounds) -> None:
    """Two values of one shape, or a value and what broadcasts over it."""
    x = b.pick()
    same = [value for value in b.values if value.shape == x.shape]
    other = b.g.one_of(same).name
    if b.g.chance(0.4):
        last = x.shape[-1]
        other = b.g.normal(last) if isinstance(last, int) and b.g.chance() else b.g.weight(0.7)
    operands = [x.name, other] if b.g.chance() else [other, x.name]
    b.near_one(b.g.node(b.g.one_of(BINARY), *operands), x.shape)


def over_means(b: Bounds) -> None:
    """A value and its reduction along an axis, which broadcasts."""
    x = b.pick()
    axis = b.g.number(0, len(x.shape) - 1)
    kind = b.g.one_of(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
    y = b.g.node(kind, x.name, b.g.integers(axis), keepdims=1)
    b.near_one(b.g.node("Sub", x.name, y), x.shape)


def reduced(b: Bounds) -> None:
    """A reduction that drops axes."""
    x = b.pick(rank=2)
    axis = b.g.number(0, len(x.shape) - 1)
    kind = b.g.one_of(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL1"])
    y = b.g.node(kind, x.name, b.g.integers(axis), keepdims=0)
    b.near_one(y, [size for place, size in enumerate(x.shape) if place != axis])


def softmax(b: Bounds) -> None:
    """Softmax, LogSoftmax or a running total, along any axis."""
    x = b.pick()
    axis = b.g.number(0, len(x.shape) - 1)
    if b.g.chance(0.3):
        total = b.g.node(
            "CumSum", x.name, b.g.weight(axis, "int64"), exclusive=b.g.number(0, 1), reverse=b.g.number(0, 1)
        )
        b.near_one(total, x.shape)
    else:
        b.add(b.g.node(b.g.one_of(["Softmax", "LogSoftmax"]), x.name, axis=axis - len(x.shape)), x.shape)


def product(b: Bounds) -> None:
    """A product with a matrix, or of a value with itself turned."""
    x = b.pick(rank=2)
    *rest, rows, inner = x.shape
    if isinstance(inner, int) and b.g.chance():
        outputs = b.g.number(1, 7)
        y = b.g.node("MatMul", x.name, b.g.normal(inner, outputs, scale=inner**-0.5))
        b.near_one(y, [*rest, rows, outputs])
        return
    turned = b.g.node("Transpose", x.name, perm=[*range(len(rest)), len(rest) + 1, len(rest)])
    if b.g.chance():
        y, shape = b.g.node("MatMul", x.name, turned), [*rest, rows, rows]
    else:
        y, shape = b.g.node("MatMul", turned, x.name), [*rest, inner, inner]
    b.near_one(b.g.node("Mul", y, b.g.weight(0.3)), shape)


def joined(b: Bounds) -> None:
    """Values beside each other along an axis whose size is a number."""
    x = b.pick()
    if not known(x):
        return
    axis = b.g.one_of(known(x))
    same = [value for value in b.values if value.shape == x.shape]
    parts = [b.g.one_of(same).name for _ in range(b.g.number(2, 3))]
    shape = list(x.shape)
    shape[axis] = len(parts) * int(x.shape[axis])
    if int(shape[axis]) <= 40:
        b.add(b.g.node("Concat", *parts, axis=axis), shape)


def grown(b: Bounds) -> None:
    """Constant rows behind a value, and the part of the same size again."""
    x = b.pick()
    axis = b.g.number(0, len(x.shape) - 1)
    if known(x) != [place for place in range(len(x.shape)) if place != axis]:
        return
    shape = [2 if place == axis else int(size) for place, size in enumerate(x.shape)]
    y = b.g.node("Concat", x.name, b.g.normal(*shape), axis=axis)
    start = b.g.integers(b.g.one_of([0, 1, 2]))
    end = b.g.node("Add", b.size_of(x, axis), start)
    b.add(b.g.node("Slice", y, start, end, b.g.integers(axis)), x.shape)


def cut(b: Bounds) -> None:
    """A part along an axis whose size is a number, or one with bounds backwards."""
    x = b.pick()
    axis = b.g.number(0, len(x.shape) - 1)
    size = x.shape[axis]
    if isinstance(size, str):
        parts = [b.g.integers(number) for number in (-1, -(1 << 40), axis, -1)]
        b.add(b.g.node("Slice", x.name, *parts), x.shape)
        return
    start = b.g.number(0, size - 1)
    end = b.g.number(start + 1, size)
    shape = [end - start if place == axis else s for place, s in enumerate(x.shape)]
    b.add(b.g.node("Slice", x.name, *(b.g.integers(number) for number in (start, end, axis))), shape)


def turned(b: Bounds) -> None:
    """Another order of axes."""
    x = b.pick(rank=2)
    permutation = [int(axis) for axis in b.g.rng.permutation(len(x.shape))]
    b.add(b.g.node("Transpose", x.name, perm=permutation), [x.shape[axis] for axis in permutation])


def reshaped(b: Bounds) -> None:
    """An axis split or dropped, by numbers, 0 and -1, or by the sizes of another value."""
    x = b.pick()
    form = b.g.number(0, 2)
    last = x.shape[-1]
    if form == 0 and isinstance(last, int) and last % 2 == 0 and len(x.shape) < 4:
        wanted = [0] * (len(x.shape) - 1) + [2, -1]
        b.add(b.g.node("Reshape", x.name, b.g.integers(*wanted)), [*x.shape[:-1], 2, last // 2])
    elif form == 1 and len(x.shape) < 4:
        axis = b.g.number(0, len(x.shape))
        b.add(b.g.node("Unsqueeze", x.name, b.g.integers(axis)), [*x.shape[:axis], 1, *x.shape[axis:]])
    elif len(x.shape) > 1 and isinstance(x.shape[0], str):
        flat = b.g.node("Reshape", x.name, b.g.integers(-1))
        flat = b.g.node("Tanh", flat)
        b.add(b.g.node("Reshape", flat, b.g.node("Shape", x.name)), x.shape)


def gathered(b: Bounds) -> None:
    """Rows of a table by integers, or of a value by constants."""
    x = b.pick()
    if b.g.chance() and isinstance(x.shape[0], int):
        count = b.g.number(1, 4)
        places = b.g.integers(*(b.g.number(-x.shape[0], x.shape[0] - 1) for _ in range(count)))
        b.add(b.g.node("Gather", x.name, places, axis=0), [count, *x.shape[1:]])
        return
    width = b.g.number(1, 5)
    b.add(b.g.node("Gather", b.g.normal(10, width), "tokens"), ["N", width])


def expanded(b: Bounds) -> None:
    """A constant or the row of a value, repeated to the size of another."""
    x = b.pick()
    row = b.g.weight([0.5]) if not isinstance(x.shape[-1], int) else b.g.normal(x.shape[-1])
    b.add(b.g.node("Expand", row, b.g.node("Shape", x.name)), x.shape)


def padded(b: Bounds) -> None:
    """A border along an axis whose size is a number."""
    x = b.pick()
    if not known(x):
        return
    axis = b.g.one_of(known(x))
    size = int(x.shape[axis])
    mode = b.g.one_of(["constant", "edge", "reflect"])
    begin, end = (min(b.g.number(0, 2), size - 1 if mode == "reflect" else 2) for _ in range(2))
    rank = len(x.shape)
    pads = [begin if place == axis else end if place == axis + rank else 0 for place in range(2 * rank)]
    if size + begin + end <= 40:
        shape = [size + begin + end if place == axis else s for place, s in enumerate(x.shape)]
        b.add(b.g.node("Pad", x.name, b.g.integers(*pads), mode=mode), shape)


def padded_rows(b: Bounds) -> None:
    """A border along an axis with bounds, and the middle again."""
    x = b.pick()
    open_axes = [axis for axis, size in enumerate(x.shape) if isinstance(size, str)]
    if not open_axes:
        return
    axis, rank = b.g.one_of(open_axes), len(x.shape)
    begin, end = b.g.number(0, 2), b.g.number(0, 2)
    pads = [begin if place == axis else end if place == axis + rank else 0 for place in range(2 * rank)]
    y = b.g.node("Pad", x.name, b.g.integers(*pads), b.g.weight(0.25))
    ends = b.g.node("Add", b.size_of(x, axis), b.g.integers(begin))
    b.add(b.g.node("Slice", b.g.node("Neg", y), b.g.integers(begin), ends, b.g.integers(axis)), x.shape)


def masked(b: Bounds) -> None:
    """A triangle, or a mask that is made of the numbers of places."""
    x = b.pick(rank=2)
    if b.g.chance():
        b.add(b.g.node("Trilu", x.name, upper=b.g.number(0, 1)), x.shape)
        return
    size = b.g.node("Squeeze", b.size_of(x, len(x.shape) - 1))
    places = b.g.node("Range", b.g.weight(0, "int64"), size, b.g.weight(1, "int64"))
    mask = b.g.node("Less", places, b.g.weight(b.g.number(0, 4), "int64"))
    b.add(b.g.node("Where", mask, x.name, b.g.weight(-0.5)), x.shape)


def normalized(b: Bounds) -> None:
    """A layer normalization."""
    x = b.pick()
    size = x.shape[-1]
    if isinstance(size, int) and size > 2:
        y = b.g.node("LayerNormalization", x.name, b.g.normal(size), b.g.normal(size), epsilon=0.05)
        b.near_one(y, x.shape)


def coded(b: Bounds) -> None:
    """Codes of a value and back, maybe moved or a function of them in between."""
    x = b.pick()
    scale, zero = b.g.weight(2.0 ** -b.g.number(3, 6)), b.g.weight(b.g.number(-20, 20), "int8")
    # All values near a middle between two codes would hide what is compared: floats behind are not rounded any more.
    q = b.g.node("QuantizeLinear", "exact", scale, zero)
    y = b.g.node("DequantizeLinear", q, scale, zero)
    kind = b.g.one_of(["Sigmoid", "HardSwish", "Gelu", "Identity"])
    if x.shape == ("N", 4):
        y = b.g.node("Add", y, x.name)
    b.near_one(b.g.node(kind, y), ["N", 4])


def convolved(b: Bounds) -> None:
    """A convolution or pool whose batch has bounds."""
    x = b.pick(rank=3)
    if known(x) != list(range(1, len(x.shape))):
        return
    if b.g.chance():
        filters = b.g.number(1, 5)
        weights = b.g.normal(filters, int(x.shape[1]), *[1] * (len(x.shape) - 2), scale=0.5)
        b.near_one(b.g.node("Conv", x.name, weights), [x.shape[0], filters, *x.shape[2:]])
    else:
        rank = len(x.shape) - 2
        y = b.g.node(b.g.one_of(["MaxPool", "AveragePool"]), x.name, kernel_shape=[1] * rank, strides=[2] * rank)
        b.add(y, [*x.shape[:2], *((int(size) - 1) // 2 + 1 for size in x.shape[2:])])


def recurrent(b: Bounds) -> None:
    """A recurrent layer over steps or a batch that have bounds."""
    x = b.pick(rank=3)
    width = x.shape[-1]
    if len(x.shape) != 3 or not isinstance(width, int):
        return
    hidden = b.g.number(1, 4)
    kind, gates = b.g.one_of([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    operands = b.g.normal(1, gates * hidden, width, scale=0.5), b.g.normal(1, gates * hidden, hidden, scale=0.5)
    y = b.g.node(kind, x.name, *operands, hidden_size=hidden)
    b.add(b.g.node("Squeeze", y, b.g.integers(1)), [*x.shape[:2], hidden])


BLOCKS: Sequence[Callable[[Bounds], None]] = (
    *(unary, binary, over_means, reduced, softmax, product, joined, grown, cut, turned, reshaped, gathered, expanded),
    *(padded, padded_rows, masked, normalized, coded, convolved, recurrent),
)
"""What models are made of."""

SHAPES: Sequence[Sequence[Size]] = (
    *(["N"], ["N", 4], ["N", "M"], [3, "N"], ["N", 2, "M"], ["N", "M", 5], ["M", "N", 3], ["N", 3, 6, 5], ["N", 2, 7]),
)
"""Shapes of inputs."""


def bounded_case(seed: int) -> Case:
    """The model of a seed, with three calls of different sizes."""
    b = Bounds(Drawn(np.random.default_rng([seed, 11])))
    for number in range(b.g.number(1, 3)):
        b.add(f"x{number}", b.g.one_of(SHAPES))
    inputs = [*b.values, Value("tokens", ("N",), "int64"), Value("exact", ("N", 4))]
    for _ in range(b.g.number(2, 6)):
        b.g.one_of(BLOCKS)(b)
    made = b.values[len(inputs) - 2 :] or b.values[:1]
    results = [made[-1], *(value for value in made[:-1] if b.g.chance(0.3))]
    model = b.g.model(inputs, results)
    read = {name for node in model.graph.node for name in node.input}
    used = [value for value in inputs if value.name in read]
    del model.graph.input[:]
    model.graph.input.extend(value.info for value in used)
    names = {size for value in used for size in value.shape if isinstance(size, str)}
    calls = list[dict[str, np.ndarray]]()
    for _ in range(3):
        sizes = {name: b.g.number(1, MOST[name]) for name in sorted(names)}
        calls.append({value.name: _numbers(b.g, value, sizes) for value in used})
    return Case(model, calls, {name: (1, MOST[name]) for name in sorted(names)})


def _numbers(g: Drawn, value: Value, sizes: dict[str, int]) -> np.ndarray:
    shape = [size if isinstance(size, int) else sizes[size] for size in value.shape]
    if value.kind == "int64":
        return g.rng.integers(-10, 10, shape)
    numbers = g.rng.standard_normal(shape)
    return (np.rint(numbers * 256) / 256).astype(np.float32)

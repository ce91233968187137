"""
Random ONNX models with sizes that data decides, by seed: NonZero and its like, and what computes with counts.

Numbers are multiples of a quarter, and stay so, so that results have to be equal to the bit, and no rounding error
decides a size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from drawn_models import Case, Drawn, Size, Value

MAX_ROWS = 8
"""The largest size of the dimension that has bounds."""

BINARY = ("Add", "Sub", "Max", "Min")


@dataclass
class Counts:
    """A model under construction; a size that data decides has a name with a star, which is that of no dimension."""

    g: Drawn
    values: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])
    """What has a size that data decides, or follows from one."""
    counted: int = 0
    opset: int = 20
    checked: list[Value] = field(default_factory=list[Value])
    """What fails for some numbers: results of the model, since nothing has to fail that nobody asks for."""

    def pick(self, *, rank: int = 1, most: int = 4, kind: str = "float32") -> Value | None:
        """One of the values of such a rank and type, the latest ones more often; none where there is none."""
        found = [v for v in self.values if rank <= len(v.shape) <= most and v.kind == kind]
        if not found:
            return None
        places = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.g.rng.choice(len(found), p=places / places.sum()))]

    def size(self) -> str:
        """A new size that data decides."""
        self.counted += 1
        return f"*{self.counted}"

    def add(self, name: str, shape: Sequence[Size], kind: str = "float32") -> Value:
        """A new value that other blocks may read."""
        self.values.append(Value(name, tuple(shape), kind))
        self.results.append(self.values[-1])
        return self.values[-1]

    def condition(self, x: Value) -> str:
        """Which elements of a value lie above, below or at a number; none of them, now and then."""
        limit = self.g.one_of([0.0, 0.5, -0.5, 2.0, 50.0])
        return self.g.node(self.g.one_of(["Greater", "Less", "GreaterOrEqual", "Equal"]), x.name, self.g.weight(limit))

    def largest(self, x: Value, axes: Sequence[int]) -> str:
        """The largest elements along axes, which were an attribute before opset 18."""
        if self.opset < 18:
            return self.g.node("ReduceMax", x.name, axes=axes, keepdims=0)
        return self.g.node("ReduceMax", x.name, self.g.integers(*axes), keepdims=0)

    def size_of(self, x: Value, axis: int) -> str:
        """The extent along an axis, as a list of one number."""
        return self.g.node("Shape", x.name, start=axis, end=axis + 1)


# ---- what decides sizes ----------------------------------------------------------------------------------------


def non_zero(c: Counts) -> None:
    """The places where a condition holds, and maybe the elements there."""
    if (x := c.pick(most=3)) is None:
        return
    rank, size = len(x.shape), c.size()
    places = c.g.node("NonZero", c.condition(x))
    turned = c.g.node("Transpose", places, perm=[1, 0])
    if c.g.chance(0.3):
        c.add(places, [rank, size], "int64")
    if c.g.chance(0.8):
        c.add(c.g.node("GatherND", x.name, turned), [size])
    if c.g.chance(0.3):
        c.add(turned, [size, rank], "int64")


def compressed(c: Counts) -> None:
    """Rows, columns or elements that a condition keeps."""
    if (x := c.pick(most=3)) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    if c.g.chance(0.3):
        flat = c.g.node("Reshape", c.condition(x), c.g.integers(-1))
        c.add(c.g.node("Compress", x.name, flat), [c.size()])
        return
    others = [place for place in range(len(x.shape)) if place != axis]
    total = c.largest(x, others) if others else x.name
    if any(isinstance(x.shape[place], str) for place in others):
        return  # The largest of nothing is decided by no standard.
    limit = c.g.weight(c.g.one_of([0.0, 0.5, 1.0, 30.0]))
    keep = c.g.node(c.g.one_of(["Greater", "Less"]), total, limit)
    shape = [c.size() if place == axis else size for place, size in enumerate(x.shape)]
    c.add(c.g.node("Compress", x.name, keep, axis=axis), shape)


def unique(c: Counts) -> None:
    """Different elements, with their first places, inverses or counts."""
    if (x := c.pick(most=2)) is None:
        return
    size = c.size()
    names = c.g.several("Unique", [x.name], 4, sorted=c.g.number(0, 1))
    c.add(names[0], [size])
    if c.g.chance():
        c.add(names[c.g.one_of([1, 3])], [size], "int64")


def rows_of_table(c: Counts) -> None:
    """Places where a condition holds as rows of a table, as experts take their tokens."""
    if (x := c.pick(rank=2, most=2)) is None or not isinstance(x.shape[1], int) or not x.shape[1]:
        return
    column = c.g.node("Gather", c.condition(x), c.g.weight(0, "int64"), axis=1)
    places = c.g.node("Reshape", c.g.node("NonZero", column), c.g.integers(-1))
    c.add(c.g.node("Gather", x.name, places, axis=0), [c.size(), x.shape[1]])


# ---- what computes with them -----------------------------------------------------------------------------------


def unary(c: Counts) -> None:
    """A function of each element."""
    if x := c.pick():
        c.add(c.g.node(c.g.one_of(["Neg", "Abs", "Relu", "Floor"]), x.name), x.shape)


def binary(c: Counts) -> None:
    """Two values of one shape, or one and a number."""
    if x := c.pick():
        same = [value.name for value in c.values if value.shape == x.shape and value.kind == x.kind]
        other = c.g.one_of([*same, c.g.weight(0.5)])
        c.add(c.g.node(c.g.one_of(BINARY), x.name, other), x.shape)


def reduced(c: Counts) -> None:
    """A sum along an axis, which may have no elements."""
    if x := c.pick():
        axis, keep = c.g.number(0, len(x.shape) - 1), c.g.number(0, 1)
        y = c.g.node("ReduceSum", x.name, c.g.integers(axis), keepdims=keep)
        shape = [1 if place == axis else size for place, size in enumerate(x.shape) if keep or place != axis]
        c.add(c.g.node("Clip", y, c.g.weight(-64.0), c.g.weight(64.0)), shape)


def split(c: Counts) -> None:
    """Two parts: of a size that data decides and the rest, or of numbers."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    size = x.shape[axis]
    if not isinstance(size, int) or size < 2:
        return
    # What comes first may have no elements, where another size of it is 0.
    flat = c.g.node("Slice", x.name, c.g.integers(0), c.g.integers(1), c.g.integers(axis))
    count = c.g.node("ReduceSum", c.g.node("Cast", c.condition(Value(flat, ())), to=7), keepdims=0)
    limited = c.g.node("Min", count, c.g.weight(size, "int64"))
    first = c.g.node("Unsqueeze", limited, c.g.integers(0))
    sizes = c.g.node("Concat", first, c.g.node("Sub", c.g.integers(size), first), axis=0)
    add_parts(c, c.g.several("Split", [x.name, sizes], 2, axis=axis), x, axis)


def add_parts(c: Counts, names: Sequence[str], x: Value, axis: int, *, may_fail: bool = False) -> None:
    """Take in the parts of a value along an axis, of new sizes; where they may fail, they are checked."""
    for name in names:
        part = c.add(name, [c.size() if place == axis else s for place, s in enumerate(x.shape)])
        c.checked += [part] if may_fail else []


def shifted_split(c: Counts) -> None:
    """Two parts: some more or less elements than data says, and the rest; a call fails where one is negative."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    size = x.shape[axis]
    if not isinstance(size, int) or size < 2:
        return
    total = c.g.node("ReduceSum", c.g.node("Cast", c.condition(x), to=7), keepdims=0)
    places = c.g.node("NonZero", c.g.node("Less", c.g.weight(np.arange(size), "int64"), total))
    count, more = c.g.node("Shape", places, start=1, end=2), c.g.number(-2, 2)
    first = c.g.node("Add", count, c.g.integers(more))
    rest = c.g.node("Sub", c.g.integers(size - more), count)
    ends = [first, rest] if c.g.chance() else [rest, first]
    parts = c.g.several("Split", [x.name, c.g.node("Concat", *ends, axis=0)], 2, axis=axis)
    add_parts(c, parts, x, axis, may_fail=more != 0)


def equal_split(c: Counts) -> None:
    """Parts of no given sizes: before opset 18 they have to be equal, or else a call fails."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    size = x.shape[axis]
    # As many as one has to be told of: onnxruntime takes no more of `num_outputs` than there are elements.
    number = c.g.number(2, 3) if c.opset < 18 else 2
    told: dict[str, Any] = {} if c.opset < 18 else {"num_outputs": number}
    may_fail = c.opset < 18 and (not isinstance(size, int) or size % number != 0)
    add_parts(c, c.g.several("Split", [x.name], number, axis=axis, **told), x, axis, may_fail=may_fail)


def cut(c: Counts) -> None:
    """A part that begins or ends where data says, or as many as another value has."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    form = c.g.number(0, 3)
    zero, one, where = c.g.integers(0), c.g.integers(1), c.g.integers(axis)
    shape = [c.size() if place == axis else s for place, s in enumerate(x.shape)]
    other = c.pick() or x
    if form == 0:
        bounds = zero, c.size_of(other, c.g.number(0, len(other.shape) - 1))
    elif form == 1:
        bounds = c.g.integers(c.g.number(0, 2)), c.g.integers(1 << 40)
    elif form == 2:
        half = c.g.node("Div", c.size_of(x, axis), c.g.integers(2))
        bounds = (half, c.g.integers(1 << 40)) if c.g.chance() else (zero, half)
    else:
        bounds = zero, c.g.node("Max", c.g.node("Sub", c.size_of(x, axis), one), zero)
    c.add(c.g.node("Slice", x.name, *bounds, where), shape)


def joined(c: Counts) -> None:
    """Values beside each other whose other sizes are the same."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    rest = x.shape[:axis], x.shape[axis + 1 :]
    fits = [v for v in c.values if v.kind == x.kind and (v.shape[:axis], v.shape[axis + 1 :]) == rest]
    fits = [v for v in fits if len(v.shape) == len(x.shape)]
    parts = [x, *(c.g.one_of(fits) for _ in range(c.g.number(1, 2)))]
    sizes = [part.shape[axis] for part in parts]
    total: Size = sum(size for size in sizes if isinstance(size, int))
    if any(isinstance(size, str) for size in sizes):
        total = c.size()
    elif int(total) > 30:
        return
    shape = [total if place == axis else s for place, s in enumerate(x.shape)]
    c.add(c.g.node("Concat", *(part.name for part in parts), axis=axis), shape)


def gathered(c: Counts) -> None:
    """Rows at the places that NonZero or Unique gave, or the first ones of as many."""
    if (x := c.pick(rank=1, most=3)) is None:
        return
    places = c.pick(rank=1, most=1, kind="int64")
    if places is None or not isinstance(x.shape[0], int) or not x.shape[0]:
        return
    limited = c.g.node("Min", places.name, c.g.weight(x.shape[0] - 1, "int64"))
    c.add(c.g.node("Gather", x.name, limited, axis=0), [*places.shape, *x.shape[1:]])


def expanded(c: Counts) -> None:
    """A constant of as many elements as another value has."""
    if x := c.pick():
        row = c.g.weight([0.25])
        if c.g.chance():
            c.add(c.g.node("Expand", row, c.g.node("Shape", x.name)), x.shape)
        else:
            filled = c.g.node("ConstantOfShape", c.g.node("Shape", x.name))
            c.add(c.g.node("Sub", x.name, filled), x.shape)


def padded(c: Counts) -> None:
    """A border around an axis whose size data decides."""
    if (x := c.pick(most=3)) is None:
        return
    axis, rank = c.g.number(0, len(x.shape) - 1), len(x.shape)
    if isinstance(x.shape[axis], int):
        return
    pads = [c.g.number(0, 2) if place % rank == axis else 0 for place in range(2 * rank)]
    y = c.g.node("Pad", x.name, c.g.integers(*pads), c.g.weight(-0.25))
    c.add(y, [c.size() if place == axis else s for place, s in enumerate(x.shape)])


def turned(c: Counts) -> None:
    """Another order of axes, or the elements in one row."""
    if (x := c.pick()) is None:
        return
    if c.g.chance(0.3):
        size = x.shape[0] if len(x.shape) == 1 else c.size()
        c.add(c.g.node("Reshape", x.name, c.g.integers(-1)), [size])
        return
    permutation = [int(axis) for axis in c.g.rng.permutation(len(x.shape))]
    c.add(c.g.node("Transpose", x.name, perm=permutation), [x.shape[axis] for axis in permutation])


def counted(c: Counts) -> None:
    """The numbers from 0 on, as many as there are, or the number itself."""
    if (x := c.pick()) is None:
        return
    axis = c.g.number(0, len(x.shape) - 1)
    size = c.size_of(x, axis)
    if c.g.chance():
        c.add(size, [1], "int64")
        return
    zero, one = c.g.weight(0, "int64"), c.g.weight(1, "int64")
    c.add(c.g.node("Range", zero, c.g.node("Squeeze", size), one), [x.shape[axis]], "int64")


def scattered(c: Counts) -> None:
    """Elements that a condition chooses, changed and put back where they were."""
    if (x := c.pick(most=3)) is None:
        return
    places = c.g.node("Transpose", c.g.node("NonZero", c.condition(x)), perm=[1, 0])
    chosen = c.g.node("Neg", c.g.node("GatherND", x.name, places))
    c.add(c.g.node("ScatterND", x.name, places, chosen), x.shape)


DECIDE: Sequence[Callable[[Counts], None]] = (non_zero, non_zero, compressed, compressed, unique, rows_of_table)
FOLLOW: Sequence[Callable[[Counts], None]] = (
    *(
        unary,
        binary,
        reduced,
        split,
        shifted_split,
        equal_split,
        cut,
        cut,
        joined,
        joined,
        gathered,
        gathered,
        expanded,
        padded,
        padded,
    ),
    *(turned, counted, scattered),
)
"""What decides sizes, and what computes with them."""

SHAPES: Sequence[tuple[Size, ...]] = ((7,), (4, 5), (3, 2, 4), ("N",), ("N", 3), (2, "N"), (1, 1), (0, 4))
"""Shapes of inputs, also of none."""


def counted_case(seed: int) -> Case:
    """The model of a seed, with three calls of different numbers."""
    c = Counts(Drawn(np.random.default_rng([seed, 12])))
    c.opset = c.g.one_of([17, 20])
    for number in range(c.g.number(1, 2)):
        c.values.append(Value(f"x{number}", c.g.one_of(SHAPES)))
    inputs = list(c.values)
    c.g.one_of(DECIDE)(c)
    for _ in range(c.g.number(2, 5)):
        c.g.one_of(FOLLOW if c.g.chance(0.75) else DECIDE)(c)
    if not c.results:
        non_zero(c)
        unary(c)
    chosen = [c.results[-1], *(value for value in c.results[:-1] if c.g.chance(0.4)), *c.checked]
    results = list({value.name: value for value in chosen}.values())
    model = c.g.model(inputs, results, c.opset)
    bounded = any("N" in value.shape for value in inputs)
    calls = list[dict[str, np.ndarray]]()
    for _ in range(3):
        rows = c.g.number(1, MAX_ROWS)
        shapes = {value.name: [rows if size == "N" else int(size) for size in value.shape] for value in inputs}
        calls.append({name: _numbers(c.g, shape) for name, shape in shapes.items()})
    return Case(model, calls, {"N": (1, MAX_ROWS)} if bounded else {}, may_fail=bool(c.checked))


def _numbers(g: Drawn, shape: Sequence[int]) -> np.ndarray:
    """Quarters near 0; all of them 0 now and then, or none."""
    if g.chance(0.15):
        return np.full(shape, g.one_of([0.0, 1.0, -1.0]), np.float32)
    return (g.rng.integers(-8, 9, shape) / 4).astype(np.float32)

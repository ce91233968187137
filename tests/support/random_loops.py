"""
Random models of Loop, Scan and If inside each other, as ONNX models, by seed; with state of no elements, too.

Numbers are multiples of a quarter between -16 and 16, and stay so, so that results have to be equal to the bit, and no
rounding error decides a branch or a trip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from drawn_models import Case, Drawn, Size, Value

DEEPEST = 3
"""How many loops and branches are inside each other at most."""

MAX_ROWS = 5

UNARY = ("Neg", "Abs", "Relu", "Floor")
BINARY = ("Add", "Sub", "Max", "Min")


@dataclass(frozen=True)
class Scope:
    """A graph under construction, the values that it may read, and how deep it lies."""

    g: Drawn
    values: Sequence[Value]
    depth: int = 0

    def of(self, kind: str, *, scalar: bool = False) -> list[Value]:
        """Values of a type, with axes or without."""
        return [v for v in self.values if v.kind == kind and scalar == (v.shape == ())]

    def pick(self) -> Value:
        """One of the values that are floats, the latest ones more often."""
        found = self.of("float32")
        places = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.g.rng.choice(len(found), p=places / places.sum()))]

    def with_values(self, *values: Value) -> Scope:
        """The same with more values."""
        return replace(self, values=[*self.values, *values])

    def inside(self, *values: Value) -> Scope:
        """A graph inside this one, with inputs of its own."""
        return Scope(self.g.inner(), [*self.values, *values], self.depth + 1)

    def near(self, name: str, shape: Sequence[Size]) -> Value:
        """A new value, kept between -16 and 16."""
        return Value(self.g.node("Clip", name, self.g.weight(-16.0), self.g.weight(16.0)), tuple(shape))


def condition(s: Scope) -> str:
    """A scalar that decides: an input, one about the number of a trip, or one about a value."""
    numbers = s.of("int64", scalar=True)
    form = s.g.number(0, 2)
    if form == 0 and (flags := s.of("bool", scalar=True)):
        return s.g.one_of(flags).name
    if form == 1 and numbers:
        return s.g.node("Less", s.g.one_of(numbers).name, s.g.weight(s.g.number(0, 3), "int64"))
    x = s.pick()
    total = s.g.node("ReduceSum", x.name, keepdims=0)
    return s.g.node(s.g.one_of(["Greater", "Less"]), total, s.g.weight(s.g.one_of([0.0, 1.0, -3.0])))


# ---- what graphs are made of -----------------------------------------------------------------------------------


def elementwise(s: Scope) -> Scope:
    """A function of one value or of two."""
    x = s.pick()
    if s.g.chance():
        return s.with_values(Value(s.g.node(s.g.one_of(UNARY), x.name), x.shape))
    same = [value.name for value in s.of("float32") if value.shape == x.shape]
    other = s.g.one_of([*same, s.g.weight(0.5)])
    return s.with_values(s.near(s.g.node(s.g.one_of(BINARY), x.name, other), x.shape))


def by_trip(s: Scope) -> Scope:
    """A value and the number of a trip, or the row of a table with that number."""
    numbers = s.of("int64", scalar=True)
    if not numbers:
        return elementwise(s)
    x, number = s.pick(), s.g.one_of(numbers).name
    if s.g.chance() and x.shape and isinstance(x.shape[-1], int):
        table = s.g.weight(s.g.rng.integers(-8, 9, (12, x.shape[-1])) / 4)
        row = s.g.node("Gather", table, number, axis=0)
        return s.with_values(s.near(s.g.node("Add", x.name, row), x.shape))
    return s.with_values(s.near(s.g.node("Add", x.name, s.g.node("Cast", number, to=1)), x.shape))


def moved(s: Scope) -> Scope:
    """The rows of a value backwards, its sum, or its elements and others beside each other and cut."""
    x = s.pick()
    form = s.g.number(0, 2)
    axis = s.g.number(0, len(x.shape) - 1)
    if form == 0:
        parts = [s.g.integers(number) for number in (-1, -(1 << 40), axis, -1)]
        return s.with_values(Value(s.g.node("Slice", x.name, *parts), x.shape))
    if form == 1:
        total = s.g.node("ReduceSum", x.name, s.g.integers(axis), keepdims=1)
        return s.with_values(s.near(s.g.node("Sub", x.name, total), x.shape))
    both = s.g.node("Concat", x.name, s.g.node("Neg", x.name), axis=axis)
    size = x.shape[axis]
    if not isinstance(size, int):
        return elementwise(s)
    start = s.g.number(0, size)
    parts = [s.g.integers(number) for number in (start, start + size, axis)]
    return s.with_values(Value(s.g.node("Slice", both, *parts), x.shape))


def branches(s: Scope) -> Scope:
    """An If whose branches give values of the same shapes, maybe constants or values of the graph outside."""
    outputs = [s.pick() for _ in range(s.g.number(1, 2))]
    decides = condition(s)
    graphs = [_branch(s, outputs) for _ in range(2)]
    names = s.g.several("If", [decides], len(outputs), then_branch=graphs[0], else_branch=graphs[1])
    return s.with_values(*(Value(name, value.shape) for name, value in zip(names, outputs, strict=True)))


def _branch(s: Scope, outputs: Sequence[Value]) -> object:
    inner = filled(s.inside(), s.g.number(0, 2))
    return inner.g.graph([], [_like(inner, value) for value in outputs])


def _like(s: Scope, wanted: Value) -> Value:
    """The latest value of a shape."""
    return [value for value in s.of("float32") if value.shape == wanted.shape][-1]


def loop(s: Scope) -> Scope:
    """A Loop with state and rows that it stacks; its trips are a number, an input, or go on while a condition holds."""
    states = [s.pick() for _ in range(s.g.number(1, 3))]
    index, go = Value(f"i{next(s.g.names)}", (), "int64"), Value(f"go{next(s.g.names)}", (), "bool")
    inputs = [Value(f"state{next(s.g.names)}", value.shape) for value in states]
    inner = filled(s.inside(index, go, *inputs), s.g.number(1, 3))
    results = [_like(inner, value) for value in states]
    stops = s.g.chance(0.4)
    if stops:
        goes_on = condition(inner)
    else:
        goes_on = inner.g.node("Identity", go.name)
    counts = [value.name for value in s.of("int64", scalar=True)]
    varies = bool(counts) and s.g.chance(0.3)
    # onnxruntime takes sizes that it does not know for 0 where there is no trip. Memory is laid out for a stack before
    # there are trips of the loop around it.
    rows = [inner.pick()] if s.g.chance() and not (varies and s.depth) else []
    is_known = all(isinstance(size, int) for value in rows for size in value.shape)
    varies = varies and is_known
    body = inner.g.graph([index, go, *inputs], [Value(goes_on, (), "bool"), *results, *rows])
    trips = s.g.weight(s.g.number(0 if is_known else 1, 4), "int64")
    if varies:
        trips = s.g.node("Min", s.g.one_of(counts), trips)
    first = condition(s) if is_known and s.g.chance(0.3) else s.g.one_of([s.g.weight(True, "bool"), ""])
    operands = [trips, first, *(value.name for value in states)]
    names = s.g.several("Loop", operands, len(states) + len(rows), body=body)
    made = [Value(name, value.shape) for name, value in zip(names, states, strict=False)]
    for name, value in zip(names[len(states) :], rows, strict=True):
        total = s.g.node("ReduceSum", name, s.g.integers(0), keepdims=0)
        made.append(s.near(total, value.shape))
    return s.with_values(*made)


def scan(s: Scope) -> Scope:
    """A Scan over rows of a value, from the front or from behind, with state and rows that it gives."""
    # onnxruntime has no rows of nothing.
    xs = [value for value in s.of("float32") if len(value.shape) > 1 and value.shape[0] != 0]
    if not xs:
        return loop(s)
    x = s.g.one_of(xs)
    states = [s.pick() for _ in range(s.g.number(0, 2))]
    inputs = [Value(f"state{next(s.g.names)}", value.shape) for value in states]
    row = Value(f"row{next(s.g.names)}", x.shape[1:])
    inner = filled(s.inside(*inputs, row), s.g.number(1, 3))
    given = inner.pick()
    if given.shape != row.shape:
        given = row
    body = inner.g.graph([*inputs, row], [*(_like(inner, value) for value in states), given])
    directions: dict[str, Any] = {
        "scan_input_directions": [s.g.number(0, 1)],
        "scan_output_directions": [s.g.number(0, 1)],
    }
    operands = [*(value.name for value in states), x.name]
    names = s.g.several("Scan", operands, len(states) + 1, body=body, num_scan_inputs=1, **directions)
    made = [Value(name, value.shape) for name, value in zip(names, states, strict=False)]
    return s.with_values(*made, Value(names[-1], x.shape))


LEAVES: Sequence[Callable[[Scope], Scope]] = (elementwise, elementwise, by_trip, moved)
REGIONS: Sequence[Callable[[Scope], Scope]] = (branches, loop, loop, scan)


def filled(s: Scope, count: int) -> Scope:
    """A graph with so many operators more, loops and branches among them where it does not lie too deep."""
    for _ in range(count):
        s = s.g.one_of(REGIONS if s.depth < DEEPEST and s.g.chance(0.4) else LEAVES)(s)
    return s


SHAPES: Sequence[tuple[Size, ...]] = ((3,), (2, 4), (4, 1), (0,), (0, 3), (2, 0), (2, 3, 2), ("N",), ("N", 2), (3, "N"))
"""Shapes of inputs, also of no elements."""


def nested_case(seed: int) -> Case:
    """The model of a seed, with three calls."""
    g = Drawn(np.random.default_rng([seed, 13]))
    inputs = [Value(f"x{number}", g.one_of(SHAPES)) for number in range(g.number(1, 3))]
    inputs += [Value("count", (), "int64"), Value("flag", (), "bool")]
    s = g.one_of(REGIONS)(filled(Scope(g, inputs), g.number(0, 1)))
    s = filled(s, g.number(0, 2))
    made = s.values[len(inputs) :]
    model = g.model(inputs, [made[-1], *(value for value in made[:-1] if g.chance(0.4))])
    bounded = any("N" in value.shape for value in inputs)
    calls = list[dict[str, np.ndarray]]()
    for _ in range(3):
        rows = g.number(1, MAX_ROWS)
        calls.append({value.name: _numbers(g, value, rows) for value in inputs})
    return Case(model, calls, {"N": (1, MAX_ROWS)} if bounded else {})


def _numbers(g: Drawn, value: Value, rows: int) -> np.ndarray:
    if value.kind == "bool":
        return np.array(g.chance())
    if value.kind == "int64":
        return np.array(g.number(-1, 4))
    return (g.rng.integers(-16, 17, [rows if size == "N" else int(size) for size in value.shape]) / 4).astype(
        np.float32
    )

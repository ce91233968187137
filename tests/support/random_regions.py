"""
Random programs with branches and loops inside each other, by seed.

All values of a program are matrices of one shape, or single rows, whose elements stay between -1 and 1, so that
rounding errors stay small, however often a loop runs. What decides is an input, the number of a trip, or the largest
element of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.weights import add_weights
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

COLUMNS = 8
SQUARE = f"tensor<{COLUMNS}x{COLUMNS}xf32>"
MATRICES = 3
"""Constant matrices that products read; two of them fill the panel of one."""

BOUNDED = ("relu", "tanh", "neg", "abs", "sigmoid")
"""Functions of one value that keep to the range."""


@dataclass
class RegionProgram:
    """A program under construction: its lines, and the random numbers it follows."""

    rng: np.random.Generator
    rows: int
    """Rows of every value."""
    lines: list[str] = field(default_factory=list[str])
    count: int = 0
    """Names that were given."""

    @property
    def type(self) -> str:
        """The type of every value."""
        return f"tensor<{self.rows}x{COLUMNS}xf32>"

    def name(self, stem: str = "v") -> str:
        """A new name of a value."""
        self.count += 1
        return f"%{stem}{self.count}"

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def operator(self, text: str, type_: str = "") -> str:
        """Append an operator; the name of its result."""
        result = self.name()
        self.line(f"{result} = glow_high.{text} : {type_ or self.type}")
        return result

    def pick(self, values: Sequence[str]) -> str:
        """One of several values; the latest ones more often."""
        weights = np.arange(1, len(values) + 1, dtype=float)
        return values[int(self.rng.choice(len(values), p=weights / weights.sum()))]

    # ---- operators

    def unary(self, values: Sequence[str]) -> str:
        """A function of one value."""
        return self.operator(f"{self.rng.choice(BOUNDED)} {self.pick(values)}")

    def binary(self, values: Sequence[str]) -> str:
        """The mean, or the larger, of two values."""
        left, right = self.pick(values), self.pick(values)
        if self.rng.random() < 0.4:
            return self.operator(f"max {left}, {right}")
        half = self.operator("splat {value = 0.5}", "tensor<f32>")
        total = self.operator(f"add {left}, {right}")
        return self.operator(f"mul {total}, {half}")

    def product(self, values: Sequence[str]) -> str:
        """A product of what often is an input with a constant matrix, read where it is used or at the beginning."""
        number = int(self.rng.integers(MATRICES))
        matrix = f"%matrix{number}" if self.rng.random() < 0.5 else self.operator(f"get @matrix{number}", SQUARE)
        left = "%x" if self.rng.random() < 0.4 else self.pick(values)
        return self.operator(f"tanh {self.operator(f'matmul {left}, {matrix}')}")

    def moved(self, values: Sequence[str]) -> str:
        """Rows of two values in one, by way of a concatenation and a slice."""
        both = self.operator(
            f"concat {self.pick(values)}, {self.pick(values)} {{axis = 0}}", f"tensor<{2 * self.rows}x{COLUMNS}xf32>"
        )
        start = int(self.rng.integers(0, self.rows + 1))
        return self.operator(f"slice {both} {{starts = [{start}, 0], ends = [{start + self.rows}, {COLUMNS}]}}")

    def turned(self, values: Sequence[str]) -> str:
        """The same elements in another order."""
        type_ = f"tensor<{COLUMNS}x{self.rows}xf32>"
        turned = self.operator(f"transpose {self.pick(values)} {{permutation = [1, 0]}}", type_)
        return self.operator(f"reshape {turned} {{shape = [{self.rows}, {COLUMNS}]}}")

    # ---- what decides

    def condition(self, values: Sequence[str], index: str | None) -> str:
        """A condition: an input, or about the number of the trip, or about a value."""
        if self.rng.random() < 0.3:
            return "%flag"
        if index is not None and self.rng.random() < 0.5:
            limit = self.operator(f"splat {{value = {int(self.rng.integers(1, 3))} : i64}}", "tensor<i64>")
            return self.operator(f"less {index}, {limit}", "tensor<i1>")
        largest = self.operator(f"reduce_max {self.pick(values)} {{axes = [0, 1], keepdims = false}}", "tensor<f32>")
        limit = self.operator(f"splat {{value = {self.rng.uniform(0, 0.6):.3f}}}", "tensor<f32>")
        return self.operator(f"greater {largest}, {limit}", "tensor<i1>")

    # ---- regions

    def branch(self, values: Sequence[str], index: str | None, depth: int) -> list[str]:
        """A branch that gives one or two values."""
        condition = self.condition(values, index)
        results = [self.name("b") for _ in range(int(self.rng.integers(1, 3)))]
        self.line(f"{', '.join(results)} = glow_high.if {condition} {{")
        for closing in ("} else {", f"}} : {', '.join([self.type] * len(results))}"):
            inside = self.steps(values, index, depth)
            self.line(f"glow_high.yield {', '.join(self.pick(inside) for _ in results)}")
            self.line(closing)
        return results

    def loop(self, values: Sequence[str], index: str | None, depth: int) -> list[str]:
        """
        A loop that carries one to three values, which it may exchange, and may end early.

        Some go over a tensor; those stack a result, of which one row is a value, unless they may end early.
        """
        carried = [self.name("c") for _ in range(int(self.rng.integers(1, 4)))]
        initial = [self.pick(values) for _ in carried]
        results = [self.name("l") for _ in carried]
        number = self.name("i")
        trips = str(self.rng.choice(["1", "2", "3", "%n"]))
        is_early = self.rng.random() < 0.5
        before = f" while {self.condition(values, index)}" if is_early else ""
        pairs = ", ".join(f"{value} = {start}" for value, start in zip(carried, initial, strict=True))
        is_scan = trips != "%n" and self.rng.random() < 0.5
        rows, over = self._scanned(values, int(trips)) if is_scan else ([], "")
        stacks = [self.name("s")] if is_scan and not is_early else []
        self.line(f"{', '.join(results + stacks)} = glow_high.loop {number} = {trips}{before} ({pairs}){over} {{")
        inside = self.steps([*values, *carried, *rows], number, depth)
        following = [self.condition(inside, number)] if is_early else []
        kept = [*carried, *inside[-2:]]
        following += [kept[int(self.rng.integers(len(kept)))] for _ in [*carried, *stacks]]
        self.line(f"glow_high.yield {', '.join(following)}")
        stacked = f"tensor<{trips}x{self.rows}x{COLUMNS}xf32>"
        suffix = " reversed" if self.rng.random() < 0.5 else ""
        self.line(f"}} : {', '.join([*[self.type] * len(results), *(f'{stacked}{suffix}' for _ in stacks)])}")
        return [*results, *(self._row(stack, int(trips)) for stack in stacks)]

    def _scanned(self, values: Sequence[str], trips: int) -> tuple[list[str], str]:
        """A row for each trip of a loop, of values one above the other: its name, and how the loop says it."""
        parts = ", ".join(self.pick(values) for _ in range(trips))
        flat = self.operator(f"concat {parts} {{axis = 0}}", f"tensor<{trips * self.rows}x{COLUMNS}xf32>")
        type_ = f"tensor<{trips}x{self.rows}x{COLUMNS}xf32>"
        whole = self.operator(f"reshape {flat} {{shape = [{trips}, {self.rows}, {COLUMNS}]}}", type_)
        row = self.name("r")
        return [row], f" over ({row} = {whole}{' reversed' if self.rng.random() < 0.5 else ''})"

    def _row(self, stack: str, trips: int) -> str:
        """One row of what a loop stacked."""
        number = int(self.rng.integers(trips))
        starts, ends = f"[{number}, 0, 0]", f"[{number + 1}, {self.rows}, {COLUMNS}]"
        row = self.operator(
            f"slice {stack} {{starts = {starts}, ends = {ends}}}", f"tensor<1x{self.rows}x{COLUMNS}xf32>"
        )
        return self.operator(f"reshape {row} {{shape = [{self.rows}, {COLUMNS}]}}")

    def steps(self, values: Sequence[str], index: str | None, depth: int) -> list[str]:
        """Some steps in a row; all values that are there behind them."""
        known = list(values)
        operators: list[Callable[[Sequence[str]], str]] = [
            *(self.unary, self.unary, self.binary, self.binary, self.product, self.product, self.moved, self.turned)
        ]
        for _ in range(int(self.rng.integers(1, 5))):
            if depth > 0 and self.rng.random() < 0.45:
                region = self.branch if self.rng.random() < 0.5 else self.loop
                known += region(known, index, depth - 1)
            else:
                known.append(operators[int(self.rng.integers(len(operators)))](known))
        return known


def rows_of(seed: int) -> int:
    """The rows of the values of a program: one in each second, so that products are of single rows."""
    return 1 if seed // 2 % 2 else 4


def region_program(seed: int, depth: int = 2) -> ModuleOp:
    """A module of `glow_high` with a function `main`, whose regions are up to `depth` deep."""
    rng = np.random.default_rng(seed)
    numbers = range(MATRICES)
    digests = [add_weights(rng.normal(0, 0.5, (COLUMNS, COLUMNS)).astype(np.float32)) for _ in numbers]
    program = RegionProgram(rng, rows_of(seed))
    known = program.steps(["%x", "%z"], None, depth)
    known += program.branch(known, None, depth) if seed % 2 else program.loop(known, None, depth)
    constants = "\n".join(
        f'glow_high.constant @matrix{number} : {SQUARE} {{weights = "{digests[number]}"}}' for number in numbers
    )
    reads = "\n".join(f"%matrix{number} = glow_high.get @matrix{number} : {SQUARE}" for number in numbers)
    body = "\n".join(program.lines)
    text = f"""
{constants}
glow_high.placeholder @x : {program.type} {{input}}
glow_high.placeholder @z : {program.type} {{input}}
glow_high.placeholder @flag : tensor<i1> {{input}}
glow_high.placeholder @n : tensor<i64> {{input}}
glow_high.placeholder @y : {program.type} {{output}}
glow_high.placeholder @last : {program.type} {{output}}
glow_high.func @main(@x, @z, @flag, @n, @y, @last) {{
%x = glow_high.get @x : {program.type}
%z = glow_high.get @z : {program.type}
%flag = glow_high.get @flag : tensor<i1>
%n = glow_high.get @n : tensor<i64>
{reads}
{body}
glow_high.save {known[len(known) // 2]}, @y
glow_high.save {known[-1]}, @last
}}
"""
    return parse_module(text, new_context())


def region_inputs(seed: int) -> list[dict[str, np.ndarray]]:
    """Inputs that take different ways through a program."""
    rng, shape = np.random.default_rng(seed), (rows_of(seed), COLUMNS)
    return [
        {
            "x": rng.uniform(-1, 1, shape).astype(np.float32),
            "z": rng.uniform(-1, 1, shape).astype(np.float32),
            "flag": np.array(flag),
            "n": np.array(trips, np.int64),
        }
        for flag, trips in ((True, 3), (False, 0), (True, -1), (False, 2))
    ]

"""Loops with counters run as often with `count-trips` as without it."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from breadth import examples
from validation import validate

from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

COMPARISONS = ("less", "less_or_equal", "greater", "greater_or_equal")
LIMITS = {"i8": (-128, 127), "ui8": (0, 255), "i32": (-12, 12), "i64": (-12, 12)}
"""Type of the counter → the range of start and bound; for types of 8 bits these are their limits."""

MODULE = """
glow_high.func @count(%n: tensor<{type}>, %s: tensor<{type}>, %first: tensor<i1>, %most: tensor<i64>)
    -> (tensor<i64>, tensor<{type}>) {{
  %bound = {bound}
  %start = {start}
  %front = glow_high.{comparison} {in_front} : tensor<i1>
  %yes = glow_high.splat {{value = {yes}}} : tensor<i1>
  %none = glow_high.splat {{value = 0 : i64}} : tensor<i64>
  %one = glow_high.splat {{value = 1 : i64}} : tensor<i64>
  %sum, %last = glow_high.loop %i{trips} while {condition} (%trips = %none, %k = %start) {{
    %step = glow_high.splat {{value = {step} : {type}}} : tensor<{type}>
    %next = glow_high.{change} %k, %step : tensor<{type}>
    %more = glow_high.{comparison} {operands} : tensor<i1>
    %sum = glow_high.add %trips, %one : tensor<i64>
    glow_high.yield %more, %sum, %next
  }} : tensor<i64>, tensor<{type}>
  glow_high.return %sum, %last
}}
"""


def number(choose: random.Random, type_: str) -> int:
    """A number of a range: often one of its ends, or near 0."""
    low, high = LIMITS[type_]
    return choose.choice((low, high, choose.randint(low, high), choose.randint(max(low, -12), 12)))


def value(choose: random.Random, type_: str, known: int, argument: str) -> str:
    """A constant, or an argument."""
    splat = f"glow_high.splat {{value = {known} : {type_}}} : tensor<{type_}>"
    return splat if choose.random() < 0.6 else f"glow_high.reshape {argument} {{shape = []}} : tensor<{type_}>"


def program(choose: random.Random) -> tuple[str, np.ndarray, np.ndarray]:
    """A random loop with a counter, and the numbers that start and bound are at run time."""
    type_ = choose.choice(list(LIMITS))
    start, bound = number(choose, type_), number(choose, type_)
    compared = [choose.choice(("%next", "%k")), "%bound"]
    choose.shuffle(compared)
    change, comparison = choose.choice(("add", "add", "sub")), choose.choice(COMPARISONS)
    grows = comparison.startswith("less") == (compared[1] == "%bound")
    ends = grows == (change == "add") and abs(bound) < 125
    text = MODULE.format(
        type=type_,
        start=value(choose, type_, start, "%s"),
        bound=value(choose, type_, bound, "%n"),
        in_front=", ".join("%start" if item != "%bound" else item for item in compared),
        yes=choose.choice(("true", "false")),
        trips=choose.choice(("", "", " = 5", " = %most") if ends else (" = 5", " = 300", " = %most")),
        condition=choose.choice(("%yes", "%first", "%front")),
        step=choose.choice((1, 1, 1, 2, 3)),
        change=change,
        comparison=comparison,
        operands=", ".join(compared),
    )
    dtype = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "i64": np.int64}[type_]
    return text, np.array(start, dtype), np.array(bound, dtype)


def check(text: str, start: np.ndarray, bound: np.ndarray) -> None:
    """Compare a program with the one whose trips are counted."""
    module = parse_module(text, new_context())
    for first, most in itertools.product((True, False), (-1, 0, 7)):
        given = {"n": bound, "s": start, "first": np.array(first), "most": np.array(most)}
        inputs = {f"count.{name}": array for name, array in given.items()}
        validate(module.clone(), "count-trips,simplify-control-flow", inputs)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_trips_are_as_many(seed: int) -> None:
    check(*program(random.Random(seed)))


@pytest.mark.parametrize("start", ["glow_high.reshape %s {shape = []}", "glow_high.splat {value = 127 : i8}"])
def test_a_counter_that_wraps_around_in_its_first_trip(start: str) -> None:
    text = MODULE.format(
        type="i8",
        start=f"{start} : tensor<i8>",
        bound="glow_high.splat {value = -120 : i8} : tensor<i8>",
        in_front="%start, %bound",
        yes="true",
        trips="",
        condition="%yes",
        step=1,
        change="add",
        comparison="less",
        operands="%next, %bound",
    )
    check(text, np.array(127, np.int8), np.array(-120, np.int8))

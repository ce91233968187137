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
LIMITS = {"i8": 127, "ui8": 255, "i32": 12, "i64": 12}
"""Type of the counter → the largest start and bound; for types of 8 bits these are their limits."""

MODULE = """
glow_high.func @count(%n: tensor<{type}>, %first: tensor<i1>, %most: tensor<i64>) -> (tensor<i64>, tensor<{type}>) {{
  %bound = {bound}
  %start = glow_high.splat {{value = {start} : {type}}} : tensor<{type}>
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


def program(choose: random.Random) -> tuple[str, int]:
    """A random loop with a counter, and the number that its bound is at run time."""
    type_ = choose.choice(list(LIMITS))
    most = LIMITS[type_]
    least = 0 if type_ == "ui8" else -most
    near = choose.choice((most, 12))
    start, bound = (choose.randint(max(least, -near), near) for _ in range(2))
    compared = [choose.choice(("%next", "%k")), "%bound"]
    choose.shuffle(compared)
    known = choose.random() < 0.6
    change, comparison = choose.choice(("add", "add", "sub")), choose.choice(COMPARISONS)
    grows = comparison.startswith("less") == (compared[1] == "%bound")
    ends = LIMITS[type_] > 12 or grows == (change == "add")
    return MODULE.format(
        type=type_,
        start=start,
        bound=f"glow_high.splat {{value = {bound} : {type_}}} : tensor<{type_}>"
        if known
        else f"glow_high.reshape %n {{shape = []}} : tensor<{type_}>",
        yes=choose.choice(("true", "false")),
        trips=choose.choice(("", " = 5", " = %most") if ends else (" = 5", " = %most")),
        condition=choose.choice(("%yes", "%first")),
        step=choose.choice((1, 1, 1, 2, 3)),
        change=change,
        comparison=comparison,
        operands=", ".join(compared),
    ), bound


@pytest.mark.parametrize("seed", range(examples(60)))
def test_trips_are_as_many(seed: int) -> None:
    text, bound = program(random.Random(seed))
    module = parse_module(text, new_context())
    dtype = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "i64": np.int64}
    numbers = np.array(bound, dtype[text.split("tensor<")[1].split(">")[0]])
    for first, most in itertools.product((True, False), (-1, 0, 7)):
        given = {"count.n": numbers, "count.first": np.array(first), "count.most": np.array(most)}
        validate(module.clone(), "count-trips,simplify-control-flow", given)

"""Remainders, of floats and of integers, are exact at any size of the quotient."""

from __future__ import annotations

import math

import numpy as np
import pytest
from execute import Case, compile_module, module_of, runnable_targets
from scalar_functions import FLOATS, SMALL, compiled

from glow_mlir.dialects.glow_high.elementwise_binary import ModOp
from glow_mlir.interpreter.machine import run_function

HALF, SINGLE, DOUBLE = (np.dtype(name) for name in ("float16", "float32", "float64"))


def pairs(kind: np.dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors: random bits, small quotients, dividends near the largest, and all pairs of the edges."""
    random = np.random.default_rng(0)
    limits = np.finfo(kind)

    def patterns(size: int) -> np.ndarray:
        bits = 8 * kind.itemsize
        return random.integers(0, 2**bits, size, dtype=np.uint64).astype(f"u{kind.itemsize}").view(kind)

    with np.errstate(all="ignore"):
        divisors = patterns(count)
        near = (divisors * random.uniform(0, 100, count)).astype(kind)
        huge = np.ldexp(limits.max, -random.integers(0, 3, count)).astype(kind)
        huge = np.nextafter(huge, kind.type(0)) * random.choice([-1, 1], count).astype(kind)
    edges = [0, 1, 3, limits.max, limits.tiny, limits.smallest_subnormal, limits.smallest_subnormal * 3]
    edges = np.array([*edges, np.inf, np.nan], kind)
    edges = np.concatenate([edges, -edges])
    return (
        np.concatenate([patterns(count), near, huge, np.repeat(edges, edges.size)]),
        np.concatenate([patterns(count), divisors, divisors, np.tile(edges, edges.size)]),
    )


def assert_same_numbers(actual: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(actual, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(wanted[number]))


@pytest.mark.parametrize(
    ("bits", "target"),
    [*((bits, target) for bits in FLOATS for target in runnable_targets()), *((32, name) for name in SMALL)],
)
def test_the_function_is_that_of_c(bits: int, target: str):
    x, y = pairs(np.dtype(FLOATS[bits]), 4096)
    with np.errstate(all="ignore"):
        assert_same_numbers(compiled("remf", bits, 2, target)(x, y)[: x.size], np.fmod(x, y))


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("kind", [HALF, SINGLE, DOUBLE], ids=str)
def test_floats(kind: np.dtype, target: str):
    """The operator, in the interpreter and as machine code, has numpy's sign of the divisor, or C's of the dividend."""
    x, y = pairs(kind, 1024)
    module, inputs = module_of(Case(ModOp, x, y, fmod=True), Case(ModOp, x, y))
    interpreted = run_function(module.clone(), inputs)
    machine = compile_module(module, target).run(inputs)
    with np.errstate(all="ignore"):
        truncated, floored = np.fmod(x, y), np.mod(x, y)
    for results in (interpreted, machine):
        assert_same_numbers(results["out0"], truncated)
        assert_same_numbers(results["out1"], floored)


def test_floats_against_the_exact_quotient():
    """By fractions of Python: nothing here relies on the C library."""
    x, y = pairs(DOUBLE, 64)
    usable = np.isfinite(x) & np.isfinite(y) & (y != 0)
    x, y = x[usable], y[usable]
    result = compiled("remf", 64, 2, "host")(x, y)[: x.size]
    for dividend, divisor, rest in zip(x.tolist(), y.tolist(), result.tolist(), strict=True):
        a, b = (abs(number).as_integer_ratio() for number in (dividend, divisor))
        exact = (a[0] * b[1]) % (b[0] * a[1])
        ours = abs(rest).as_integer_ratio()
        assert ours[0] * a[1] * b[1] == exact * ours[1]
        assert math.copysign(1, rest) == math.copysign(1, dividend)


def remainder(x: int, y: int, fmod: bool) -> int:
    """The remainder of integers; 0 for a zero divisor."""
    if y == 0:
        return 0
    return int(math.copysign(1, x)) * (abs(x) % abs(y)) if fmod else x % y


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_integers(name: str, target: str):
    """All pairs of bytes, and of the ends of wider types, among them the smallest integer by -1."""
    info = np.iinfo(name)
    if info.bits == 8:
        values = list(range(int(info.min), int(info.max) + 1))
    else:
        ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, -7, -3, -2, -1, 0, 1, 2, 3, 7]
        values = [int(end) for end in ends if end >= info.min]
    x, y = np.array(values, name)[:, None], np.array(values, name)[None, :]
    module, inputs = module_of(Case(ModOp, x, y, fmod=True), Case(ModOp, x, y))
    interpreted = run_function(module.clone(), inputs)
    machine = compile_module(module, target).run(inputs)
    for out, fmod in (("out0", True), ("out1", False)):
        wanted = np.array([[remainder(a, b, fmod) for b in values] for a in values], name)
        np.testing.assert_array_equal(interpreted[out], wanted)
        np.testing.assert_array_equal(machine[out], wanted)

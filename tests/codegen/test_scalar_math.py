"""Mathematical functions: errors in units in the last place, edges, and no calls of a library."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from machines import target_named
from scalar_functions import FLOATS, RUNNABLE, SMALL, Array, compiled, ulps

from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, ptr, vector
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.math.scalar_math import MATH
from glow_mlir.codegen.scf_to_llvm import flattened

COUNT = 1 << 14


def samples(bounds: Sequence[float], bits: int, seed: int = 0) -> Array:
    """Return numbers spread evenly over a range, and as many spread evenly over the exponents within it."""
    low, high = bounds
    random = np.random.default_rng(seed)
    even = random.uniform(low, high, COUNT // 2)
    bound = max(abs(low), abs(high))
    spread = np.exp2(random.uniform(-40, math.log2(bound), COUNT // 2)) * random.choice([-1, 1], COUNT // 2)
    spread = np.where((spread < low) | (spread > high), np.abs(spread), spread)
    return np.concatenate([even, np.clip(spread, low, high)]).astype(FLOATS[bits])


def exact_erf(x: Array) -> Array:
    return np.array([math.erf(value) for value in x.astype(np.float64)], dtype=np.longdouble)


# name, exact function, range for f32 and f64, largest error in ulps of f32 and f64
CASES: Sequence[tuple[str, Callable[[Array], Array], Sequence[float], float, float]] = [
    ("exp", np.exp, (-103, 88, -745, 709), 1.5, 1.5),
    ("exp2", np.exp2, (-149, 127.9, -1074, 1023.9), 1.5, 1.5),
    ("expm1", np.expm1, (-50, 88, -50, 709), 2.0, 2.0),
    ("tanh", np.tanh, (-12, 12, -22, 22), 3.0, 3.0),
    ("sinh", np.sinh, (-89, 89, -710, 710), 3.0, 3.0),
    ("cosh", np.cosh, (-89, 89, -710, 710), 3.0, 3.0),
    ("erf", exact_erf, (-5, 5, -7, 7), 2.0, 2.5),
    ("log", np.log, (1e-45, 1e30, 5e-324, 1e300), 1.5, 1.5),
    ("log2", np.log2, (1e-45, 1e30, 5e-324, 1e300), 2.5, 2.5),
    ("log10", np.log10, (1e-45, 1e30, 5e-324, 1e300), 2.5, 2.5),
    ("log1p", np.log1p, (-0.99999, 1e30, -0.99999, 1e300), 2.0, 2.0),
    ("asinh", np.arcsinh, (-1e30, 1e30, -1e300, 1e300), 3.0, 3.0),
    ("acosh", np.arccosh, (1, 1e30, 1, 1e300), 3.0, 3.0),
    ("atanh", np.arctanh, (-0.9999, 0.9999, -0.9999, 0.9999), 3.5, 3.5),
    ("sin", np.sin, (-1e5, 1e5, -1e5, 1e5), 0.6, 2.5),
    ("cos", np.cos, (-1e5, 1e5, -1e5, 1e5), 0.6, 2.5),
    ("tan", np.tan, (-1e5, 1e5, -1e5, 1e5), 0.6, 3.5),
    ("asin", np.arcsin, (-1, 1, -1, 1), 0.6, 2.5),
    ("acos", np.arccos, (-1, 1, -1, 1), 0.6, 2.5),
    ("atan", np.arctan, (-1e6, 1e6, -1e6, 1e6), 0.6, 2.0),
    ("sqrt", np.sqrt, (0, 1e30, 0, 1e300), 0.5, 0.5),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (1e-30, 1e30, 1e-300, 1e300), 1.5, 1.5),
]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_error(case: tuple[str, Callable[[Array], Array], Sequence[float], float, float], bits: int):
    name, exact, ranges, *limits = case
    wide = bits == 64
    x = samples(ranges[2 * wide : 2 * wide + 2], bits)
    if name.startswith("log") and name != "log1p":
        # The range where the result crosses zero, and denormal numbers.
        x[: COUNT // 4] = samples((0.5, 2.0), bits)[: COUNT // 4]
        x[COUNT // 4 : COUNT // 2] *= FLOATS[bits](np.finfo(FLOATS[bits]).tiny)
        x = np.abs(x)
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.longdouble))
    assert ulps(compiled(name, bits, 1, "host")(x), expected) <= limits[wide]


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_without_vectors_and_fma(name: str):
    """The scalar target has neither fused multiply-add nor rounding instructions; errors may be a little larger."""
    _, exact, ranges, limit, _ = next(case for case in CASES if case[0] == name)
    x = samples(ranges[:2], 32, seed=1)
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.longdouble))
    assert ulps(compiled(name, 32, 1, RUNNABLE[-1])(x), expected) <= limit + 1


def test_lanes_do_not_change_results():
    """The vectors of a loop, what remains of it, and the parts of several threads compute the same bits."""
    random = np.random.default_rng(0)
    for bits, limit in ((32, 2**32), (64, 2**64)):
        patterns = random.integers(0, limit, 4096, dtype=np.uint64).astype(f"u{bits // 8}")
        x = np.concatenate([patterns.view(FLOATS[bits]), samples((-100, 100), bits)])
        for name in ("exp", "exp2", "expm1", "tanh", "erf", "log", "sinh", "sin", "asin"):
            one = compiled(name, bits, 1, "host", 1)(x)
            for lanes in (2, 4, 8, 16):
                np.testing.assert_array_equal(compiled(name, bits, 1, "host", lanes)(x), one, err_msg=f"{name} {lanes}")


@functools.cache
def all_over_the_range() -> Array:
    """Every 4099th f32 there is, and the neighbours of all powers of two, denormal ones too."""
    patterns = np.arange(0, 2**32, 4099, dtype=np.uint64)
    powers = np.arange(0, 2**32, 2**23, dtype=np.uint64)
    denormal = 2 ** np.arange(23, dtype=np.uint64)
    near = np.concatenate([powers, denormal, denormal + 2**31])[:, None] + np.arange(-2, 3).astype(np.uint64)
    return np.concatenate([patterns, near.ravel() % 2**32]).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_bounds_over_the_whole_range(
    case: tuple[str, Callable[[Array], Array], Sequence[float], float, float], target: str
):
    """The bounds of docs/floating-point.md, with NaN and infinities where they belong, and numbers nowhere else."""
    name, exact, _, limit, _ = case
    x = all_over_the_range()
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
        rounded = expected.astype(np.float32)
    result = compiled(name, 32, 1, target)(x)[: x.size]
    # The last number before infinity may be missed by less than the bound.
    top = np.isinf(result) != np.isinf(rounded)
    assert (np.abs(expected[top]) > 2.0**128 * (1 - limit * 2.0**-24)).all()
    assert (np.abs(expected[top]) < 2.0**128 * (1 + limit * 2.0**-24)).all()
    with np.errstate(over="ignore"):
        assert ulps(result[~top], expected[~top]) <= limit + (target == "scalar")


def test_a_branch_around_edges_changes_no_bits():
    """Where branches are cheap, exp brings numbers into its range, and scales in two steps, in a function apart."""
    branching = f"{RUNNABLE[-1]},costs.branched_operations=1"
    for bits, x in ((32, all_over_the_range()), (64, samples((-800, 800), 64))):
        straight = compiled("exp", bits, 1, RUNNABLE[-1], 1)(x)
        np.testing.assert_array_equal(compiled("exp", bits, 1, branching, 1)(x), straight)


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan"])
def test_pairs_of_f32_keep_the_bounds_of_f64(name: str, target: str):
    """What is computed in f64 where there is one; the bounds hold without fused multiply-add, too."""
    _, exact, ranges, limit, _ = next(case for case in CASES if case[0] == name)
    near = np.random.default_rng(0).uniform(-2, 2, 1 << 16).astype(np.float32)
    x = np.concatenate([all_over_the_range()[::4], samples(ranges[:2], 32), near])
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
    result = compiled(name, 32, 1, target)(x)[: x.size]
    assert ulps(result, expected) <= limit
    zero = result == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("target", [*RUNNABLE, *SMALL])
@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_arc_functions_keep_the_bounds_where_they_bend(name: str, target: str):
    """The polynomials are largest at the end of their ranges, where results are just above a power of two."""
    _, exact, _, limit, _ = next(case for case in CASES if case[0] == name)
    ends = np.array([0.35, 0.65], np.float32).view(np.uint32)
    x = np.arange(*ends, 11, dtype=np.uint32).view(np.float32)
    x = np.concatenate([x, -x])
    assert ulps(compiled(name, 32, 1, target)(x)[: x.size], exact(x.astype(np.float64))) <= limit


@functools.cache
def all_over_the_range_of_f64() -> Array:
    """Random bits, magnitudes of the size at which functions bend, and the neighbours of one."""
    random = np.random.default_rng(0)
    count = 1 << 16
    patterns = random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    usual = np.ldexp(random.uniform(-2, 2, count), random.integers(-60, 10, count))
    near_one = 1 + random.uniform(-1, 1, count // 4) * 2.0 ** random.integers(-52, 0, count // 4)
    return np.concatenate([patterns, usual, near_one, -near_one])


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_bounds_of_f64_over_the_whole_range(
    case: tuple[str, Callable[[Array], Array], Sequence[float], float, float], target: str
):
    name, exact, _, _, limit = case
    x = all_over_the_range_of_f64()
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.longdouble))
        assert ulps(compiled(name, 64, 1, target)(x)[: x.size], expected) <= limit + (target == "scalar")


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("bits", [32, 64])
def test_limits_are_reached_and_not_exceeded(bits: int, target: str):
    x = np.array([math.inf, 50.0, 20.0, *np.linspace(3, 25, 1013)]).astype(FLOATS[bits])
    for name in ("tanh", "erf"):
        result = compiled(name, bits, 1, target)(np.concatenate([x, -x]))
        np.testing.assert_array_equal(result[:3], 1)
        np.testing.assert_array_equal(result[x.size : x.size + 3], -1)
        assert np.max(np.abs(result)) == 1


EDGES = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    1e-45,
    -1e-45,
    1e-39,
    3e38,
    -3e38,
    200.0,
    -200.0,
    0.5,
    2.0,
]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", [case[0] for case in CASES if case[0] not in ("sin", "cos", "tan")])
def test_edges(name: str, bits: int):
    exact = next(case[1] for case in CASES if case[0] == name)
    x = np.array(EDGES).astype(FLOATS[bits])
    if bits == 64:
        x[7:12] = [5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308]
        x[12:14] = [2000, -2000]
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.longdouble)).astype(x.dtype)
    result = compiled(name, bits, 1, "host")(x)[: x.size]
    np.testing.assert_allclose(result, expected, rtol=1e-6 if bits == 32 else 1e-15, atol=0)
    zero = result == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("bits", [32, 64])
def test_sine_at_zero_infinity_and_nan(bits: int):
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan], dtype=FLOATS[bits])
    for name in ("sin", "tan"):
        result = compiled(name, bits, 1, "host")(x)[:5]
        np.testing.assert_array_equal(result, [0, 0, math.nan, math.nan, math.nan])
        assert np.signbit(result[1])
        assert not np.signbit(result[0])
    np.testing.assert_array_equal(compiled("cos", bits, 1, "host")(x)[:5], [1, 1, math.nan, math.nan, math.nan])


@pytest.mark.parametrize(
    ("bits", "target"),
    [*((bits, target) for bits in FLOATS for target in RUNNABLE), *((32, name) for name in SMALL)],
)
def test_powers(bits: int, target: str):
    """Bases of any size, and close to one, to exponents that take them from the smallest number to the largest."""
    random = np.random.default_rng(0)
    kind, count = FLOATS[bits], COUNT // 2
    powers = 1.02 * np.finfo(kind).maxexp
    base = np.ldexp(random.uniform(1, 2, count), random.integers(-30, 30, count))
    close = 1 + random.uniform(-1, 1, count) * 2.0 ** -random.integers(1, bits // 2 - 2, count)
    x = np.concatenate([base, close]).astype(kind)
    y = (random.uniform(-powers, powers, COUNT) / np.log2(x.astype(np.longdouble))).astype(kind)
    whole = np.rint(random.uniform(-40, 40, COUNT)).astype(kind)
    bits_of_x, bits_of_y = (
        random.integers(0, 2**bits, COUNT, dtype=np.uint64).astype(f"u{bits // 8}").view(kind) for _ in range(2)
    )
    x, y = np.concatenate([x, -x, bits_of_x]), np.concatenate([y, whole, bits_of_y])
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        assert ulps(compiled("powf", bits, 2, target)(x, y)[: x.size], expected) <= 1.5


@pytest.mark.parametrize("bits", [32, 64])
def test_square_roots_without_an_instruction(bits: int):
    """Their digits one by one, rounded as the instruction does it."""
    limits = np.finfo(FLOATS[bits])
    with np.errstate(all="ignore"):
        x = np.concatenate([all_over_the_range_of_f64()[:4096], all_over_the_range()[::64], samples((0, 4), 64)])
        x = x.astype(FLOATS[bits])
        x = np.concatenate([x, x * limits.tiny, [limits.max, limits.tiny, limits.smallest_subnormal]])
        x = x.astype(FLOATS[bits])
        expected = np.sqrt(x)
    result = compiled("sqrt", bits, 1, SMALL[0])(x)[: x.size]
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize(("bits", "target"), [(64, "host"), (32, SMALL[0])])
def test_edges_of_powers(bits: int, target: str):
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1e300, math.inf, -math.inf, math.nan, 1e-310, 2.5])
    if bits == 32:
        values[[10, 14]] = 1e30, 1e-40
    x, y = (array.ravel().astype(FLOATS[bits]) for array in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    result = compiled("powf", bits, 2, target)(x, y)[: x.size]
    np.testing.assert_allclose(result, expected, rtol=1e-14 if bits == 64 else 2e-7)
    zero = result == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize(("bits", "target"), [(32, "host"), (64, "host"), (32, SMALL[0]), (32, SMALL[-1])])
def test_atan2(bits: int, target: str):
    values = [0.0, -0.0, 1, -1, 2, -2.5, 1e-30, -1e30, math.inf, -math.inf, math.nan, 3, -0.1, 1e20, 7, 0.3]
    y, x = (array.ravel().astype(FLOATS[bits]) for array in np.meshgrid(values, values))
    expected = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    result = compiled("atan2", bits, 2, target)(y, x)
    np.testing.assert_allclose(result, expected.astype(x.dtype), rtol=3e-7 if bits == 32 else 5e-16)
    zero = result == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("machine", [RUNNABLE[-1], *SMALL])
def test_multiply_and_add_round_once(machine: str):
    """Sums that cancel, and those that lie half way between two numbers but for what the product has behind them."""
    random, count = np.random.default_rng(0), 1 << 14
    x, y = (random.standard_normal(count).astype(np.float32) * 2.0 ** random.integers(-9, 9, count) for _ in range(2))
    z = -x * y * (1 + random.standard_normal(count) * 2.0 ** -random.integers(1, 40, count))
    x[::3] = random.integers(1, 1 << 12, x[::3].size)
    y[::3] = random.integers(0, 1 << 12, x[::3].size) * 2 + 1
    z[::3] = 2.0 ** random.integers(24, 60, x[::3].size)
    x, y, z = (array.astype(np.float32) for array in (x, y, z))
    # The bits of product and sum are few enough for the wide float.
    expected = (x.astype(np.longdouble) * y + z).astype(np.float32)
    np.testing.assert_array_equal(compiled("fma", 32, 3, machine)(x, y, z)[:count], expected)


def test_rounding_and_classes():
    x = np.array(
        [0.5, 1.5, -0.5, 2.5, 0.49999997, -0.49999997, 8388609.0, -2.5, 1e30, math.inf, math.nan, 3.7] + [0] * 4
    )
    x = x.astype(np.float32)
    away = np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)
    np.testing.assert_array_equal(compiled("round", 32, 1, "host")(x), away.astype(np.float32))
    np.testing.assert_array_equal(compiled("roundeven", 32, 1, "host")(x), np.rint(x))
    np.testing.assert_array_equal(compiled("trunc", 32, 1, RUNNABLE[-1])(x), np.trunc(x))


@pytest.mark.parametrize("name", sorted(MATH))
@pytest.mark.parametrize("target_name", ["avx2", "avx512", "neon", "scalar", "cortex-m4"])
def test_no_function_calls_a_library(name: str, target_name: str):
    """Build every function of the table for every target, in the floats that the target has."""
    from glow_mlir.codegen.builder.types import i32

    target = target_named(target_name)
    operands = {"atan2": 2, "copysign": 2, "powf": 2, "remf": 2, "clampf": 3, "fma": 3}.get(name, 1)
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr]) as (b, (p,)):
        for element in (f32, f64)[: 2 if target.doubles else 1]:
            type_ = vector(element, target.vector_width(element))
            integer = vector(i32, target.vector_width(element))
            if name in ("absi", "ctpop"):
                p.store(MATH[name](b, p.load(integer)))
            elif name == "fpowi":
                p.store(MATH[name](b, p.load(type_), p.load(integer)))
            else:
                p.store(MATH[name](b, *[p.load(type_) for _ in range(operands)]))
    assert undefined_symbols(compile_text(emit_module(flattened(module.module)), target)) == ()

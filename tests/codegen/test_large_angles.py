"""Sine, cosine and tangent of angles of any magnitude."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from exact_angles import exactly, near_multiples, pi
from execute import Case, compile_module, module_of, runnable_targets, sample
from scalar_functions import FLOATS, RUNNABLE, SMALL, compiled, ulps
from xdsl.dialects import math

from glow_mlir.codegen.math.large_angles import LARGE, LARGE_OF_PAIRS, TABLE_BITS, two_over_pi
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_math import CosOp, SinOp, TanOp
from glow_mlir.interpreter.scalar import FUNCTIONS

BOUNDS = {("sin", 32): 0.6, ("cos", 32): 0.6, ("tan", 32): 0.6, ("sin", 64): 2.5, ("cos", 64): 2.5, ("tan", 64): 3.5}
"""The bounds of docs/floating-point.md; 1 more without fused multiply-add."""

WORST = {32: 16367173 * 2.0**72, 64: 6381956970095103 * 2.0**797}
"""The floats that come nearest to a multiple of pi/2 for their size."""


@functools.cache
def angles(bits: int) -> np.ndarray:
    """Near multiples of pi/2, powers of two, the ends of the range, and where the ways of reduction meet."""
    kind = FLOATS[bits]
    limits = np.finfo(kind)
    powers = np.ldexp(kind(1), np.arange(limits.minexp - limits.nmant, limits.maxexp, 7 if bits == 64 else 1))
    edges = np.array([limits.max, limits.tiny, limits.smallest_subnormal, WORST[bits], LARGE], kind)
    seam = np.nextafter(kind(LARGE), np.array([0, np.inf], kind))
    positive = np.concatenate([near_multiples(kind, 4 if bits == 32 else 1), powers, edges, seam])
    return np.concatenate([positive, -positive])


@functools.cache
def exact_values(name: str, bits: int) -> np.ndarray:
    return exactly(name, angles(bits))


@functools.cache
def random_angles(bits: int) -> np.ndarray:
    """A million random finite bit patterns."""
    random = np.random.default_rng(0)
    x = random.integers(0, 2**bits, 1 << 20, dtype=np.uint64).astype(f"u{bits // 8}").view(FLOATS[bits])
    return x[np.isfinite(x)]


def test_the_table_is_the_quotient_of_two_and_pi():
    product = two_over_pi(TABLE_BITS) * pi(TABLE_BITS + 64)
    missing = (2 << 2 * TABLE_BITS + 64) - product
    # Less than one unit of the table's last place, times pi, is lost.
    assert 0 < missing < 4 << TABLE_BITS + 64


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize(("name", "bits"), BOUNDS)
def test_bounds_at_the_hardest_angles(name: str, bits: int, target: str):
    x = angles(bits)
    result = compiled(name, bits, 1, target)(x)[: x.size]
    assert ulps(result, exact_values(name, bits)) <= BOUNDS[name, bits] + (target == "scalar")
    if name != "tan":
        assert np.max(np.abs(result)) <= 1


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_bounds_at_the_hardest_angles_without_f64(name: str, target: str):
    x = np.concatenate([angles(32), np.nextafter(np.float32(LARGE_OF_PAIRS), np.array([0, np.inf], np.float32))])
    exact = np.concatenate([exact_values(name, 32), exactly(name, x[-2:])])
    assert ulps(compiled(name, 32, 1, target)(x)[: x.size], exact) <= BOUNDS[name, 32]


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize(("name", "bits"), BOUNDS)
def test_bounds_at_random_angles(name: str, bits: int, target: str):
    """The C library is right to 0.6 units in the types that are wider; against exact values, see above."""
    x = random_angles(bits)
    wide: Any = np.float64 if bits == 32 else np.longdouble
    result, exact = compiled(name, bits, 1, target)(x)[: x.size], getattr(np, name)(x.astype(wide))
    assert ulps(result, exact) <= BOUNDS[name, bits] + (target == "scalar")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("name", "op"), [("sin", math.SinOp), ("cos", math.CosOp), ("tan", math.TanOp)])
def test_the_interpreter_is_right_at_all_angles(name: str, op: type[math.SinOp], bits: int):
    x, exact = angles(bits), exact_values(name, bits)
    # At the worst angle of f64 numpy's cosine, the C library's, is 8 units off.
    usual = np.abs(x) != (WORST[64] if bits == 64 else np.inf)
    assert ulps(FUNCTIONS[op](x[usual]), exact[usual]) <= 0.6


@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_one_large_angle_leaves_the_bits_of_its_neighbours(name: str, lanes: int):
    for bits, kind in FLOATS.items():
        x = np.random.default_rng(0).uniform(-100, 100, 1024).astype(kind)
        alone = compiled(name, bits, 1, "host", lanes)(x)
        mixed = x.copy()
        mixed[::5] = kind(1e30)
        result = compiled(name, bits, 1, "host", lanes)(mixed)
        np.testing.assert_array_equal(np.delete(result, np.s_[::5]), np.delete(alone, np.s_[::5]))
        assert ulps(result[::5], exactly(name, mixed[:1]).repeat(result[::5].size)) <= BOUNDS[name, bits]


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("operator", [SinOp, CosOp, TanOp])
def test_angles_keep_their_bits_beside_large_ones(operator: type[HighOp], dtype: str, target: str) -> None:
    """What an angle gives does not depend on its neighbours in a vector, one of which goes another way."""
    module, _ = module_of(Case(operator, sample((500,), dtype)))
    program = compile_module(module, target)
    random = np.random.default_rng(0)
    angles = (random.standard_normal(500) * 100).astype(dtype)
    others = angles.copy()
    replaced = random.random(500) < 0.2
    others[replaced] = random.choice(np.array([1e30, -3e7, np.inf, np.nan], dtype), replaced.sum())
    (before,), (after,) = (program.run({"in0": x}).values() for x in (angles, others))
    assert before[~replaced].tobytes() == after[~replaced].tobytes()

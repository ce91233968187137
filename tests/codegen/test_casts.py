"""Casts between numbers, at the ends of every type: truncation, saturation, and one rounding to nearest even."""

from __future__ import annotations

import math

import numpy as np
import pytest
from execute import Case, compile_module, module_of, runnable_targets

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.interpreter.machine import run_function

FLOATS = {"float16": 11, "float32": 24, "float64": 53}
"""Floats, and the bits of their significands."""
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def floats(name: str) -> np.ndarray:
    """Random bits, random magnitudes, and what lies around the ends of integer types."""
    kind, random = np.dtype(name).type, np.random.default_rng(0)
    bits = 8 * np.dtype(name).itemsize
    with np.errstate(all="ignore"):
        ends = np.array([s * 2.0**p for p in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1)]).astype(name)
        around = [np.nextafter(ends, kind(0)), np.nextafter(ends, ends * kind(2)), ends - 1, ends + 1, ends - kind(0.5)]
        patterns = random.integers(0, 2**bits, 512, dtype=np.uint64).astype(f"u{bits // 8}").view(name)
        spread = (random.uniform(-1, 1, 512) * 2.0 ** random.integers(0, 66, 512)).astype(name)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 0.99, -0.99], name)
    return np.concatenate([ends, *around, patterns, spread, special])


def integers(name: str) -> np.ndarray:
    """Random ones, the ends, and halves between neighbouring floats and what is next to them."""
    info, random = np.iinfo(name), np.random.default_rng(0)
    values = [int(info.min), int(info.min) + 1, int(info.max), int(info.max) - 1, 0, 1]
    values += random.integers(info.min, info.max, 512, name, endpoint=True).tolist()
    for digits in FLOATS.values():
        for power in range(digits, 64):
            halfway = [2**power + odd * 2 ** (power - digits) for odd in (1, 3)]
            values += [sign * (half + more) for half in halfway for more in (-1, 0, 1) for sign in (1, -1)]
    return np.array([value for value in values if info.min <= value <= info.max], name)


def saturated(value: float, name: str) -> int:
    """A float towards zero, within an integer type; 0 for NaN."""
    info = np.iinfo(name)
    if not math.isfinite(value):
        return 0 if math.isnan(value) else int(info.max if value > 0 else info.min)
    return min(max(int(value), int(info.min)), int(info.max))


def rounded(value: int, name: str) -> float:
    """An integer as the nearest float, ties to even."""
    magnitude, excess = abs(value), max(0, abs(value).bit_length() - FLOATS[name])
    kept, lost = magnitude >> excess, magnitude & ((1 << excess) - 1)
    up = 2 * lost > (1 << excess) or (2 * lost == (1 << excess) and kept % 2 == 1 and excess > 0)
    result = math.ldexp(kept + up, excess)
    if result > float(np.finfo(name).max):
        result = math.inf
    return math.copysign(result, value)


def check(arrays: list[np.ndarray], to: str, wanted: list[np.ndarray], target: str) -> None:
    """Compare casts, in the interpreter and as machine code, with what they should give."""
    module, inputs = module_of(*(Case(CastOp, array, to=ELEMENT_TYPES[to]) for array in arrays))
    for results in (run_function(module.clone(), inputs), compile_module(module, target).run(inputs)):
        for number, exact in enumerate(wanted):
            np.testing.assert_array_equal(results[f"out{number}"], exact)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("to", INTEGERS)
def test_floats_become_integers(to: str, target: str) -> None:
    arrays = [floats(name) for name in FLOATS]
    check(arrays, to, [np.array([saturated(float(x), to) for x in array], to) for array in arrays], target)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("to", FLOATS)
def test_integers_become_floats(to: str, target: str) -> None:
    arrays = [integers(name) for name in INTEGERS]
    check(arrays, to, [np.array([rounded(int(x), to) for x in array], to) for array in arrays], target)

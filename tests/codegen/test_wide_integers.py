"""Integers of 64 bits, divided and converted on machines that have no instructions for that."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machines import target_named
from scalar_functions import RUNNABLE, SMALL
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import bf16, f32, f64, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.math.half import narrow
from glow_mlir.codegen.math.long_division import quotient, remainder, signed_quotient, signed_remainder
from glow_mlir.codegen.math.wide_integers import to_float, to_integer_saturating, to_odd_f32
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.runtime.loader import Library

LANES = 2

Array = np.ndarray[Any, Any]


def computed(
    target_name: str, body: Callable[..., Value], inputs: list[Array], element: Attribute, like: np.dtype[Any]
) -> Array:
    """What a body gives of arrays, in vectors of two lanes; `element` is that of the inputs."""
    target = target_named(target_name)
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr, *[ptr] * len(inputs)]) as (b, (out, *pointers)):
        with b.loop(0, inputs[0].size, LANES) as i:
            result = body(b, *(pointer.at(i, element).load(vector(element, LANES)) for pointer in pointers))
            out.at(i, result.info.element).store(result)
    data = compile_text(emit_module(flattened(module.module)), target)
    assert undefined_symbols(data) == ()
    found = np.empty(inputs[0].size, like)
    call = Library(data).function("f", [ctypes.c_void_p] * (1 + len(inputs)))
    call(found.ctypes.data, *(array.ctypes.data for array in inputs))
    return found


def integers(count: int = 1 << 12) -> Array:
    """Signed integers of all lengths, the ends of the range, and those around the middles between floats."""
    random = np.random.default_rng(0)
    any_length = random.integers(-(2**63), 2**63, count) >> random.integers(0, 63, count)
    tops, lengths = random.integers(1 << 7, 1 << 25, count), random.integers(0, 38, count)
    middles = ((2 * tops + 1) << lengths) + random.integers(-1, 2, count)
    ends = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 2**32 - 1, 2**32, -(2**32), 2**24 + 1], np.int64)
    return np.concatenate([any_length, middles, -middles, ends])


def rounded(number: int, bits: int) -> float:
    """An integer as a float of so many bits, rounded to the nearest, ties to even."""
    cut = max(0, abs(number).bit_length() - bits)
    size, rest = divmod(abs(number), 1 << cut)
    half = (1 << cut) // 2
    size += cut > 0 and (rest > half or (rest == half and size % 2 == 1))
    return float(np.copysign(float(size << cut), number))


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("signed", [True, False])
def test_integers_become_floats_with_one_rounding(signed: bool, target: str):
    x = integers()
    numbers = [int(value) for value in (x if signed else x.view(np.uint64))]
    for element, kind, bits in ((f32, np.float32, 24), (f64, np.float64, 53)):

        def convert(b: Builder, value: Value, element: Attribute = element) -> Value:
            return to_float(b, value, element, signed)

        expected = np.array([rounded(number, bits) for number in numbers])
        np.testing.assert_array_equal(computed(target, convert, [x], i64, np.dtype(kind)), expected)

    def brain(b: Builder, value: Value) -> Value:
        return narrow(b, to_odd_f32(b, value, signed), bf16)

    patterns = computed(target, brain, [x], i64, np.dtype(np.uint16)).astype(np.uint32) << 16
    np.testing.assert_array_equal(patterns.view(np.float32), [rounded(number, 8) for number in numbers])


@pytest.mark.parametrize("target", [RUNNABLE[0], *SMALL])
@pytest.mark.parametrize("element", [f32, f64], ids=str)
@pytest.mark.parametrize("signed", [True, False])
def test_floats_become_integers_within_the_range(signed: bool, element: Attribute, target: str):
    kind = np.float32 if element == f32 else np.float64
    random = np.random.default_rng(0)
    ends = np.array([0, -0.0, 0.99, -0.99, 2.0**63, -(2.0**63), 2.0**64, np.inf, -np.inf, np.nan, 1e30, -1e30])
    ends = np.concatenate([ends, np.nextafter(ends.astype(kind), kind(0)), np.nextafter(ends.astype(kind), kind(1))])
    x = np.concatenate([random.standard_normal(1 << 12) * 2.0 ** random.integers(-2, 66, 1 << 12), ends]).astype(kind)
    low, high = (-(2**63), 2**63 - 1) if signed else (0, 2**64 - 1)
    finite = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
    expected = [min(max(int(value), low), high) for value in finite.tolist()]
    like = np.dtype(np.int64 if signed else np.uint64)

    def convert(b: Builder, value: Value) -> Value:
        return to_integer_saturating(b, value, i64, signed)

    result = computed(target, convert, [x], element, like)
    np.testing.assert_array_equal(result, np.array(expected, like))


@pytest.mark.parametrize("target", SMALL)
def test_quotients_and_remainders(target: str):
    """Of dividends and divisors of all lengths; the short ones are divided by instructions."""
    x = integers()
    y = np.random.default_rng(1).permutation(x)
    y = np.where((y == 0) | (y == -1), 7, y)
    for signed, operations in (
        (True, (signed_quotient, signed_remainder)),
        (False, (quotient, remainder)),
    ):
        pairs = [(int(a), int(c)) for a, c in zip(*((v if signed else v.view(np.uint64)) for v in (x, y)), strict=True)]
        kind = np.dtype(np.int64 if signed else np.uint64)
        sizes = [(abs(a) // abs(c), abs(a) % abs(c), a, c) for a, c in pairs]
        quotients = [size if (a < 0) == (c < 0) else -size for size, _, a, c in sizes]
        remainders = [-rest if a < 0 else rest for _, rest, a, _ in sizes]
        for operation, expected in zip(operations, (quotients, remainders), strict=True):
            np.testing.assert_array_equal(computed(target, operation, [x, y], i64, kind), np.array(expected, kind))

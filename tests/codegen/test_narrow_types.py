"""Floats of 8 bits and less, and integers of 2 and 4 bits: every code, every f16, and f32 and f64 around every tie."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from execute import Case, compile_module, module_of, runnable_targets
from xdsl.dialects.builtin import Float16Type, ReducedPrecisionFloatType, f32, f64, i1, i8

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.element_types import ELEMENT_TYPES, ui8
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp, CastOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.narrow_floats import limits
from glow_mlir.interpreter.machine import run_function
from glow_mlir.support.dtypes import FLOAT4, NARROW_FLOATS, NARROW_INTEGERS, POWERS_OF_TWO, named_dtype

FLOATS = sorted(NARROW_FLOATS)
f16 = Float16Type()


def codes(name: str) -> np.ndarray:
    """Every byte as an element of a type; of integers, also those whose upper bits say nothing."""
    return (np.arange(256, dtype=np.uint8) & (15 if name == FLOAT4 else 255)).view(named_dtype(name))


@cache
def around_ties(name: str) -> np.ndarray:
    """All numbers of a type as f64, the middles between them, what lies next to these, and what is beyond."""
    known = codes(name).astype(np.float64)
    known = np.unique(np.abs(known[np.isfinite(known)]))
    ties = np.concatenate([(known[1:] + known[:-1]) / 2, known[-1:] * [1 + 2.0**-5, 1 + 2.0**-4, 1.25, 1.5, 2]])
    near = np.concatenate([known, ties, ties * (1 + 2.0**-23), ties * (1 - 2.0**-23), [1e-40, 1e-30, 1e30, np.inf]])
    return np.concatenate([near, -near, [np.nan]])


def as_single(numbers: np.ndarray) -> np.ndarray:
    """Numbers as f32."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def nearest(name: str, numbers: np.ndarray, saturate: bool) -> np.ndarray:
    """The codes of numbers, each computed in exact arithmetic."""
    element = cast("ReducedPrecisionFloatType", ELEMENT_TYPES[name])
    low, high = limits(element)
    found: list[int] = []
    for number in numbers.astype(np.float64).tolist():
        value = number
        if saturate and value == value:
            value = min(max(value, low), high)
        if name == FLOAT4 and value != value:
            value = 0.0
        if name == POWERS_OF_TWO and value < low:
            value = float("nan")
        found.append(element.encode_bits(value))
    return np.array(found, np.uint8)


def bits(array: np.ndarray) -> np.ndarray:
    """The bits of elements, where all NaN are one."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(array.astype(np.float64)), 0xFF, array.view(f"u{array.dtype.itemsize}"))


def run_both(cases: list[Case], target: str) -> list[np.ndarray]:
    """The results of the interpreter, which those of machine code equal bit by bit."""
    module, inputs = module_of(*cases)
    wanted, found = run_function(module.clone(), inputs), compile_module(module, target).run(inputs)
    for position, case in enumerate(cases):
        name = f"out{position}"
        np.testing.assert_array_equal(
            bits(found[name]), bits(wanted[name]), err_msg=f"{case.operator} {case.properties}"
        )
    return [wanted[f"out{position}"] for position in range(len(cases))]


@pytest.mark.parametrize("target", runnable_targets())
def test_numbers_are_rounded_once(target: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    cases: list[Case] = []
    expected: list[np.ndarray] = []
    for name in FLOATS:
        ties, to = around_ties(name), ELEMENT_TYPES[name]
        single = as_single(ties)
        tight = np.concatenate([ties, ties * (1 + 2.0**-50), ties * (1 - 2.0**-50)])
        for numbers, saturate in ((single, False), (single, True), (tight, False)):
            cases.append(Case(CastOp, numbers, to=to, saturate=saturate))
            expected.append(nearest(name, numbers, saturate))
        cases.append(Case(CastOp, halves, to=to, saturate=False))
        expected.append(nearest(name, halves, False) if target == "scalar" else np.empty(0, np.uint8))
    for found, case, exact in zip(run_both(cases, target), cases, expected, strict=True):
        if exact.size:
            wanted = exact.view(found.dtype)
            np.testing.assert_array_equal(bits(found), bits(wanted), err_msg=str(case.properties))


@pytest.mark.parametrize("target", runnable_targets())
def test_every_code_is_converted_exactly(target: str) -> None:
    names = [*FLOATS, *NARROW_INTEGERS]
    cases = [Case(CastOp, codes(name), to=to) for name in names for to in (f32, f64, f16, i8, i1)]
    results = iter(run_both(cases, target))
    for name in names:
        numbers = codes(name).astype(np.float64)
        for dtype in (np.float32, np.float64, np.float16):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(next(results), numbers.astype(dtype), err_msg=name)
        whole = np.nan_to_num(np.trunc(numbers), posinf=1e9, neginf=-1e9).clip(-128, 127)
        np.testing.assert_array_equal(next(results), whole.astype(np.int8), err_msg=name)
        np.testing.assert_array_equal(next(results), numbers != 0, err_msg=name)


def test_powers_of_two_round_up_and_down() -> None:
    least = 2.0**-127
    x = np.array([0, least / 2, least, 1.25 * least, 2 * least, 0.75, 1, 1.1, 3, 2.0**127, 1.1 * 2.0**127, np.inf])
    to = ELEMENT_TYPES[POWERS_OF_TWO]
    options: list[dict[str, Any]] = [
        {"round_mode": mode, "saturate": saturate} for mode in ("up", "down") for saturate in (True, False)
    ]
    cases = [Case(CastOp, x.astype(kind), to=to, **given) for kind in (np.float32, np.float64) for given in options]
    up = [least, least, least, 2 * least, 2 * least, 1, 1, 2, 4, 2.0**127, 2.0**127, 2.0**127]
    down = [least, least, least, least, 2 * least, 0.5, 1, 1, 2, 2.0**127, 2.0**127, 2.0**127]
    beyond = {"up": [0, 1, 10, 11], "down": [0, 1, 11]}
    for case, found in zip(cases, run_both(cases, "host"), strict=True):
        exact = np.array(up if case.properties["round_mode"] == "up" else down)
        if not case.properties["saturate"]:
            exact[beyond[case.properties["round_mode"]]] = np.nan
        np.testing.assert_array_equal(found.astype(np.float64), exact, err_msg=str(case.properties))


def test_integers_wrap_and_floats_do_so_as_i32() -> None:
    whole = np.array([-300, -9, -8, -1, 0, 1, 7, 8, 15, 16, 255], np.int64)
    real = np.array([-9.9, -2.5, -0.5, 0.5, 3.9, 8, 1e10, np.nan, -np.inf], np.float32)
    kept = np.array([-9, -2, 0, 0, 3, 8, 2**31 - 1, 0, -(2**31)])
    cases = [Case(CastOp, x, to=ELEMENT_TYPES[name]) for name in NARROW_INTEGERS for x in (whole, real, whole != 0)]
    results = iter(run_both(cases, "host"))
    for width in NARROW_INTEGERS.values():
        for exact in (whole, kept, whole != 0):
            np.testing.assert_array_equal(next(results).view(np.uint8), exact.astype(np.int64) & ((1 << width) - 1))


def test_narrow_types_become_each_other() -> None:
    e5m2, e4m3, power = (ELEMENT_TYPES[name] for name in ("float8_e5m2", "float8_e4m3fn", POWERS_OF_TWO))
    cases: list[tuple[Case, np.ndarray]] = [
        (Case(CastOp, codes("float8_e5m2"), to=e4m3), nearest("float8_e4m3fn", codes("float8_e5m2"), True)),
        (Case(CastOp, codes("int4"), to=e5m2), nearest("float8_e5m2", codes("int4"), True)),
        (Case(CastOp, codes(FLOAT4), to=power), nearest(POWERS_OF_TWO, codes(FLOAT4), True)),
        (Case(CastOp, codes("int4"), to=ELEMENT_TYPES["uint2"]), np.arange(256, dtype=np.uint8) & 3),
        (Case(CastOp, codes("int2"), to=ELEMENT_TYPES["int4"]), codes("int2").astype(np.int8).view(np.uint8) & 15),
        (Case(BitCastOp, codes("float8_e5m2"), to=ui8), np.arange(256, dtype=np.uint8)),
        (Case(BitCastOp, codes("uint8"), to=e5m2), np.arange(256, dtype=np.uint8)),
        (Case(CastOp, np.array([448, 2**24 + 1, -(2**62)]), to=e4m3), np.array([0x7E, 0x7E, 0xFE], np.uint8)),
    ]
    for found, (_, exact) in zip(run_both([case for case, _ in cases], "host"), cases, strict=True):
        np.testing.assert_array_equal(bits(found), bits(exact.view(found.dtype)))


@pytest.mark.parametrize("name", [*FLOATS, *NARROW_INTEGERS])
def test_elements_are_moved(name: str) -> None:
    x = codes(name).reshape(16, 16)
    one = scalar_attribute(named_dtype(name).type(1), ELEMENT_TYPES[name])
    cases = [
        Case(TransposeOp, x, permutation=(1, 0)),
        Case(ConcatOp, [x, x[:3]], axis=0),
        Case(PadOp, x, pads=(1, 0, 0, 2)),
        Case(SplatOp, value=one, shape=(2, 3)),
    ]
    transposed, joined, _, filled = run_both(cases, "host")
    np.testing.assert_array_equal(transposed.view(np.uint8), x.view(np.uint8).T)
    np.testing.assert_array_equal(joined.view(np.uint8)[16:], x.view(np.uint8)[:3])
    np.testing.assert_array_equal(filled.astype(np.float32), np.ones((2, 3)))

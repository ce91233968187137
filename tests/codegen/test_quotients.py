"""Quotients by a number have the bits of a division, whatever is divided: any float, by any float."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from execute import compile_module, runnable_targets

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

DIVISORS = (3.0, 0.3, -7.0, 255.0, 6.0, 1.9999999, -0.1, 9.1e-6, 12.0, 2.0, 0.25, -1.0, 1e30, 1e-30, 3e38, 1.2e-38)
FAR = (2.0**127, 2.0**-126, 1e-40, np.inf, -np.inf, 0.0, -0.0, np.nan)
"""Divisors whose reciprocals are denormal, infinite or no numbers."""
BOUNDS = (2.0**60, 2.0**-60, 1.1 * 2.0**59, 1.9 * 2.0**-60)
"""Divisors near the ends of the range for which the reciprocal of an f32 that is known at run time only is taken."""
KINDS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def hard_divisors(count: int) -> list[float]:
    """Numbers of f32 whose reciprocals lie next to the middle of two."""
    whole = np.arange(1 << 23, 1 << 24, 97, dtype=np.int64)
    distance = np.abs(((1 << 47) % whole) / whole - 0.5)
    return (whole[np.argsort(distance)[:count]] * 2.0**-23).tolist()


def numbers(kind: np.dtype, count: int) -> np.ndarray:
    """Random bits, ordinary and tiny numbers, zeros, infinities and the ends of the range."""
    random, width = np.random.default_rng(0), 8 * kind.itemsize
    unsigned = f"u{kind.itemsize}"
    if width == 16:
        return np.arange(1 << 16).astype(np.uint16).view(kind)
    mantissa = {32: 23, 64: 52}[width]
    patterns = random.integers(0, 2**width, count, dtype=np.uint64).astype(unsigned).view(kind)
    tiny = random.integers(0, 2 ** (mantissa + 2), count, dtype=np.uint64).astype(unsigned).view(kind)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(kind).max, np.finfo(kind).tiny]
    few = np.where(random.random(count) < 0.1, random.choice(edges, count), random.normal(size=count)).astype(kind)
    return np.concatenate([patterns, random.normal(size=count).astype(kind), tiny, few])


def by_machine(
    x: np.ndarray, divisors: Sequence[np.ndarray], element: str, target: str, are_inputs: bool
) -> list[np.ndarray]:
    """`x` by each divisor, each as an operator of its own; divisors are constants, or inputs of the function."""
    lines: list[str] = []
    inputs: dict[str, np.ndarray] = {"f.x": x}
    for number, divisor in enumerate(divisors):
        value = f"{float(divisor):.17e}" if np.isfinite(divisor) else str(float(divisor))
        if are_inputs:
            inputs[f"f.c{number}"] = divisor
        else:
            lines.append(f"%c{number} = glow_high.splat {{value = {value} : {element}}} : tensor<{element}>")
        lines.append(f"%q{number} = glow_high.div %x, %c{number} : tensor<{x.size}x{element}>")
    results = ", ".join([f"tensor<{x.size}x{element}>"] * len(divisors))
    names = ", ".join(f"%q{number}" for number in range(len(divisors)))
    body = "\n".join(lines)
    names_of_divisors = [name.removeprefix("f.") for name in inputs if name != "f.x"]
    given = ", ".join(
        [f"%x: tensor<{x.size}x{element}>", *(f"%{name}: tensor<{element}>" for name in names_of_divisors)]
    )
    text = f"glow_high.func @f({given}) -> ({results}) {{\n{body}\nglow_high.return {names}\n}}"
    found = compile_module(parse_module(text, new_context()), target).run(inputs)
    return [found[f"f.result{number or ''}"] for number in range(len(divisors))]


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("element", KINDS)
@pytest.mark.parametrize("are_inputs", [False, True], ids=["constants", "inputs"])
def test_quotients_are_rounded_once(are_inputs: bool, element: str, target: str) -> None:
    kind = np.dtype(numpy_dtype(ELEMENT_TYPES[KINDS[element]]))
    x = numbers(kind, 20_001)
    with np.errstate(all="ignore"):
        divisors = [np.array(value).astype(kind) for value in (*DIVISORS, *FAR, *BOUNDS, *hard_divisors(8))]
        found = by_machine(x, divisors, element, target, are_inputs)
        for divisor, quotients in zip(divisors, found, strict=True):
            wide = np.float32 if kind.itemsize == 2 else kind
            exact = (x.astype(wide) / divisor.astype(wide)).astype(kind)
            wanted = exact.astype(np.float64)
            np.testing.assert_array_equal(quotients.astype(np.float64), wanted, err_msg=str(divisor))
            is_number = ~np.isnan(wanted)
            signs = [np.signbit(array.astype(np.float64))[is_number] for array in (quotients, exact)]
            np.testing.assert_array_equal(*signs, err_msg=str(divisor))

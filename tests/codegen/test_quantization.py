"""Codes in machine code: bit for bit those of the interpreter, on every target that this machine can run."""

from __future__ import annotations

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets
from xdsl.dialects.builtin import f32, i8, i32

from glow_mlir import InferenceSession
from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.quantization import (
    DequantizeOp,
    IntegerRescaleOp,
    LookupOp,
    QuantizeOp,
    RescaleOp,
)
from glow_mlir.dialects.quant import uniform
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

COUNT = 100_000
SPECIAL = [0, 1, -1, 127, 128, -128, -129, 2**24, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31)]
"""Sums at the ends of ranges: of codes, of what f32 holds, of i32."""
RANDOM = np.random.default_rng(5)


def sums() -> np.ndarray:
    """Sums of products of all magnitudes, with those of `SPECIAL` among them."""
    wide = RANDOM.integers(-(2**31), 2**31, COUNT)
    found = (wide >> RANDOM.integers(0, 31, COUNT)).astype(np.int32)
    found[: len(SPECIAL)] = SPECIAL
    return found


@pytest.mark.parametrize("target", [*runnable_targets(), "sse2"])
def test_rescaling_by_floats_is_exact(target: str) -> None:
    x = sums()
    scale = np.exp2(RANDOM.uniform(-32, 2, COUNT)).astype(np.float32)
    # Half of the products and sums lie half-way between two codes.
    scale[::2] = np.exp2(RANDOM.integers(-12, 0, COUNT // 2)).astype(np.float32)
    offset = RANDOM.normal(scale=30, size=COUNT).astype(np.float32)
    offset[::4] = np.round(offset[::4]) + np.float32(0.5)
    offset[:3] = np.nan, np.inf, -np.inf
    cases = [Case(RescaleOp, x, scale, offset, to=kind) for kind in (i8, ui8, uniform(ui8, f32, 0.25, 131))]
    check_all([*cases, Case(RescaleOp, x, scale, to=uniform(i8, f32, 0.5, -128))], target, 0.0)


@pytest.mark.parametrize("target", runnable_targets())
def test_rescaling_by_integers_is_exact(target: str) -> None:
    x, shift = sums(), RANDOM.integers(1, 63, COUNT).astype(np.int32)
    multiplier = RANDOM.integers(-(2**31), 2**31, COUNT).astype(np.int32)
    multiplier[:2] = -(2**31), 2**31 - 1
    offset = sums()[::-1].copy()
    for rounding in ("once", "twice", "twice_right"):
        cases = [
            Case(IntegerRescaleOp, x, multiplier, shift, offset, to=kind, rounding=rounding)
            for kind in (i8, uniform(ui8, f32, 1.0, 7), i32)
        ]
        check_all([*cases, Case(IntegerRescaleOp, x, multiplier, shift, to=i8, rounding=rounding)], target, 0.0)


@pytest.mark.parametrize("target", runnable_targets())
def test_quantization_and_its_inverse_are_exact(target: str) -> None:
    x = (RANDOM.normal(size=4096) * np.exp2(RANDOM.integers(-20, 12, 4096))).astype(np.float32)
    x[:6] = np.nan, np.inf, -np.inf, 0.125, 0.375, -0.0
    scale, zero = np.exp2(RANDOM.uniform(-9, 9, 4096)).astype(np.float32), RANDOM.integers(-128, 128, 4096, np.int8)
    codes = RANDOM.integers(-128, 128, 4096, np.int8)
    check_all(
        [
            Case(QuantizeOp, x, None, None, to=uniform(ui8, f32, 0.25, 131)),
            Case(QuantizeOp, x, scale, zero, to=i8),
            Case(QuantizeOp, x, np.array(0.25, np.float32), np.array(-77, np.int8), to=i8),
            Case(QuantizeOp, x, np.array(0.3, np.float32), np.array(200, np.uint8), to=ui8),
            Case(QuantizeOp, x.astype(np.float16), scale[:1], to=ui8),
            Case(DequantizeOp, codes, scale, zero),
            Case(DequantizeOp, codes, scale.astype(np.float16)),
            Case(DequantizeOp, sums()[:4096], scale),
        ],
        target,
        0.0,
    )


@pytest.mark.parametrize("target", runnable_targets())
def test_tables_are_exact(target: str) -> None:
    codes, table = RANDOM.integers(-128, 128, 700, np.int8), RANDOM.integers(0, 256, 256).astype(np.uint8)
    codes[:2] = -128, 127
    image = codes[:630].view(np.uint8).reshape(7, 9, 10)
    check_all([Case(LookupOp, codes, table), Case(LookupOp, image, table.view(np.int8), constants=[1])], target, 0.0)


POOLED = """
glow_high.func @main(%x: tensor<1x9x9x20xui8>) -> tensor<1x4x4x20xf32> {
  %p = glow_high.max_pool %x {kernel_shape = [3, 3], strides = [2, 2]} : tensor<1x4x4x20xui8>
  %q = glow_high.storage_cast %p {to = !quant.uniform<u8:f32, 0.5>} : tensor<1x4x4x20x!quant.uniform<u8:f32, 0.5>>
  %y = glow_high.dequantize %q : tensor<1x4x4x20xf32>
  glow_high.return %y
}
"""


@pytest.mark.parametrize("target", runnable_targets())
def test_pools_of_codes_may_end_as_numbers(target: str) -> None:
    """The largest code is taken as a code, whatever the epilogue makes of it."""
    module = parse_module(POOLED, new_context())
    inputs = {"x": RANDOM.integers(0, 256, (1, 9, 9, 20), np.uint8)}
    (expected,) = InferenceSession(module, backend="interpreter").run(None, inputs)
    (found,) = InferenceSession(module, target=target, cache=False).run(None, inputs)
    np.testing.assert_array_equal(found, expected)


MEAN = """
glow_high.constant @scale : tensor<f32> {value = dense<0.0625> : tensor<f32>}
glow_high.func @main(%x: tensor<1x5x6x20xf32>) -> tensor<1x4x5x20xi8> {
  %scale = glow_high.get @scale : tensor<f32>
  %m = glow_high.avg_pool %x {kernel_shape = [2, 2]} : tensor<1x4x5x20xf32>
  %y = glow_high.quantize %m, %scale {to = i8} : tensor<1x4x5x20xi8>
  glow_high.return %y
}
"""


@pytest.mark.parametrize("target", runnable_targets())
def test_means_of_numbers_may_end_as_codes(target: str) -> None:
    """Elements are counted as numbers, whatever the epilogue makes of their mean."""
    module = parse_module(MEAN, new_context())
    inputs = {"x": RANDOM.integers(-7, 8, (1, 5, 6, 20)).astype(np.float32) / 4}
    (expected,) = InferenceSession(module, backend="interpreter").run(None, inputs)
    (found,) = InferenceSession(module, target=target, cache=False).run(None, inputs)
    np.testing.assert_array_equal(found, expected)

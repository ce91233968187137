"""Graphs of codes at the edges of what folds: machine code gives what the graph says as it is given."""

from __future__ import annotations

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

GRAPHS: dict[str, tuple[str, tuple[np.ndarray, ...]]] = {
    # The constant and the zero point cancel, but the constant gives the result its shape.
    "vanishing-offset": (
        """
        glow_high.constant @z : tensor<3x4xf32> {value = dense<0.5> : tensor<3x4xf32>}
        glow_high.func @f(%c: tensor<1x4xui8>) -> tensor<3x4xui8> {
          %z = glow_high.get @z : tensor<3x4xf32>
          %s = glow_high.storage_cast %c {to = Q<0.5:1>} : tensor<1x4xQ<0.5:1>>
          %d = glow_high.dequantize %s : tensor<1x4xf32>
          %w = glow_high.add %d, %z : tensor<3x4xf32>
          %q = glow_high.quantize %w {to = Q<0.25>} : tensor<3x4xQ<0.25>>
          %r = glow_high.storage_cast %q {to = ui8} : tensor<3x4xui8>
          glow_high.return %r
        }
        """,
        (np.array([[1, 2, 3, 4]], np.uint8),),
    ),
    # A sum of products beyond all codes, and another code beside it.
    "saturated-sum": (
        """
        glow_high.func @f(%a: tensor<1x64xui8>, %b: tensor<64x1xui8>, %r: tensor<1x1xui8>) -> tensor<1x1xui8> {
          %qa = glow_high.storage_cast %a {to = Q<1.0>} : tensor<1x64xQ<1.0>>
          %qb = glow_high.storage_cast %b {to = Q<1.0>} : tensor<64x1xQ<1.0>>
          %qr = glow_high.storage_cast %r {to = Q<1.0>} : tensor<1x1xQ<1.0>>
          %da = glow_high.dequantize %qa : tensor<1x64xf32>
          %db = glow_high.dequantize %qb : tensor<64x1xf32>
          %dr = glow_high.dequantize %qr : tensor<1x1xf32>
          %p = glow_high.matmul %da, %db : tensor<1x1xf32>
          %s = glow_high.add %p, %dr : tensor<1x1xf32>
          %q = glow_high.quantize %s {to = Q<1.0>} : tensor<1x1xQ<1.0>>
          %y = glow_high.storage_cast %q {to = ui8} : tensor<1x1xui8>
          glow_high.return %y
        }
        """,
        (np.full((1, 64), 200, np.uint8), np.full((64, 1), 200, np.uint8), np.full((1, 1), 200, np.uint8)),
    ),
    # Under a scale below zero the smallest code is the largest number.
    "negative-scale": (
        """
        glow_high.func @f(%x: tensor<1x2x2x1xi8>, %s: tensor<f32>) -> tensor<1x1x1x1xf32> {
          %d = glow_high.dequantize %x, %s : tensor<1x2x2x1xf32>
          %y = glow_high.max_pool %d {kernel_shape = [2, 2]} : tensor<1x1x1x1xf32>
          glow_high.return %y
        }
        """,
        (np.array([1, 2, 3, 4], np.int8).reshape(1, 2, 2, 1), np.array(-1, np.float32)),
    ),
    # Zero points of 16 bits are beyond what 16 bits hold less them.
    "wide-zero-point": (
        """
        glow_high.func @f(%a: tensor<1x2xui16>, %b: tensor<2x1xui16>) -> tensor<1x1xi32> {
          %qa = glow_high.storage_cast %a {to = W<1.0>} : tensor<1x2xW<1.0>>
          %qb = glow_high.storage_cast %b {to = W<1.0:7>} : tensor<2x1xW<1.0:7>>
          %p = glow_high.matmul %qa, %qb : tensor<1x1xi32>
          glow_high.return %p
        }
        """,
        (np.array([[1, 1]], np.uint16), np.array([[60000], [7]], np.uint16)),
    ),
    # The scale gives numbers more axes than their codes have.
    "scale-of-more-axes": (
        """
        glow_high.func @f(%x: tensor<4xi8>, %s: tensor<1x1xf32>, %w: tensor<4x2xi8>) -> tensor<1x2xf32> {
          %t = glow_high.splat {value = 2.0} : tensor<f32>
          %d = glow_high.dequantize %x, %s : tensor<1x4xf32>
          %e = glow_high.dequantize %w, %t : tensor<4x2xf32>
          %y = glow_high.matmul %d, %e : tensor<1x2xf32>
          glow_high.return %y
        }
        """,
        (
            np.array([1, -2, 3, 4], np.int8),
            np.full((1, 1), 0.5, np.float32),
            np.arange(8, dtype=np.int8).reshape(4, 2),
        ),
    ),
    # A truth value takes a byte, and is no code.
    "truth-values": (
        """
        glow_high.func @f(%c: tensor<4xi1>) -> tensor<4xui8> {
          %a = glow_high.splat {value = 1.0} : tensor<f32>
          %b = glow_high.splat {value = 2.0} : tensor<f32>
          %w = glow_high.where %c, %a, %b : tensor<4xf32>
          %q = glow_high.quantize %w {to = Q<0.5>} : tensor<4xQ<0.5>>
          %r = glow_high.storage_cast %q {to = ui8} : tensor<4xui8>
          glow_high.return %r
        }
        """,
        (np.array([True, False, True, True]),),
    ),
}
"""Name → a graph, in which Q<…> are codes of u8 and W<…> of u16, and its inputs."""


@pytest.mark.parametrize("target", ["host", "host,requantization=integer"])
@pytest.mark.parametrize("name", GRAPHS)
def test_folded_graph_means_the_same(name: str, target: str) -> None:
    text, arrays = GRAPHS[name]
    text = text.replace("Q<", "!quant.uniform<u8:f32, ").replace("W<", "!quant.uniform<u16:f32, ")
    module = parse_module(text, new_context())
    exact = InferenceSession(module, backend="interpreter")
    compiled = InferenceSession(module, target=target, cache=False)
    inputs = {argument.name: array for argument, array in zip(exact.get_inputs(), arrays, strict=True)}
    np.testing.assert_array_equal(compiled.run(None, inputs)[0], exact.run(None, inputs)[0])


@pytest.mark.parametrize("zero_point", [0, 300, 32781, 65535])
def test_sums_of_integers_of_16_bits_are_the_nearest_codes(zero_point: int) -> None:
    """But for those in the middle, whose floats are rounded themselves; a large zero point takes no digits away."""
    scale, other, to = (np.float32(number) for number in (0.015918799, 0.0293438, 0.025786187))
    types = f"!quant.uniform<u16:f32, {scale}:{zero_point}>", f"!quant.uniform<u8:f32, {other}:128>"
    text = f"""
    glow_high.func @f(%a: tensor<65536xui16>, %b: tensor<65536xui8>) -> tensor<65536xi8> {{
      %qa = glow_high.storage_cast %a {{to = {types[0]}}} : tensor<65536x{types[0]}>
      %qb = glow_high.storage_cast %b {{to = {types[1]}}} : tensor<65536x{types[1]}>
      %da = glow_high.dequantize %qa : tensor<65536xf32>
      %db = glow_high.dequantize %qb : tensor<65536xf32>
      %sum = glow_high.add %da, %db : tensor<65536xf32>
      %q = glow_high.quantize %sum {{to = !quant.uniform<i8:f32, {to}>}} : tensor<65536x!quant.uniform<i8:f32, {to}>>
      %r = glow_high.storage_cast %q {{to = i8}} : tensor<65536xi8>
      glow_high.return %r
    }}
    """
    rng = np.random.default_rng(0)
    a = np.clip(zero_point + rng.integers(-250, 250, 1 << 16), 0, 65535).astype(np.uint16)
    b = rng.integers(0, 256, 1 << 16).astype(np.uint8)
    exact = ((a.astype(np.float64) - zero_point) * float(scale) + (b.astype(np.float64) - 128) * float(other)) / float(
        to
    )
    wanted = np.clip(np.rint(exact), -128, 127)
    is_clear = np.abs(np.abs(exact - np.rint(exact)) - 0.5) > 1e-4
    assert is_clear.mean() > 0.99
    (found,) = InferenceSession(parse_module(text, new_context()), cache=False).run(None, {"a": a, "b": b})
    np.testing.assert_array_equal(found[is_clear], wanted[is_clear])

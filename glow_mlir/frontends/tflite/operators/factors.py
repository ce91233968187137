"""The two factors of a product of quantized values, its bias, and how its sums are rescaled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.rescaling import EXACT, SHORT, centred
from glow_mlir.support.dataclass import dataclass

PAIRS = {
    ("int8", "int8"),
    ("int8", "int4"),
    ("uint8", "uint8"),
    ("int16", "int8"),
    ("int16", "int4"),
    ("int16", "int16"),
}
"""The types of both factors."""

MAX_SUM = (1 << 31) - 1
"""The largest sum of 32 bits."""


@dataclass(frozen=True)
class Factors:
    """Both factors, the bias, the type of sums, the factors [1 or O] of f64 to the result, and their rounding."""

    left: SSAValue
    right: SSAValue
    bias: SSAValue | None
    accumulator: Attribute
    scales: np.ndarray
    rounding: str

    @staticmethod
    def of(node: TfliteNode, left: int, right: int, bias: int | None) -> Factors:
        """
        The factors at two positions, and the bias at a third one.

        Values of 16 bits have sums of 32 bits if none can be larger, and otherwise of 64. Raises `UnsupportedError` for
        other types, and for zero points of values of 16 bits.
        """
        kinds = node.tensor(left).dtype, node.tensor(right).dtype
        if kinds not in PAIRS:
            raise node.unsupported(f"products of {kinds[0]} with {kinds[1]} are not supported")
        added = node.input(bias) if bias is not None and node.has(bias) else None
        is_wide = kinds[0] == "int16"
        if not is_wide:
            own, other = _quantized(node, left), _quantized(node, right)
            return Factors(own, other, added, i32, _scales(node, left, right), "twice")
        if any(node.quantization(node.tensor(position)).zero_points.any() for position in (left, right)):
            raise node.unsupported("values of 16 bits have a zero point")
        has_short_bias = bias is not None and node.has(bias) and node.tensor(bias).dtype == "int32"
        accumulator = i32 if has_short_bias or _largest(node, right, bias) <= MAX_SUM else i64
        element = i16 if accumulator == i32 else i64
        own, other = (node.cast(node.input(position), element) for position in (left, right))
        added = None if added is None else node.cast(added, accumulator)
        rounding = "twice" if has_short_bias else SHORT
        if node.kind == "FULLY_CONNECTED":
            rounding = "once" if accumulator == i32 else EXACT
        return Factors(own, other, added, accumulator, _scales(node, left, right, has_short_bias), rounding)

    def widened(self, node: TfliteNode, position: int) -> SSAValue:
        """A factor less its zero point, in the type of sums."""
        zeros = node.quantization(node.tensor(position)).zero_points
        value = node.cast(node.input(position), i32) if not zeros.any() else centred(node, position)
        return node.cast(value, self.accumulator)


def _quantized(node: TfliteNode, position: int) -> SSAValue:
    """A factor of 8 bits: integers, or values of a zero point, which weights of several scales have not."""
    found = node.quantization(node.tensor(position))
    if not found.zero_points.any():
        return node.input(position)
    if len(found.scales) != 1:
        raise node.unsupported("weights of several scales have a zero point")
    return node.quantized(position)


def _largest(node: TfliteNode, right: int, bias: int | None) -> int:
    """A bound of the sums of products of values of 16 bits."""
    weights = node.fold(node.input(right))
    if weights is None or node.kind in ("BATCH_MATMUL", "TRANSPOSE_CONV"):
        return MAX_SUM + 1
    others = tuple(axis for axis in range(weights.ndim) if axis != (3 if node.kind == "DEPTHWISE_CONV_2D" else 0))
    sums = np.abs(weights.astype(np.int64)).sum(axis=others) << 15
    added = node.fold(node.input(bias)) if bias is not None and node.has(bias) else None
    if added is None and bias is not None and node.has(bias):
        return MAX_SUM + 1
    return int((sums + (0 if added is None else np.abs(added.astype(np.int64)))).max(initial=0))


def _scales(node: TfliteNode, left: int, right: int, has_short_bias: bool = False) -> np.ndarray:
    """
    The factors [1 or O] of f64 from sums to quantized values of the result.

    The product of single scales is rounded to f32, but for convolutions of signed values, and for FULLY_CONNECTED of
    values of 16 bits without a bias of 32.
    """
    scales = [node.quantization(item).scales for item in (node.tensor(left), node.tensor(right), node.output())]
    if not scales[2].all():
        raise node.unsupported("the result has the scale 0")
    is_convolution = node.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
    is_short = node.kind == "FULLY_CONNECTED" and node.tensor(left).dtype == "int16" and not has_short_bias
    if len(scales[1]) > 1 or is_short or (is_convolution and node.tensor(left).dtype != "uint8"):
        left_scale, right_scale, out = (item.astype(np.float64) for item in scales)
        return left_scale * right_scale / out
    return (scales[0] * scales[1]).astype(np.float64) / scales[2].astype(np.float64)


def ordered(node: TfliteNode, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Filters with their axes in an order."""
    is_sorted = list(order) == sorted(order)
    return value if is_sorted else node.emit(TransposeOp, value, permutation=order)

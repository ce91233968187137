"""PyTorch's quantization in graphs (PT2E): quantize and dequantize operators."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_integer
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.quant import integer_bounds, uniform
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of

LIBRARY = "quantized_decomposed"
"""PyTorch's library of these operators."""


def _quantized_bounds(node: TorchNode, element: Attribute, least: int, most: int) -> tuple[int, int]:
    """The bounds of quantized values; raises `UnsupportedError` unless they are integers."""
    if not is_integer(element):
        raise node.unsupported(f"quantized values of the type {element}")
    bounds = integer_bounds(cast("IntegerType", element))
    return max(least, bounds[0]), min(most, bounds[1])


def _limited(node: TorchNode, quantized: SSAValue, least: int, most: int) -> SSAValue:
    """Clip quantized values to a range, if it is narrower than their type."""
    element = element_of(quantized)
    if _quantized_bounds(node, element, least, most) == integer_bounds(cast("IntegerType", element)):
        return quantized
    return node.emit(ClipOp, quantized, node.scalar(least, element), node.scalar(most, element))


@torch_operator(f"{LIBRARY}.quantize_per_tensor.default")
def quantize(
    node: TorchNode, value: SSAValue, scale: float, zero_point: int, least: int, most: int, *_: object
) -> SSAValue:
    """round(x / scale) + zero point, within a range."""
    element = node.element
    _quantized_bounds(node, element, least, most)
    quantized = node.emit(QuantizeOp, node.cast(value, f32), to=uniform(element, f32, scale, zero_point))
    return _limited(node, node.emit(StorageCastOp, quantized, to=element), least, most)


@torch_operator(f"{LIBRARY}.dequantize_per_tensor.default")
def dequantize(
    node: TorchNode, value: SSAValue, scale: float, zero_point: int, least: int, most: int, *_: object, **__: object
) -> SSAValue:
    """(quantized value - zero point) · scale."""
    _quantized_bounds(node, element_of(value), least, most)
    known = uniform(element_of(value), f32, scale, zero_point)
    return node.cast(node.emit(DequantizeOp, node.emit(StorageCastOp, value, to=known)), node.element)


def _along(node: TorchNode, parameter: SSAValue, value: SSAValue, axis: int, element: Attribute) -> SSAValue:
    """Reshape a parameter per index of an axis to broadcast with `value`."""
    position, count = axis_of(axis, rank_of(value)), rank_of(value)
    sizes = tuple(sizes_of(value)[position] if other == position else 1 for other in range(count))
    return node.reshaped(node.cast(parameter, element), sizes)


@torch_operator(f"{LIBRARY}.quantize_per_channel.default")
def quantize_by_channel(
    node: TorchNode,
    value: SSAValue,
    scales: SSAValue,
    zero_points: SSAValue,
    axis: int,
    least: int,
    most: int,
    *_: object,
) -> SSAValue:
    """Like `quantize`, with parameters for each index of an axis."""
    element = node.element
    _quantized_bounds(node, element, least, most)
    parameters = _along(node, scales, value, axis, f32), _along(node, zero_points, value, axis, element)
    return _limited(node, node.emit(QuantizeOp, node.cast(value, f32), *parameters, to=element), least, most)


@torch_operator(f"{LIBRARY}.dequantize_per_channel.default")
def dequantize_by_channel(
    node: TorchNode,
    value: SSAValue,
    scales: SSAValue,
    zero_points: SSAValue | None,
    axis: int,
    least: int,
    most: int,
    *_: object,
    **__: object,
) -> SSAValue:
    """Like `dequantize`, with parameters for each index of an axis."""
    element = element_of(value)
    _quantized_bounds(node, element, least, most)
    zero = None if zero_points is None else _along(node, zero_points, value, axis, element)
    return node.cast(node.emit(DequantizeOp, value, _along(node, scales, value, axis, f32), zero), node.element)

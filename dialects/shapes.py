"""Shapes and types of values: one accessor for tensors and buffers, and the arithmetic of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import byte_width, is_storable
from glow_mlir.dialects.quant import UniformQuantizedType

Shape = tuple[int, ...]

SHAPED = (TensorType, MemRefType)
"""The types of tensors and buffers."""


def shape_of(value: SSAValue | Attribute) -> Shape:
    """The static shape of a tensor or buffer, given as a value or as its type."""
    type_ = value.type if isinstance(value, SSAValue) else value
    if not isinstance(type_, SHAPED):
        raise VerifyException(f"expected a tensor or a buffer, got {type_}")
    return type_.get_shape()


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor or buffer, given as a value or as its type."""
    type_ = value.type if isinstance(value, SSAValue) else value
    if not isinstance(type_, SHAPED):
        raise VerifyException(f"expected a tensor or a buffer, got {type_}")
    return cast("Attribute", type_.element_type)


def rank_of(value: SSAValue | Attribute) -> int:
    """The number of dimensions of a tensor or buffer."""
    type_ = value.type if isinstance(value, SSAValue) else value
    if not isinstance(type_, SHAPED):
        raise VerifyException(f"expected a tensor or a buffer, got {type_}")
    return type_.get_num_dims()


def size_of(value: SSAValue | Attribute) -> int:
    """The number of elements of a tensor or buffer."""
    return math.prod(shape_of(value))


def bytes_of(value: SSAValue | Attribute) -> int:
    """The bytes of the elements of a tensor or buffer, one beside the other."""
    return size_of(value) * byte_width(element_of(value))


def tensor(shape: Sequence[int], element: Attribute) -> TensorType[Attribute]:
    """The tensor type of that shape and element type."""
    return _tensor(tuple(shape), element)


@cache
def _tensor(shape: Shape, element: Attribute) -> TensorType[Attribute]:
    """The type, of which there is one: xDSL takes 0.1 ms to make it."""
    return TensorType(element, shape)


MOST_AXES = 32
"""Axes of a tensor at most: parts of numpy stop at as many, and windows have two for each, of which numpy has 64."""

MOST_BYTES = 1 << 47
"""No tensor or buffer reaches further: it is all that a process can address, and sums of a few are far from 2^63."""


def verify_storable(value: SSAValue | Attribute, noun: str, reach: int | None = None) -> None:
    """
    Check that a tensor or buffer has a size and elements that memory can hold.

    `reach` is how many elements it spans, where that is not the number of them. Raises `VerifyException`.
    """
    shape, element = shape_of(value), element_of(value)
    require(min(shape, default=0) >= 0, f"{noun} has static sizes")
    require(is_storable(element), f"no {noun.split()[-1]} has elements of {element}")
    if isinstance(element, UniformQuantizedType):
        _verify_quantized_axis(shape, element, noun)
    spanned = math.prod(size for size in shape if size) if reach is None else reach
    require(spanned * byte_width(element) <= MOST_BYTES, f"{noun} of {spanned} elements of {element} fits no memory")


def _verify_quantized_axis(shape: Shape, element: UniformQuantizedType, noun: str) -> None:
    """Check that a scale is there for each index of the axis that has them."""
    axis, scales = element.axis.data, len(element.scales.data)
    if element.is_per_axis:
        require(axis < len(shape), f"the axis {axis} of quantization is none of the {len(shape)} axes of {noun}")
        require(scales == shape[axis], f"{scales} scales do not fit an axis of {shape[axis]} elements")


def broadcast(*shapes: Shape) -> Shape:
    """The shape that `shapes` broadcast to under numpy's rule; raises `VerifyException` where they do not."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                raise VerifyException(f"shapes {', '.join(map(str, shapes))} do not broadcast")
            result[axis] = size
    return tuple(result)


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; raises `VerifyException` outside [-rank, rank)."""
    if not -rank <= axis < max(rank, 1):
        raise VerifyException(f"axis {axis} is out of range for rank {rank}")
    return axis % max(rank, 1)


def require(condition: bool, message: str) -> None:
    """Raise `VerifyException(message)` unless `condition` holds."""
    if not condition:
        raise VerifyException(message)

"""
How TOSA holds elements: as its own types, which have no integers without a sign, and none of 64 bits.

A `ui8` is held as an `i8` that is 128 less: in the order of the numbers, so that products, maxima and comparisons need
no more than another zero point. An `i64` is held as an `i32`: it is an index, or what moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import NUMPY_NAMES, storage_of, ui8
from glow_mlir.dialects.quant import is_per_axis, zero_point_of
from glow_mlir.errors import ExecutionError

HELD: Mapping[Attribute, Attribute] = {f32: f32, i1: i1, i8: i8, i16: i16, i32: i32, ui8: i8, i64: i32}
"""Element type of `glow_high` → the one in TOSA."""

OFFSET = 128
"""What a `ui8` is more than the integer that holds it."""

MAX_INDEX = 1 << 31
"""What no index reaches that 32 bits hold."""


def is_held(element: Attribute) -> bool:
    """Whether TOSA has elements of this type, quantized ones as the integers that store them."""
    return storage_of(element) in HELD and not is_per_axis(element)


def held(element: Attribute) -> Attribute:
    """The element type in TOSA."""
    return HELD[storage_of(element)]


def offset_of(element: Attribute) -> int:
    """What an element is more than the integer that holds it."""
    return OFFSET if storage_of(element) == ui8 else 0


def held_zero_point(element: Attribute) -> int:
    """The integer that holds the element which stands for 0."""
    return zero_point_of(element) - offset_of(element)


def to_held(array: np.ndarray) -> np.ndarray:
    """Elements as TOSA holds them; raises `ExecutionError` for an integer of 64 bits that 32 do not hold."""
    if array.dtype == np.uint8:
        return (array ^ OFFSET).view(np.int8)
    if array.dtype == np.int64:
        if array.size and not -MAX_INDEX <= array.min() <= array.max() < MAX_INDEX:
            raise ExecutionError("an integer of 64 bits is larger than what TOSA holds", hint="32 bits")
        return array.astype(np.int32)
    return array


def from_held(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Elements of a type, from those that TOSA holds."""
    if dtype == np.uint8:
        return array.view(np.uint8) ^ OFFSET
    return array.astype(dtype, copy=False)


def held_numpy(element: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type in TOSA."""
    return np.dtype(NUMPY_NAMES[element])

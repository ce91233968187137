"""Memory of the interpreter: buffers with strides, poison in fresh allocations, scrambled bytes in dead ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_low.memory import byte_size, offset_of, strides_of
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.support.dtypes import is_float_dtype

_GARBAGE = 0x5A


@dataclass
class Buffer:
    """One buffer: the bytes of its whole allocation, and the elements that its type selects."""

    storage: np.ndarray
    """All bytes of the allocation, as uint8."""
    array: np.ndarray
    """The elements, a strided view of `storage`."""

    def view(self, type_: MemRefType[Attribute], moved: int = 0) -> Buffer:
        """The same allocation under another type, `moved` elements further than that says."""
        return Buffer(self.storage, select(self.storage, type_, moved))


def select(storage: np.ndarray, type_: MemRefType[Attribute], moved: int = 0) -> np.ndarray:
    """The elements of `type_` in an allocation, as a strided array that shares its bytes."""
    dtype = numpy_dtype(type_.element_type)
    strides = [stride * dtype.itemsize for stride in strides_of(type_)]
    offset = (offset_of(type_) + moved) * dtype.itemsize
    return np.ndarray(shape_of(type_), dtype, storage, offset, strides)


def poison(array: np.ndarray) -> None:
    """Fill with what must never be read: NaN, or a value unlikely to be right."""
    if is_float_dtype(array.dtype):
        array.fill(np.nan)
    else:
        array.fill(array.dtype.type(True) if array.dtype.kind == "b" else array.dtype.type(_GARBAGE))


def allocate(type_: MemRefType[Attribute], arena: np.ndarray | None, offset: int) -> Buffer:
    """A poisoned buffer: at a byte offset of the arena, or of its own where there is none."""
    size = byte_size(type_)
    storage = np.empty(size, np.uint8) if arena is None else arena[offset : offset + size]
    buffer = Buffer(storage, select(storage, type_))
    whole = storage[: size - size % buffer.array.dtype.itemsize].view(buffer.array.dtype)
    poison(whole)
    return buffer


def scramble(buffer: Buffer) -> None:
    """Overwrite a dead allocation, so that a later read gives a wrong result."""
    poison(buffer.storage.view(buffer.array.dtype))


def wrap(array: np.ndarray) -> Buffer:
    """A dense array as a buffer that shares its bytes."""
    return Buffer(array.reshape(-1).view(np.uint8), array)

"""Memory of the interpreter: strided buffers, poison in fresh allocations, scrambled bytes in dead ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_low.memory import buffer_at, byte_size, offset_of, strides_of
from glow_mlir.dialects.shapes import has_static_shape, shape_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import is_float_dtype

_GARBAGE = 0x5A


Symbols = Mapping[str, int]
"""Values of symbols in sizes, by name."""


@dataclass
class Buffer:
    """A buffer: the bytes of its whole allocation, and the elements that its type selects."""

    storage: np.ndarray
    """All bytes of the allocation, as uint8."""
    type: MemRefType[Attribute]
    symbols: Symbols
    """Symbol values at the time of use; some may be bound later."""
    moved: int = 0
    """The offset in elements added to that of the type."""
    elements: np.ndarray | None = None
    """The elements, if they are fixed."""

    @property
    def array(self) -> np.ndarray:
        """The elements, a strided view of `storage`."""
        if self.elements is not None:
            return self.elements
        array = select(self.storage, buffer_at(self.type, self.symbols), self.moved)
        if has_static_shape(self.type):
            self.elements = array
        return array

    def view(self, type_: MemRefType[Attribute], moved: int = 0) -> Buffer:
        """The same allocation under another type, at an offset of `moved` additional elements."""
        return Buffer(self.storage, type_, self.symbols, moved)


def select(storage: np.ndarray, type_: MemRefType[Attribute], moved: int = 0) -> np.ndarray:
    """A strided array of the elements of `type_` in an allocation, sharing its bytes."""
    dtype = numpy_dtype(type_.element_type)
    strides = [stride * dtype.itemsize for stride in strides_of(type_)]
    offset = (offset_of(type_) + moved) * dtype.itemsize
    return np.ndarray(shape_of(type_), dtype, storage, offset, strides)


def poison(array: np.ndarray) -> None:
    """Fill with poison: NaN, or a value unlikely to be right."""
    if is_float_dtype(array.dtype):
        array.fill(np.nan)
    else:
        array.fill(array.dtype.type(True) if array.dtype.kind == "b" else array.dtype.type(_GARBAGE))


def allocate(
    type_: MemRefType[Attribute], symbols: Symbols, arena: np.ndarray | None = None, offset: int = 0
) -> Buffer:
    """A poisoned buffer, at a byte offset of the arena if there is one, else with its own bytes."""
    size = byte_size(type_)
    storage = np.empty(size, np.uint8) if arena is None else arena[offset : offset + size]
    dtype = numpy_dtype(type_.element_type)
    poison(storage[: size - size % dtype.itemsize].view(dtype))
    return Buffer(storage, type_, symbols)


def scramble(buffer: Buffer) -> None:
    """Overwrite a dead allocation, so that later reads give wrong results."""
    poison(buffer.storage.view(numpy_dtype(buffer.type.element_type)))


def wrap(array: np.ndarray, type_: MemRefType[Attribute]) -> Buffer:
    """A dense array as a buffer of static shape that shares its bytes."""
    return Buffer(array.reshape(-1).view(np.uint8), type_, {}, elements=array)

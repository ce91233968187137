"""How kernels read and write elements of operands: as numbers to compute with, or as bits to move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Attribute, Operation

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, i8, integer_of_width, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.math.half import is_half, narrow, widen
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.dialects.element_types import byte_width, is_bool, is_unsigned, signless
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.target import Target


class Addressed(Protocol):
    """Anything with an address: an operand of a kernel, or an extra operand of a body."""

    @property
    def pointer(self) -> Value:
        """The address of the first element."""
        ...


def raw(element: Attribute) -> Attribute:
    """The integer type in which elements are moved: types of equal width are moved alike."""
    return integer_of_width(8 * byte_width(element))


def computed(element: Attribute) -> Attribute:
    """The type in which kernels compute an element: f32 for f16 and bf16, i8 for a bool, else its own."""
    if is_half(element):
        return f32
    return i8 if is_bool(element) else signless(element)


def is_computed_as_stored(op: Operation) -> bool:
    """Whether kernels compute all operands of an instruction in the types that they have in memory."""
    return all(computed(element_of(value)) == signless(element_of(value)) for value in op.operands)


def load_as(
    b: Builder, operand: Addressed, type_: Attribute, offset: Index, stride: int, lanes: int, mask: Value | None = None
) -> Value:
    """
    Load `lanes` elements of `type_` from an element offset on; if `stride` is 0, one element is broadcast to all lanes.

    Lanes outside `mask` are not read.
    """
    address = operand.pointer.at(offset, type_)
    if stride == 0 and lanes > 1:
        return b.splat(address.load(type_), lanes)
    return address.load(vector(type_, lanes)) if mask is None else b.load_masked(address, vector(type_, lanes), mask)


def load_raw(b: Builder, operand: Operand, offset: Index, stride: int, lanes: int) -> Value:
    """Load `lanes` elements as raw bits; see `load_as`."""
    return load_as(b, operand, raw(operand.element), offset, stride, lanes)


def load(b: Builder, operand: Operand, offset: Index, stride: int, lanes: int, mask: Value | None = None) -> Value:
    """Load `lanes` elements in the type in which kernels compute; see `load_as`."""
    element = operand.element
    in_memory = i8 if is_bool(element) else signless(element)
    value = load_as(b, operand, in_memory, offset, stride, lanes, mask)
    return widen(b, value) if is_half(element) else value


def store(b: Builder, operand: Operand, offset: Index, value: Value, mask: Value | None = None) -> None:
    """Store a value, in the type in which kernels compute, to consecutive elements: those in `mask`."""
    element = operand.element
    in_memory = i8 if is_bool(element) else signless(element)
    stored, address = narrow(b, value, element) if is_half(element) else value, operand.pointer.at(offset, in_memory)
    if mask is None:
        address.store(stored)
    else:
        b.store_masked(stored, address, mask)


def read_index(b: Builder, operand: Operand, offset: Index) -> Value:
    """Load one integer element as an i64."""
    element = signless(operand.element)
    value = operand.pointer.at(offset, element).load(element)
    return b.cast(value, integer_of_width(64), signed=not is_unsigned(operand.element))


def lanes_for(target: Target, element: Attribute, steps: Sequence[int], vectors: int = 1) -> int:
    """
    The lanes of a loop whose operands move by `steps` in its innermost dimension: 1 unless each step is 0 or 1.

    `vectors` above 1 provides independent work that hides latencies: LLVM splits wide vectors into registers.
    """
    width = target.vector_width(element)
    return width * vectors if width > 1 and all(step in (0, 1) for step in steps) else 1

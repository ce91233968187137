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
    """What has an address: an operand, or a further one of a body."""

    @property
    def pointer(self) -> Value:
        """The first element."""
        ...


def raw(element: Attribute) -> Attribute:
    """The integer type whose bits an element is moved as; moving needs no other type."""
    return integer_of_width(8 * byte_width(element))


def computed(element: Attribute) -> Attribute:
    """The type that kernels compute an element in: f32 for f16 and bf16, a byte for a truth value, else its own."""
    if is_half(element):
        return f32
    return i8 if is_bool(element) else signless(element)


def is_computed_as_stored(op: Operation) -> bool:
    """Whether memory holds the elements of an instruction in the type that they are computed in."""
    return all(computed(element_of(value)) == signless(element_of(value)) for value in op.operands)


def load_as(
    b: Builder, operand: Addressed, type_: Attribute, offset: Index, stride: int, lanes: int, mask: Value | None = None
) -> Value:
    """
    `lanes` elements of `type_` from an element offset on; one element for all lanes where `stride` is 0.

    Those outside `mask` are not read.
    """
    address = operand.pointer.at(offset, type_)
    if stride == 0 and lanes > 1:
        return b.splat(address.load(type_), lanes)
    return address.load(vector(type_, lanes)) if mask is None else b.load_masked(address, vector(type_, lanes), mask)


def load_raw(b: Builder, operand: Operand, offset: Index, stride: int, lanes: int) -> Value:
    """`lanes` elements as bits, see `load_as`."""
    return load_as(b, operand, raw(operand.element), offset, stride, lanes)


def load(b: Builder, operand: Operand, offset: Index, stride: int, lanes: int, mask: Value | None = None) -> Value:
    """`lanes` elements in the type that kernels compute in, see `load_as`."""
    element = operand.element
    in_memory = i8 if is_bool(element) else signless(element)
    value = load_as(b, operand, in_memory, offset, stride, lanes, mask)
    return widen(b, value) if is_half(element) else value


def store(b: Builder, operand: Operand, offset: Index, value: Value, mask: Value | None = None) -> None:
    """Write a value of the type that kernels compute in to neighbouring elements, those that are in `mask`."""
    element = operand.element
    in_memory = i8 if is_bool(element) else signless(element)
    stored, address = narrow(b, value, element) if is_half(element) else value, operand.pointer.at(offset, in_memory)
    if mask is None:
        address.store(stored)
    else:
        b.store_masked(stored, address, mask)


def read_index(b: Builder, operand: Operand, offset: Index) -> Value:
    """One integer element as an i64."""
    element = signless(operand.element)
    value = operand.pointer.at(offset, element).load(element)
    return b.cast(value, integer_of_width(64), signed=not is_unsigned(operand.element))


def lanes_for(target: Target, element: Attribute, steps: Sequence[int], vectors: int = 1) -> int:
    """
    Lanes of a loop whose operands move by `steps` in its innermost dimension: 1 where one of them jumps.

    More than one of `vectors` gives independent work to hide latencies: LLVM splits wide vectors into registers.
    """
    width = target.vector_width(element)
    return width * vectors if width > 1 and all(step in (0, 1) for step in steps) else 1

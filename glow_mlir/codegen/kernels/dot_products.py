"""How products are summed: what a micro-kernel does with one step along the depth, by the instructions of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, type_info, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.dialects.element_types import byte_width, is_float, is_integer, is_unsigned, signless
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.shapes import element_of
from glow_mlir.dialects.target import Target


@dataclass(frozen=True)
class DotProduct:
    """
    Products of elements of the types `left` and `right`, one at a time: both are converted to the type of the `sums`.

    A *cell* is what a step takes of a row of the left operand, and of a column of a panel of the right one: some
    neighbours along the depth, as one scalar. Element types have the signs of the operands.
    """

    left: Attribute
    right: Attribute
    sums: Attribute

    @property
    def group(self) -> int:
        """How many neighbours along the depth a cell has."""
        return 1

    @property
    def readable(self) -> str:
        """What functions that compute so are called by."""
        return str(self.sums) if self.left == self.sums else f"{self.left}.{self.right}"

    @property
    def memory(self) -> Attribute:
        """The type in which memory has an element of the left operand."""
        return signless(self.left)

    @property
    def left_cell(self) -> Attribute:
        """The type in which a cell of the left operand is read."""
        return signless(self.left)

    @property
    def right_cell(self) -> Attribute:
        """The type of which a row of a panel has one for each column."""
        return signless(self.right)

    def panel_rows(self, depth: Index, run: Index) -> Index:
        """How many rows of cells a panel has for a depth that is made of contiguous runs of one length."""
        return depth

    def read(self, b: Builder, address: Value) -> Value:
        """A cell of the left operand."""
        return b.cast(address.load(self.left_cell), self.sums, signed=not is_unsigned(self.left))

    def spread(self, b: Builder, cell: Value, lanes: int) -> Value:
        """A cell of the left operand for each of `lanes` sums."""
        return b.splat(cell, lanes)

    def columns(self, b: Builder, address: Value, lanes: int) -> Value:
        """A cell of each of `lanes` columns of a panel, aligned to a whole vector of them."""
        type_ = vector(self.right_cell, lanes)
        loaded = address.load(type_, align=lanes * type_info(type_).bytes_in_memory)
        return b.cast(loaded, self.sums, signed=not is_unsigned(self.right))

    def multiply_add(self, b: Builder, left: Value, right: Value, total: Value) -> Value:
        """Sums with the products of what `spread` and `columns` gave added."""
        return b.fma(left, right, total) if is_float(self.sums) else total + left * right


def multiplies(*values: SSAValue) -> bool:
    """Whether there are products of elements such as these have: of integers, and of floats of 32 and 64 bits."""
    elements = [element_of(value) for value in values]
    return all(is_integer(element) or (is_float(element) and byte_width(element) >= 4) for element in elements)


def dot_product(left: SSAValue, right: SSAValue, target: Target) -> DotProduct:
    """
    How a machine computes products of the elements of two operands.

    A packed right operand may have any type before `verify-selected` has compared it: one that does not fit the left
    operand counts as of its type.
    """
    first, second = element_of(left), element_of(right)
    fits = is_integer(first) and is_integer(second) and byte_width(first) == byte_width(second) < 4
    signature = ProductSignature.of_elements(first, second if fits else first)
    return DotProduct(signature.left, signature.right, signless(signature.accumulator))


def multiply_adds(element: Attribute) -> DotProduct:
    """Products of one type, summed in it."""
    return DotProduct(element, element, element)


MULTIPLY_ADDS_F32 = multiply_adds(f32)
"""Products of f32."""

"""The weights of the leaves of one tree, looked up for several rows at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.builder import x86
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32, integer_of_width, type_info, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class LeafTable:
    """
    2^depth weights at an address, kept in `registers` if an instruction permutes the lanes of two registers.

    The lowest bits of a leaf number select a lane of a pair of registers; the other bits select the pair.
    """

    leaves: Value
    element: Attribute
    lanes: int
    registers: Sequence[Value]

    @staticmethod
    def of(b: Builder, leaves: Value, element: Attribute, depth: int, lanes: int) -> LeafTable:
        """Return the table of `2^depth` leaves, for lookups of `lanes` rows at a time."""
        bits = type_info(element).bits
        if lanes * bits != b.target.vector_bits or not x86.looks_up_floats(b.target, bits):
            return LeafTable(leaves, element, lanes, ())
        count = 1 << depth
        if count < lanes:
            few = leaves.load(vector(element, count)) if count > 1 else leaves.load(element)
            return LeafTable(leaves, element, lanes, [b.shuffle(few, few, [lane % count for lane in range(lanes)])])
        parts = [leaves.at(first, element).load(vector(element, lanes)) for first in range(0, count, lanes)]
        return LeafTable(leaves, element, lanes, parts)

    def at(self, b: Builder, masks: Sequence[Value]) -> Value:
        """Return the weights of the leaves whose numbers have these bits, the highest first."""
        if not self.registers:
            return self._loaded(b, masks)
        low = (2 * self.lanes).bit_length() - 1
        number = _number(b, masks[-low:], integer_of_width(type_info(self.element).bits), self.lanes)
        # A single register is used as both.
        pairs = zip(self.registers[::2], self.registers[1::2] or self.registers, strict=True)
        found = [x86.permute_floats_of_two(b, first, second, number) for first, second in pairs]
        for mask in reversed(masks[:-low]):
            found = [b.select(mask, yes, no) for no, yes in zip(found[::2], found[1::2], strict=True)]
        return found[0]

    def _loaded(self, b: Builder, masks: Sequence[Value]) -> Value:
        """Load the weights one by one."""
        numbers = _number(b, masks, i32, self.lanes)
        found = b.splat(b.constant(0.0, self.element), self.lanes)
        for lane in range(self.lanes):
            weight = self.leaves.at(b.index(b.extract(numbers, lane)), self.element).load(self.element)
            found = b.insert(found, weight, lane)
        return found


def _number(b: Builder, masks: Sequence[Value], element: Attribute, lanes: int) -> Value:
    """Return the numbers with these bits, the highest first."""
    total = b.constant(0, vector(element, lanes))
    for position, mask in enumerate(reversed(masks)):
        total = total | b.select(mask, b.constant(1 << position, total.type), 0)
    return total

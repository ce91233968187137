"""The kernel of window sums of quantized values: in vectors of 16 bits, or packed in general-purpose registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import lanes_for
from glow_mlir.codegen.builder import arm
from glow_mlir.codegen.builder.types import i8, i16, i32, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.pooling import Elements, PoolKernel, Taps, Visit
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width, is_unsigned, storage_of
from glow_mlir.dialects.glow_high.pooling import SumPoolOp
from glow_mlir.dialects.quant import zero_point_of
from glow_mlir.dialects.target import Target
from glow_mlir.dialects.windows import Window

MAX_SUMMANDS = 256
"""The number of 8-bit values, signed or unsigned, whose sum fits in 16 bits of the same signedness."""


@kernel("sum-pool")
class SumPoolKernel(PoolKernel[SumPoolOp]):
    """
    The sum of each window of quantized values.

    8-bit values are summed in 16 bits, so that a register holds twice as many sums, as long as these cannot overflow;
    16-bit sums are added up in 32 bits. An Arm core without vectors packs 16-bit sums in words.
    """

    name = "sum-pool"
    READS_ZERO_POINTS = True

    def width(self, target: Target, element: Attribute, steps: tuple[int, int]) -> int:
        if byte_width(element) == 1 and steps == (1, 1) and arm.accumulates_bytes(target):
            return arm.WORD_BYTES
        summand = i16 if byte_width(element) == 1 else i32
        return lanes_for(target, summand, steps, kernel_costs(target).independent_vectors)

    def take(self, call: KernelCall[SumPoolOp], total: Value, x: Value) -> Value:
        return total + call.b.cast(x, total.info.element, signed=_is_signed(call))

    def totals(self, call: KernelCall[SumPoolOp], elements: Elements) -> Sequence[Value]:
        b, source, lanes = call.b, call.one("input"), elements.lanes
        if byte_width(source.element) > 1:
            return [elements.folded(lambda total, x: self.take(call, total, x), b.constant(0, vector(i32, lanes)))]
        if not call.target.vector_bits and lanes == arm.WORD_BYTES:

            def visit_word(offset: Index, sums: Sequence[Value]) -> Sequence[Value]:
                return arm.add_bytes(b, sums, source.pointer.at(offset, i8).load(i32, align=1), _is_signed(call))

            none = [b.constant(0, i32)] * 2
            return _summed(call, elements, none, visit_word, lambda sums: arm.halves(b, sums, _is_signed(call)))

        def visit(offset: Index, sums: Sequence[Value]) -> Sequence[Value]:
            return [self.take(call, sums[0], elements.load(offset))]

        none = [b.constant(0, vector(i16, lanes))]
        return _summed(call, elements, none, visit, lambda sums: [b.cast(sums[0], i32, signed=_is_signed(call))])

    def finish(self, call: KernelCall[SumPoolOp], total: Value, count: Value | None) -> Value:
        return total if count is None else total - count * zero_point_of(call.one("input").element)

    def count(self, call: KernelCall[SumPoolOp], window: Window, taps: Sequence[Taps]) -> Value | None:
        if not zero_point_of(call.one("input").element):
            return None
        total = call.b.index(1)
        for t in taps:
            total = total * t.count(call.b)
        return call.b.cast(total, i32)


def _is_signed(call: KernelCall) -> bool:
    return not is_unsigned(storage_of(call.one("input").element))


def _summed(
    call: KernelCall[SumPoolOp],
    elements: Elements,
    none: Sequence[Value],
    visit: Visit,
    widen: Callable[[Sequence[Value]], Sequence[Value]],
) -> Sequence[Value]:
    """Add up in 32 bits the 16-bit sums over as many inner axes as cannot overflow."""
    unrolled = kernel_costs(call.target).unrolled_summands
    kernel, axes = call.op.window().kernel, range(len(elements.taps))
    split = next(axis for axis in range(len(axes) + 1) if math.prod(kernel[axis:]) <= MAX_SUMMANDS)
    if split == 0:
        return widen(elements.walked(visit, none, axes, elements.offset, unrolled))

    def further(offset: Index, totals: Sequence[Value]) -> Sequence[Value]:
        sums = widen(elements.walked(visit, none, axes[split:], offset, unrolled))
        return [total + sum_ for total, sum_ in zip(totals, sums, strict=True)]

    return elements.walked(further, widen(none), axes[:split], elements.offset)

"""Sums of windows of narrow integers: in vectors of 16 bits, or with several 16-bit sums in a register of the core."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from xdsl.ir import SSAValue

from glow_mlir.codegen.access import lanes_for
from glow_mlir.codegen.builder import arm
from glow_mlir.codegen.builder.nests import Index, vector_loop
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.types import i8, i16, i32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.expressions.sums_of_integers import MAX_SUMMANDS, SumOfIntegers, sum_of_integers
from glow_mlir.codegen.kernels.expressions.taps import Taps, scalar_rest
from glow_mlir.codegen.kernels.expressions.window_frames import Frame
from glow_mlir.codegen.kernels.expressions.windows import (
    Counts,
    InWindows,
    LineAt,
    Offsets,
    Reduce,
    Steps,
    Walk,
    WindowLine,
    WindowsKernel,
)
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.stages import StageOp
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Visit = Callable[[Offsets, Sequence[Value]], Sequence[Value]]
"""Offsets and accumulators → the accumulators with the elements at the offsets added."""


@dataclass(frozen=True)
class IntegersFrame(Frame):
    """The frame of windows of narrow integers."""

    @cached_property
    def sum(self) -> SumOfIntegers:
        """The sum that the program computes."""
        found = sum_of_integers(self.program)
        assert found is not None, "the kernel computes sums of integers"
        return found

    def width(self, target: Target, steps: Sequence[int]) -> int:
        if self.sum.bits == 8 and set(steps[:2]) == {1} and arm.accumulates_bytes(target):
            return arm.WORD_BYTES
        summand = i16 if self.sum.bits == 8 else i32
        return lanes_for(target, summand, steps, kernel_costs(target).independent_vectors)


class InWindowsOfIntegers(InWindows):
    """
    The sum of each window of narrow integers.

    8-bit integers are added up in 16 bits while these cannot overflow, so that a register holds twice as many sums;
    the 16-bit sums are added up in 32 bits. An Arm core without vectors keeps two 16-bit sums in a word.
    """

    FRAME = IntegersFrame

    total: Value | None = None
    """The sum of the current window, if it is already computed."""

    @property
    def sum(self) -> SumOfIntegers:
        """The sum that the program computes."""
        assert isinstance(self.frame, IntegersFrame)
        return self.frame.sum

    def over_channels(self, size: Index, width: int, reduce: Reduce, share: Partition) -> None:
        """Loop over the channels of a position in vectors; the last vector is masked."""
        b, target = self.b, self.call.target
        one = max(1, width // kernel_costs(target).independent_vectors)
        rest = size % one if isinstance(size, int) and target.vector_bits else 0
        if rest.bit_count() < 2:
            vector_loop(b, size, width, reduce, share, scalar_rest(target))
            return
        assert isinstance(size, int), "the number of remaining channels is known"
        vectors = -(-size // width)
        vector_loop(b, size - rest, width, reduce, share)
        with b.loop(*share.within(vectors, vectors - 1, 1)):
            reduce(size - rest, 1 << rest.bit_length(), b.mask(rest, 1 << rest.bit_length()))

    def take(self, line_at: LineAt, channel: Index, lanes: int, steps_of: Steps, counts: Counts) -> None:
        if self.call.target.vector_bits or lanes != arm.WORD_BYTES:
            super().take(line_at, channel, lanes, steps_of, counts)
            return
        totals = self._totals(line_at(channel, lanes), self.sum.stage, steps_of[self.sum.stage])
        for lane, self.total in enumerate(totals):
            super().take(line_at, channel + lane if lane else channel, 1, steps_of, counts)
        self.total = None

    def fold(
        self,
        line: WindowLine,
        stage: StageOp,
        scalars: dict[SSAValue, Value],
        taps: Mapping[int, Taps],
        indices: Sequence[int],
    ) -> None:
        (index,) = indices
        if self.total is not None:
            scalars[stage.results[index]] = self.total
        elif self.sum.bits == 8:
            (scalars[stage.results[index]],) = self._totals(line, stage, taps)
        else:
            super().fold(line, stage, scalars, taps, indices)

    def _totals(self, line: WindowLine, stage: StageOp, taps: Mapping[int, Taps]) -> Sequence[Value]:
        """The sums of neighbouring windows: one value, or one for each lane of a word."""
        b, signed = self.b, self.sum.is_signed
        source = self.row_operands[self.sum.elements]
        walk, start = Walk(self, stage, taps), [line.starts[source.number]]

        def visit_word(offsets: Offsets, sums: Sequence[Value]) -> Sequence[Value]:
            return arm.add_bytes(b, sums, source.operand.pointer.at(offsets[0], i8).load(i32, align=1), signed)

        def visit(offsets: Offsets, sums: Sequence[Value]) -> Sequence[Value]:
            return [sums[0] + b.cast(self.element(line, self.sum.elements, offsets[0]), i16, signed=signed)]

        if not self.call.target.vector_bits and line.lanes == arm.WORD_BYTES:
            none = [b.constant(0, i32)] * 2
            return self._summed(walk, start, none, visit_word, lambda sums: arm.halves(b, sums, signed))
        none = [b.constant(0, vector(i16, line.lanes))]
        return self._summed(walk, start, none, visit, lambda sums: [b.cast(sums[0], i32, signed=signed)])

    def _summed(
        self,
        walk: Walk,
        start: Offsets,
        none: Sequence[Value],
        visit: Visit,
        widen: Callable[[Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """Add up in 32 bits the 16-bit sums over the inner axes; these axes are as many as cannot overflow 16 bits."""
        limit = kernel_costs(self.call.target).unrolled_summands
        rows = self.program.rows
        extents = [size for dimension in rows if isinstance(size := self.program.space[dimension], int)]
        split = next(axis for axis in range(len(rows) + 1) if math.prod(extents[axis:]) <= MAX_SUMMANDS)
        if split == 0:
            return widen(walk.all(visit, none, rows, start, limit))

        def further(offsets: Offsets, totals: Sequence[Value]) -> Sequence[Value]:
            sums = widen(walk.all(visit, none, rows[split:], offsets, limit))
            return [total + sum_ for total, sum_ in zip(totals, sums, strict=True)]

        return walk.all(further, widen(none), rows[:split], start)


@kernel("windows-of-integers")
class WindowsOfIntegersKernel(WindowsKernel):
    """Sums of windows of narrow integers; machine code contains their zero points."""

    name = "windows-of-integers"
    READS_ZERO_POINTS = True
    EMISSION = InWindowsOfIntegers
    OF_INTEGERS = True

"""Kernels of pooling: one output pixel at a time, vectors over its channels, windows clipped at the border."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Attribute, Operation

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernel import Kernel, KernelCall, Operand, kind_of
from glow_mlir.codegen.kernels.reductions import largest_of, lowest
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.scalar_math import MATH
from glow_mlir.codegen.types import vector
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp, Pool
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import Shape, element_of
from glow_mlir.dialects.windows import Window, is_channels_last
from glow_mlir.registry import kernel

VECTORS = 4
"""Vectors of channels at once: enough independent work to hide the latency of an addition."""


@dataclass(frozen=True)
class Image:
    """Sizes and strides of an image with its axes in the order batch, spatial axes, channels, whatever its layout."""

    sizes: Shape
    strides: Shape

    @staticmethod
    def of(operand: Operand, channels_last: bool) -> Image:
        """The image behind an operand."""
        order = list(range(len(operand.shape)))
        if not channels_last:
            order.append(order.pop(1))
        return Image(tuple(operand.shape[a] for a in order), tuple(operand.strides[a] for a in order))


@dataclass(frozen=True)
class Taps:
    """The taps of a window along one axis that count: from `first` up to `last`, without it."""

    output: Index
    """Position of the window among the windows of the axis."""
    origin: Index
    """Place of tap 0 in the input, maybe outside."""
    first: Index
    last: Index

    @staticmethod
    def within(b: Builder, window: Window, axis: int, output: Index, outputs: int, bounds: tuple[int, int]) -> Taps:
        """The taps of window `output`, one of `outputs` along `axis`, that lie in [low, high) of the input."""
        low, high = bounds
        size, stride, before = window.kernel[axis], window.strides[axis], window.pads[axis]
        origin: Index = output * stride - before
        if low <= -before and (outputs - 1) * stride - before + window.extent(axis) <= high:
            return Taps(output, origin, 0, size)
        origin = b.index(origin)
        first = b.max(rounded_up(b, low - origin, window.dilations[axis]), 0)
        last = b.min(rounded_up(b, high - origin, window.dilations[axis]), size)
        return Taps(output, origin, first, last)

    def count(self, b: Builder) -> Index:
        """How many there are."""
        if isinstance(self.first, int) and isinstance(self.last, int):
            return self.last - self.first
        return b.max(b.index(self.last) - self.first, 0)


def rounded_up(b: Builder, x: Value, divisor: int) -> Value:
    """`x` / `divisor` rounded up; a negative quotient may come out larger, but not above 0."""
    return x if divisor == 1 else b.sdiv(x + (divisor - 1), divisor)


class PoolKernel(Kernel):
    """The loops of all pooling kernels; what they accumulate differs."""

    OPERATOR: ClassVar[type[Pool]]
    FLOATS_ONLY: ClassVar[bool] = True

    def accepts(self, op: Operation) -> bool:
        return kind_of(op) is self.OPERATOR and (not self.FLOATS_ONLY or is_float(element_of(op.operands[0])))

    def initial(self, element: Attribute) -> float:
        """What an accumulator starts from."""
        return 0.0

    @abstractmethod
    def take(self, call: KernelCall, total: Value, x: Value) -> Value:
        """The accumulator with one more element."""

    def finish(self, call: KernelCall, total: Value, count: Value | None) -> Value:
        """The result from the accumulator and the number of elements."""
        return total

    def count(self, call: KernelCall, window: Window, sizes: Shape, taps: Sequence[Taps]) -> Value | None:
        """The number of elements that a mean divides by."""
        return None

    def emit(self, call: KernelCall) -> None:
        b, source, result = call.b, call.one("input"), call.result
        op = cast(Pool, call.op)
        last = is_channels_last(op.layout)
        before, after = Image.of(source, last), Image.of(result, last)
        window = op.window()
        type_ = computed(source.element)
        width = lanes_for(call.target, type_, (before.strides[-1], after.strides[-1]), VECTORS)

        def pixel(indices: list[Index]) -> None:
            batch, *outputs = indices
            taps = [
                Taps.within(b, window, axis, output, after.sizes[axis + 1], (0, before.sizes[axis + 1]))
                for axis, output in enumerate(outputs)
            ]
            count = self.count(call, window, before.sizes[1:-1], taps)
            base = linear([batch, *(t.origin for t in taps)], before.strides[:-1])
            into = linear(indices, after.strides[:-1])

            def channels(c: Index, lanes: int) -> None:
                start = b.constant(self.initial(source.element), vector(type_, lanes))
                offset = moved_by(base, c, before.strides[-1])
                total = self._window(call, window, before, taps, offset, start)
                store(b, result, moved_by(into, c, after.strides[-1]), self.finish(call, total, count))

            vector_loop(b, after.sizes[-1], width, channels)

        nest(b, after.sizes[:-1], pixel)

    def _window(
        self, call: KernelCall, window: Window, image: Image, taps: Sequence[Taps], offset: Index, total: Value
    ) -> Value:
        """The loops over the taps of one window, from the axis `len(window.kernel) - len(taps)` on."""
        if not taps:
            return self.take(call, total, load(call.b, call.one("input"), offset, 1, total.lanes))
        axis = len(window.kernel) - len(taps)
        step = image.strides[axis + 1] * window.dilations[axis]
        with call.b.loop(taps[0].first, taps[0].last, 1, carried=[total]) as loop:
            moved = moved_by(offset, loop.index, step)
            loop.set(self._window(call, window, image, taps[1:], moved, loop.values[0]))
        return loop.results[0]


@kernel("max-pool")
class MaxPoolKernel(PoolKernel):
    """The largest element of each window; a NaN wins."""

    name = "max-pool"
    OPERATOR = MaxPoolOp
    FLOATS_ONLY = False

    def initial(self, element: Attribute) -> float:
        return lowest(element)

    def take(self, call: KernelCall, total: Value, x: Value) -> Value:
        return largest_of(call.result.element)(call.b, total, x)


@kernel("avg-pool")
class AvgPoolKernel(PoolKernel):
    """The sum of each window over the number of elements that count."""

    name = "avg-pool"
    OPERATOR = AvgPoolOp

    def take(self, call: KernelCall, total: Value, x: Value) -> Value:
        return total + x

    def finish(self, call: KernelCall, total: Value, count: Value | None) -> Value:
        assert count is not None
        return total / count

    def count(self, call: KernelCall, window: Window, sizes: Shape, taps: Sequence[Taps]) -> Value | None:
        b = call.b
        if flag(cast(AvgPoolOp, call.op).count_include_pad):
            outputs = window.outputs(sizes)
            padding = [window.padding(axis) for axis in range(len(sizes))]
            taps = [
                Taps.within(
                    b, window, axis, t.output, outputs[axis], (-padding[axis][0], sizes[axis] + padding[axis][1])
                )
                for axis, t in enumerate(taps)
            ]
        total = b.index(1)
        for t in taps:
            total = total * t.count(b)
        return b.cast(total, computed(call.result.element))


@kernel("lp-pool")
class LpPoolKernel(PoolKernel):
    """The p-th root of the sum of p-th powers of magnitudes."""

    name = "lp-pool"
    OPERATOR = LpPoolOp

    def take(self, call: KernelCall, total: Value, x: Value) -> Value:
        b, magnitude = call.b, call.b.fabs(x)
        factors = integer(cast(LpPoolOp, call.op).p)
        power = magnitude
        for bit in bin(factors)[3:]:
            power = power * power * magnitude if bit == "1" else power * power
        return b.add(total, power)

    def finish(self, call: KernelCall, total: Value, count: Value | None) -> Value:
        p = integer(cast(LpPoolOp, call.op).p)
        if p == 1:
            return total
        if p == 2:
            return call.b.sqrt(total)
        return MATH["powf"](call.b, total, call.b.constant(1.0 / p, total.type))

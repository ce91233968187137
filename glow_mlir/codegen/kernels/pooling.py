"""The loops of sums of windows: vectors over channels or over the pixels of a row, windows clipped at the border."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.access import is_computed_as_stored, load
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, known_steps, linear, nest, nest_steps, numbers, vector_loop
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels import taps as windows
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.dialects.glow_high.pooling import Images
from glow_mlir.dialects.glow_low.memory import has_unit_stride, strides_of
from glow_mlir.dialects.shapes import Shape, element_of, largest_shape, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.target import Target
from glow_mlir.dialects.windows import Window, is_channels_last
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Image:
    """Sizes and strides of an image with its axes in the order batch, spatial axes, channels, whatever its layout."""

    sizes: Extents
    strides: Shape

    @staticmethod
    def of(value: SSAValue, channels_last: bool, extents: Extents | None = None) -> Image:
        """The image behind an operand, of that many elements along each axis; by default, of the most there may be."""
        shape, strides = extents or largest_shape(value), strides_of(value)
        order = list(range(len(shape)))
        if not channels_last:
            order.append(order.pop(1))
        return Image(tuple(shape[a] for a in order), tuple(strides[a] for a in order))


@dataclass(frozen=True)
class Taps(windows.Taps):
    """The taps of a window along one axis that count."""

    output: Index
    """Position of the window among the windows of the axis."""
    origin: Index
    """Place of tap 0 in the input, maybe outside."""

    @staticmethod
    def of(b: Builder, window: Window, axis: int, output: Index, counts: tuple[Index, Index]) -> Taps:
        """
        The taps of window `output` along `axis` that lie in the input.

        `counts` are how many windows there are, and how many elements of the input.
        """
        outputs, high = counts
        size, stride, (before, after) = window.kernel[axis], window.strides[axis], window.padding(axis)
        origin: Index = output * stride - before
        if isinstance(outputs, int) and isinstance(high, int):
            is_whole = (outputs - 1) * stride - before + window.extent(axis) <= high
        else:
            is_whole = after <= 0 and not window.ceil_mode
        if before <= 0 and is_whole:
            return Taps(0, size, output, origin)
        origin = b.index(origin)
        found = windows.Taps.within(b, origin, window.dilations[axis], size, 0, high)
        return Taps(found.first, found.last, output, origin)


def runs_along_rows(before: Image, after: Image, window: Window) -> bool:
    """Whether neighbours in memory are pixels of a row, and those of windows are neighbours, or every second."""
    steps = (before.strides[-2], after.strides[-2])
    channels = (before.strides[-1], after.strides[-1])
    return steps == (1, 1) and window.strides[-1] <= 2 and (after.sizes[-1] == 1 or channels != (1, 1))


def runs_over_channels(op: Images) -> bool:
    """Whether vectors of a pool surely run over channels, which are then the columns of an epilogue's planes."""
    return is_channels_last(op.layout) and smallest(sizes_of(op.input)[-1]) > 1 and has_unit_stride(op.input)


PoolT = TypeVar("PoolT", bound=Images, default=Any)

Counts = Sequence[tuple[Index, Index]]
"""How many windows there are along each spatial axis, and how many elements of the input."""

Combine = Callable[[Value, Value], Value]

Reduce = Callable[..., None]
"""Computes a vector of channels of a pixel: from which on, how many lanes it has, and the mask of those there are."""

Visit = Callable[[Index, Sequence[Value]], Sequence[Value]]
"""What accumulators are behind a place of the input."""


@dataclass(frozen=True)
class Elements:
    """The elements of a window, or a vector of windows, the first of whose taps is at an offset of the input."""

    call: KernelCall
    taps: Sequence[Taps]
    steps: Shape
    """Elements of the input from one tap to the next along each axis."""
    offset: Index
    lanes: int
    mask: Value | None = None
    """The lanes that there are; all where it is `None`."""
    stride: int = 1
    """Elements of the input from one lane to the next."""

    def folded(self, take: Combine, total: Value) -> Value:
        """The elements taken into an accumulator, those of the first axis outermost."""
        axes = range(len(self.taps))
        (result,) = self.walked(lambda place, totals: [take(totals[0], self.load(place))], [total], axes, self.offset)
        return result

    def walked(
        self, visit: Visit, totals: Sequence[Value], axes: range, offset: Index, unrolled: int = 0
    ) -> Sequence[Value]:
        """
        The places of the taps along some axes, from an offset of the input on, taken into accumulators.

        Up to `unrolled` of them, there is code for each.
        """
        if (places := windows.few((self.taps[axis] for axis in axes), unrolled)) is not None:
            steps = [self.steps[axis] for axis in axes]
            for place in places:
                totals = visit(moved_by(offset, sum(map(operator.mul, place, steps)), 1), totals)
            return totals
        if not axes:
            return visit(offset, totals)
        taps = self.taps[axes[0]]
        with self.call.b.loop(taps.first, taps.last, 1, carried=totals) as loop:
            place = moved_by(offset, loop.index, self.steps[axes[0]])
            loop.set(*self.walked(visit, loop.values, axes[1:], place, unrolled))
        return loop.results

    def load(self, offset: Index) -> Value:
        """The element at a place, or the vector of those of all windows."""
        b, source = self.call.b, self.call.one("input")
        if self.lanes == 1 or self.stride == 1:
            return load(b, source, offset, 1, self.lanes, self.mask)
        return windows.every_second(
            b, self.lanes, lambda start: load(b, source, moved_by(offset, start, 1), 1, self.lanes)
        )


class PoolKernel(Kernel[PoolT]):
    """The loops over windows; channels that fill no vector are lanes of one."""

    AXES = ("lines",)
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: PoolT) -> bool:
        return not op.regions or (runs_over_channels(op) and is_computed_as_stored(op))

    @abstractmethod
    def width(self, target: Target, element: Attribute, steps: tuple[int, int]) -> int:
        """Lanes of an innermost loop whose operands move by `steps`: enough to hide the latency of an addition."""

    @abstractmethod
    def totals(self, call: KernelCall[PoolT], elements: Elements) -> Sequence[Value]:
        """The accumulators behind a window: one of all lanes, or one for each."""

    @abstractmethod
    def finish(self, call: KernelCall[PoolT], total: Value, count: Value | None) -> Value:
        """The result from the accumulator and the number of elements."""

    @abstractmethod
    def count(self, call: KernelCall[PoolT], window: Window, taps: Sequence[Taps]) -> Value | None:
        """The number of elements, where the result depends on it."""

    def emit(self, call: KernelCall[PoolT]) -> None:
        op = call.op
        last = is_channels_last(op.layout)
        before, after = (Image.of(x.value, last, x.extents) for x in (call.one("input"), call.result))
        emission = PoolEmission(self, call, op.window(), before, after)
        if runs_along_rows(before, after, op.window()):
            emission.rows()
        else:
            emission.pixels()

    def cuts(self, op: PoolT, target: Target) -> Mapping[str, int]:
        before, after = (Image.of(value, is_channels_last(op.layout)) for value in (op.input, op.result))
        if runs_along_rows(before, after, op.window()):
            return {"lines": math.prod(numbers(after.sizes)) // max(1, numbers(after.sizes)[-2])}
        width = self.width(target, element_of(op.input), (before.strides[-1], after.strides[-1]))
        *pixels, channels = numbers(after.sizes)
        return {"lines": nest_steps((math.prod(pixels), channels), width)}


@dataclass(frozen=True)
class PoolEmission:
    """The loops of one pooling instruction."""

    kernel: PoolKernel
    call: KernelCall
    window: Window
    before: Image
    after: Image

    def width(self, steps: tuple[int, int]) -> int:
        """Lanes of the innermost loop, whose operands move by `steps`."""
        return self.kernel.width(self.call.target, self.call.one("input").element, steps)

    def pixels(self) -> None:
        """One pixel at a time, vectors over its channels."""
        steps = (self.before.strides[-1], self.after.strides[-1])

        def pixel(indices: list[Index]) -> None:
            batch, *outputs = indices
            taps = [self.taps(axis, output) for axis, output in enumerate(outputs)]
            reduce = self.reduction(batch, taps)
            self.channels(self.width(steps), reduce, channels)

        share = self.call.share("lines")
        outer = self.after.sizes[:-1]
        is_known = all(isinstance(size, int) for size in outer)
        by_pixels = share.is_all or not is_known or known_steps(outer) >= share.parts
        channels = ALL if by_pixels else share
        nest(self.call.b, self.after.sizes[:-1], pixel, share if by_pixels else ALL)

    def channels(self, width: int, reduce: Reduce, share: Partition) -> None:
        """Vectors over the channels of a pixel, of which the share has some."""
        b, size = self.call.b, self.after.sizes[-1]
        one = max(1, width // kernel_costs(self.call.target).independent_vectors)
        rest = size % one if isinstance(size, int) and self.call.target.vector_bits else 0
        if rest.bit_count() < 2:
            vector_loop(b, size, width, reduce, share, windows.scalar_rest(self.call.target))
            return
        assert isinstance(size, int), "what remains is counted by Python"
        vectors = -(-size // width)
        vector_loop(b, size - rest, width, reduce, share)
        with b.loop(*share.within(vectors, vectors - 1, 1)):
            reduce(size - rest, 1 << rest.bit_length(), b.mask(rest, 1 << rest.bit_length()))

    def rows(self) -> None:
        """One channel of one row at a time, vectors over the pixels whose windows do not reach beyond the row."""
        b, axis = self.call.b, len(self.window.kernel) - 1
        size, count = self.before.sizes[-2], self.after.sizes[-2]
        stride, before = self.window.strides[axis], self.window.pads[axis]
        first, last = windows.whole_windows(b, size, count, stride, before, self.window.extent(axis))

        def row(indices: list[Index]) -> None:
            batch, channel, *outputs = indices
            outer = [self.taps(axis, output) for axis, output in enumerate(outputs)]

            def clipped(start: Index, stop: Index) -> None:
                with b.loop(start, stop, 1) as x:
                    self.reduction(batch, [*outer, self.taps(axis, x)])(channel, 1)

            def whole(x: Index, lanes: int) -> None:
                place = x + first
                taps = Taps(0, self.window.kernel[axis], place, place * stride - before)
                self.reduction(batch, [*outer, taps], stride)(channel, lanes)

            if not isinstance(first, int) or first > 0:
                clipped(0, first)
            width = self.width((1, 1)) if stride == 1 or self.call.target.vector_bits else 1
            vector_loop(b, last - first, width, whole, rest=windows.scalar_rest(self.call.target))
            if not isinstance(last, int) or not isinstance(count, int) or last < count:
                clipped(last, count)

        nest(b, (self.after.sizes[0], self.after.sizes[-1], *self.after.sizes[1:-2]), row, self.call.share("lines"))

    def taps(self, axis: int, output: Index) -> Taps:
        """The taps along an axis that lie in the input."""
        return Taps.of(self.call.b, self.window, axis, output, self.counts[axis])

    @property
    def counts(self) -> Counts:
        """How many windows and elements of the input there are along each spatial axis."""
        return list(zip(self.after.sizes[1:-1], self.before.sizes[1:-1], strict=True))

    def reduction(self, batch: Index, taps: Sequence[Taps], stride: int = 1) -> Reduce:
        """
        Reduces the windows behind `taps`: a function of a channel, how many lanes there are, and their mask.

        From one lane to the next there are `stride` elements of the input.
        """
        count = self.kernel.count(self.call, self.window, taps)
        base = linear([batch, *(t.origin for t in taps)], self.before.strides[:-1])
        between = [pitch * size for pitch, size in zip(self.before.strides[1:], self.window.dilations, strict=False)]
        pixel = [batch, *(t.output for t in taps)]
        into = linear(pixel, self.after.strides[:-1])

        def reduce(channel: Index, lanes: int, mask: Value | None = None) -> None:
            first = moved_by(base, channel, self.before.strides[-1])
            totals = self.kernel.totals(
                self.call, Elements(self.call, taps, tuple(between), first, lanes, mask, stride)
            )
            for lane, total in enumerate(totals):
                place = channel if lane == 0 else channel + lane
                value = self.kernel.finish(self.call, total, count)
                self.store(value, moved_by(into, place, self.after.strides[-1]), pixel, place, mask)

        return reduce

    def store(self, value: Value, offset: Index, pixel: Sequence[Index], channel: Index, mask: Value | None) -> None:
        """Store a vector of results of a pixel, from a channel on, or pass it through the epilogue."""
        sink = Sink.of(self.call)
        places = [moved_by(linear(pixel, p.strides[:-1]), channel, p.strides[-1]) for p in sink.planes]
        steps = [1, *(plane.strides[-1] for plane in sink.planes)]
        sink.store(self.call.b, [offset, *places], steps, value, mask)

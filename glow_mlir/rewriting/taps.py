"""Windows over images, tap by tap: the elements that a kernel element reads or writes for each window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.shapes import Shape, rank_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import Window, is_channels_last, split_sizes
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class Taps:
    """
    The taps of windows over an image in a layout: the kernel elements, in row-major order.

    `inputs` are the spatial sizes of the image, `outputs` the number of windows along each spatial axis.
    """

    window: Window
    layout: StringAttr
    inputs: Shape
    outputs: Shape

    @staticmethod
    def of(window: Window, image: SSAValue, windows: SSAValue, layout: StringAttr) -> Taps:
        """
        The taps of windows over an image; `windows` has an element for each window.

        Raises `RunTimeSizeError` for a spatial size that is known only at run time.
        """
        inputs, outputs = (static(split_sizes(value, layout)[1]) for value in (image, windows))
        return Taps(window, layout, inputs, outputs)

    @property
    def axes(self) -> range:
        """The spatial axes of an image."""
        first = 1 if is_channels_last(self.layout) else 2
        return range(first, first + len(self.inputs))

    @property
    def are_apart(self) -> bool:
        """Whether windows do not overlap."""
        sizes = zip(self.window.kernel, self.window.strides, self.window.dilations, self.outputs, strict=True)
        return all(dilation == 1 and (stride >= kernel or count == 1) for kernel, stride, dilation, count in sizes)

    def reach(self, axis: int) -> int:
        """The end of the last window along a spatial axis, relative to the first element of the first window."""
        return (self.outputs[axis] - 1) * self.window.strides[axis] + self.window.extent(axis)

    def behind(self, axis: int) -> int:
        """How far the last window extends beyond the image along a spatial axis; negative if the image is longer."""
        return self.reach(axis) - self.window.padding(axis)[0] - self.inputs[axis]

    # What taps read

    def read(self, image: SSAValue, emit: Emitter, fill: SSAValue | None = None) -> Iterator[SSAValue]:
        """For each tap, the elements it reads, as images of the size of `outputs`. Padding is `fill`, or 0."""
        widths = [[0] * rank_of(image), [0] * rank_of(image)]
        for number, axis in enumerate(self.axes):
            widths[0][axis], widths[1][axis] = self.window.padding(number)[0], max(0, self.behind(number))
        pads = (*widths[0], *widths[1])
        padded = emit(PadOp, image, fill, pads=pads) if any(pads) else image
        return (self._slice(padded, tap_index, emit) for tap_index in self.taps())

    def taps(self) -> Iterator[Shape]:
        """The position of each tap in the kernel."""
        return product(*map(range, self.window.kernel))

    def _slice(self, padded: SSAValue, tap_index: Shape, emit: Emitter) -> SSAValue:
        rank = rank_of(padded)
        starts, ends, steps = [0] * rank, list(sizes_of(padded)), [1] * rank
        for number, axis in enumerate(self.axes):
            steps[axis] = self.window.strides[number]
            starts[axis] = tap_index[number] * self.window.dilations[number]
            ends[axis] = starts[axis] + (self.outputs[number] - 1) * steps[axis] + 1
        if not any(starts) and tuple(ends) == sizes_of(padded) and set(steps) == {1}:
            return padded
        return emit(SliceOp, padded, starts=starts, ends=ends, steps=steps)

    # Where taps write

    def opened(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """An image with an element for each window, and an axis of size one after each spatial axis."""
        shape: list[Size] = []
        for axis, size in enumerate(sizes_of(value)):
            shape.extend((size, 1) if axis in self.axes else (size,))
        return emit(ReshapeOp, value, shape=shape)

    def kernel_axis(self, number: int) -> int:
        """The kernel axis of `opened` images along a spatial axis."""
        return self.axes[number] + number + 1

    def written(self, parts: Sequence[SSAValue], emit: Emitter) -> SSAValue:
        """
        The image to which each tap adds its part for each window: the transpose of `read`.

        Taps whose positions are congruent modulo the strides write to the same elements, so they are added first.
        """
        shifts = [[divmod(tap * d, apart) for tap in range(k)] for k, d, apart in self._along()]
        counts = [size + max(shift for shift, _ in along) for size, along in zip(self.outputs, shifts, strict=True)]
        found: dict[Shape, SSAValue] = {}
        for tap_index, part in zip(self.taps(), parts, strict=True):
            moves = [along[tap] for along, tap in zip(shifts, tap_index, strict=True)]
            phase, shifted = tuple(rest for _, rest in moves), self._shifted(part, [m for m, _ in moves], counts, emit)
            found[phase] = emit(AddOp, found[phase], shifted) if phase in found else shifted
        found = {phase: self.opened(value, emit) for phase, value in found.items()}
        like = next(iter(found.values()))
        zeros = emit.splat(0, like, sizes_of(like))
        for number in reversed(range(len(self.inputs))):
            joined: dict[Shape, SSAValue] = {}
            apart = self._along()[number][2]
            for phase in dict.fromkeys(phase[:number] for phase in found):
                row = [found.get((*phase, rest), zeros) for rest in range(apart)]
                joined[phase] = row[0] if len(row) == 1 else emit(ConcatOp, row, axis=self.kernel_axis(number))
            shape = list(sizes_of(zeros))
            shape[self.kernel_axis(number)] = apart
            zeros = emit.splat(0, like, tuple(shape))
            found = joined
        return self.closed(found[()], emit)

    def _along(self) -> list[tuple[int, int, int]]:
        """Taps, dilation and stride along each axis."""
        window = self.window
        apart = [
            stride if count > 1 else window.extent(axis)
            for axis, (stride, count) in enumerate(zip(window.strides, self.outputs, strict=True))
        ]
        return list(zip(window.kernel, window.dilations, apart, strict=True))

    def _shifted(self, part: SSAValue, shifts: Sequence[int], counts: Sequence[int], emit: Emitter) -> SSAValue:
        """A part shifted by zeros to `counts` windows along each axis."""
        rank = rank_of(part)
        pads = [0] * (2 * rank)
        for axis, shift, count, outputs in zip(self.axes, shifts, counts, self.outputs, strict=True):
            pads[axis], pads[rank + axis] = shift, count - outputs - shift
        return emit(PadOp, part, pads=pads) if any(pads) else part

    def closed(self, blocks: SSAValue, emit: Emitter) -> SSAValue:
        """The image assembled from blocks, whose axes follow those of windows; gaps are zeros."""
        rank = rank_of(blocks)
        after = [0] * (2 * rank)
        shape = list(sizes_of(blocks))
        for number, (_, _, apart) in enumerate(self._along()):
            tap_index = self.kernel_axis(number)
            (length,) = static((shape[tap_index],))
            after[rank + tap_index] = apart - length
            shape[tap_index] = apart
        spread = emit(PadOp, blocks, pads=after) if any(after) else blocks
        for number in reversed(range(len(self.inputs))):
            tap_index = self.kernel_axis(number)
            shape[tap_index - 1 : tap_index + 1] = [shape[tap_index - 1] * shape[tap_index]]
        return self._cut(emit(ReshapeOp, spread, shape=shape), emit)

    def _cut(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """Crop a padded image to the image; append zeros after the last window."""
        rank = rank_of(value)
        starts, ends, after = [0] * rank, list(sizes_of(value)), [0] * (2 * rank)
        for number, axis in enumerate(self.axes):
            (length,) = static((ends[axis],))
            starts[axis] = self.window.padding(number)[0]
            last = starts[axis] + self.inputs[number]
            ends[axis] = min(last, length)
            after[rank + axis] = max(0, last - length)
        if any(starts) or tuple(ends) != sizes_of(value):
            value = emit(SliceOp, value, starts=starts, ends=ends)
        return emit(PadOp, value, pads=after) if any(after) else value

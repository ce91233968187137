"""
Lowering of transposed convolutions.

Outputs with equal position modulo the strides, a *phase*, are a convolution with every stride-th tap of the flipped
filter (Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep learning", chapter 4). Either each phase is
a convolution of its own, which writes every stride-th element, or one convolution computes all phases as its channels.
If the filter is shorter than the stride, outputs do not overlap, and zeros go between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import gcd, prod

from xdsl.ir import SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import rank_of, shape_of, size_along, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import channel_axis, is_channels_last, split_sizes
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.ir.traversal import function_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class Phase:
    """
    The taps that reach every stride-th output along an axis: `taps` taps, every `step`-th from `first` on.

    Their convolution needs `leading` zeros in front of the input, or skips as many elements if negative.
    """

    first: int
    step: int
    taps: int
    dilation: int
    leading: int

    @property
    def reach(self) -> int:
        """The distance from the first to the last input element that the phase reads for an output."""
        return (self.taps - 1) * self.dilation


@dataclass(frozen=True)
class Axis:
    """
    A spatial axis: output o is the sum over taps t of filter[t] * input[(o + padding - t * dilation) / stride], for
    integer indices.
    """

    inputs: Size
    outputs: Size
    kernel: int
    stride: int
    dilation: int
    padding: int

    @property
    def count(self) -> Size:
        """The number of outputs per phase, including those cropped at the end."""
        return (self.outputs + (self.stride - 1)) // self.stride

    @property
    def is_sparse(self) -> bool:
        """Whether the outputs of neighbouring inputs do not overlap."""
        return self.dilation == 1 and (self.stride > self.kernel or (self.inputs == 1 and self.stride < self.kernel))

    def phase(self, number: int) -> Phase | None:
        """The phase of outputs `number`, `number` + stride, …; `None` if no tap reaches it."""
        found = [t for t in range(self.kernel) if (number + self.padding - t * self.dilation) % self.stride == 0]
        if not found:
            return None
        common = gcd(self.dilation, self.stride)
        phase = Phase(found[0], self.stride // common, len(found), self.dilation // common, 0)
        ahead = (number + self.padding - found[0] * self.dilation) // self.stride
        return replace(phase, leading=phase.reach - ahead)

    @property
    def phases(self) -> list[Phase | None]:
        """All phases."""
        return [self.phase(number) for number in range(self.stride)]

    @property
    def taps(self) -> int:
        """The maximum number of taps of a phase."""
        return -(-self.kernel // self.stride)


@dataclass(frozen=True)
class TransposedConvolution:
    """A transposed convolution with its axes."""

    op: ConvTransposeOp
    emit: Emitter
    axes: Sequence[Axis]

    @staticmethod
    def of(op: ConvTransposeOp, emit: Emitter) -> TransposedConvolution:
        """Describe an operator with its axes."""
        window, outputs, inputs = op.window(), *(split_sizes(v, op.layout)[1] for v in (op.result, op.input))
        axes = [
            Axis(inputs[n], outputs[n], kernel, window.strides[n], window.dilations[n], window.padding(n)[0])
            for n, kernel in enumerate(window.kernel)
        ]
        return TransposedConvolution(op, emit, axes)

    @property
    def positions(self) -> range:
        """The indices of the spatial axes."""
        first = _first_axis(self.op)
        return range(first, first + len(self.axes))

    @property
    def groups(self) -> int:
        """The number of channel groups."""
        return integer(self.op.group)

    @property
    def is_joined(self) -> bool:
        """Whether one convolution computes all phases."""
        if any(axis.dilation > 1 for axis in self.axes):
            return False
        phases, costs = prod(axis.stride for axis in self.axes), costs_of(function_of(self.op).target)
        if any(axis.kernel % axis.stride for axis in self.axes):
            return phases > costs.most_uneven_phases
        outputs = size_along(self.op.result, channel_axis(rank_of(self.op.result), self.op.layout)) // self.groups
        if outputs == 1 and shape_of(self.op.filter)[0] == self.groups > 1:
            return phases > costs.most_phases  # Vectors of a depthwise convolution are of groups.
        lanes = costs.channel_lanes
        joined, apart = _channels(phases * outputs, lanes), phases * _channels(outputs, lanes)
        # Moving phases from channels to pixels is a transpose, which merges with one of the result.
        is_turned = any(isinstance(use.operation, TransposeOp) for use in self.op.result.uses)
        return phases > costs.most_phases or joined < apart or (joined == apart and is_turned)

    def padded(self, leading: Sequence[int], trailing: Sequence[Size]) -> SSAValue:
        """Pad the input with zeros along the spatial axes, if needed."""
        rank = rank_of(self.op.input)
        before, after = [0] * rank, [0] * rank
        for tap, front, back in zip(self.positions, leading, static(tuple(trailing)), strict=True):
            before[tap], after[tap] = max(0, front), max(0, back)
        pads = (*before, *after)
        return self.emit(PadOp, self.op.input, pads=pads) if any(pads) else self.op.input

    def cut(self, image: SSAValue, starts: Sequence[int], sizes: Sequence[Size]) -> SSAValue:
        """Slice an image along the spatial axes."""
        first, last = [0] * rank_of(image), list(sizes_of(image))
        for tap, start, size in zip(self.positions, starts, sizes, strict=True):
            first[tap], last[tap] = start, start + size
        if not any(first) and tuple(last) == sizes_of(image):
            return image
        return self.emit(SliceOp, image, starts=first, ends=last)

    def convolution(
        self, image: SSAValue, filter_: SSAValue, bias: SSAValue | None, dilations: Sequence[int]
    ) -> SSAValue:
        """A convolution of an image that is padded already."""
        return self.emit(ConvOp, image, filter_, bias, dilations=dilations, group=self.op.group, layout=self.op.layout)


def _first_axis(op: ConvTransposeOp) -> int:
    return 1 if is_channels_last(op.layout) else 2


def _channels(count: int, lanes: int) -> int:
    """The cost of computing this many channels together."""
    return -(-count // lanes) * lanes


# ---- a filter shorter than the stride --------------------------------------------------------------------------


def _sparse(of: TransposedConvolution) -> SSAValue:
    """
    Convolve sparse axes with the filter's length as stride, insert zeros after each filter, and crop; a single input
    yields the filter, whatever the stride.
    """
    op, emit = of.op, of.emit
    pads, strides, starts = list(op.window().pads), list(op.window().strides), [0] * len(of.axes)
    extra = [0] * len(of.axes) if op.output_padding is None else list(ints(op.output_padding))
    for number, axis in enumerate(of.axes):
        if axis.is_sparse:
            strides[number], extra[number], pads[number], pads[number + len(of.axes)] = axis.kernel, 0, 0, 0
            starts[number] = axis.padding
    properties = {"dilations": op.dilations, "group": op.group, "layout": op.layout}
    value = emit(
        ConvTransposeOp, op.input, op.filter, None, strides=strides, pads=pads, output_padding=extra, **properties
    )
    for tap, axis in zip(of.positions, of.axes, strict=True):
        if not axis.is_sparse:
            continue
        shape = list(sizes_of(value))
        split = [*shape[:tap], axis.inputs, axis.kernel, *shape[tap + 1 :]]
        spread = _extended(emit(ReshapeOp, value, shape=split), tap + 1, axis.stride, emit)
        shape[tap] = axis.inputs * sizes_of(spread)[tap + 1]
        value = _extended(emit(ReshapeOp, spread, shape=shape), tap, axis.padding + axis.outputs, emit)
    value = of.cut(value, starts, [axis.outputs for axis in of.axes])
    return _with_bias(of, value)


def _extended(value: SSAValue, axis: int, size: Size, emit: Emitter) -> SSAValue:
    """Pad the end of an axis with zeros up to `size`; unchanged if it is as large already."""
    rank, (missing,) = rank_of(value), static((size - sizes_of(value)[axis],))
    if missing <= 0:
        return value
    widths = [0] * (2 * rank)
    widths[rank + axis] = missing
    return emit(PadOp, value, pads=widths)


def _with_bias(of: TransposedConvolution, value: SSAValue) -> SSAValue:
    """Add the bias to each output."""
    bias = of.op.bias
    if bias is None:
        return value
    behind = 0 if is_channels_last(of.op.layout) else len(of.axes)
    return of.emit(AddOp, value, of.emit(ReshapeOp, bias, shape=(*shape_of(bias), *(1,) * behind)))


# ---- a convolution for each phase ------------------------------------------------------------------------------


def _separate(of: TransposedConvolution) -> SSAValue:
    """Compute each combination of phases along the axes with a convolution of its own."""
    phases = [axis.phases for axis in of.axes]
    filter_ = _flipped_filter(of)
    leading = [max(0, *(phase.leading for phase in along if phase)) for along in phases]
    trailing = [
        max(static(tuple(axis.count + phase.reach - axis.inputs - phase.leading for phase in along if phase)))
        for axis, along in zip(of.axes, phases, strict=True)
    ]
    image = of.padded(leading, trailing)
    is_whole = all(phase is not None for along in phases for phase in along)
    bias = of.op.bias if is_whole else None
    parts = {
        tuple(number for number, _ in combination): _phase(
            of, image, leading, filter_, [phase for _, phase in combination], bias
        )
        for combination in product(*([(n, phase) for n, phase in enumerate(along) if phase] for along in phases))
    }
    whole = of.cut(_interleaved(of, parts), [0] * len(of.axes), [axis.outputs for axis in of.axes])
    return whole if is_whole else _with_bias(of, whole)


def _phase(
    of: TransposedConvolution,
    image: SSAValue,
    zeros: Sequence[int],
    filter_: SSAValue,
    phases: Sequence[Phase],
    bias: SSAValue | None,
) -> SSAValue:
    """The outputs of one combination of phases, from the input with `leading` zeros and the flipped filter."""
    starts = [front - phase.leading for front, phase in zip(zeros, phases, strict=True)]
    sizes = [axis.count + phase.reach for axis, phase in zip(of.axes, phases, strict=True)]
    rank = len(shape_of(filter_))
    first, last, steps = [0] * rank, list(shape_of(filter_)), [1] * rank
    for tap, axis, phase in zip(of.positions, of.axes, phases, strict=True):
        last[tap], steps[tap] = axis.kernel - phase.first, phase.step
        first[tap] = last[tap] - 1 - (phase.taps - 1) * phase.step
    taps = of.emit(SliceOp, filter_, starts=first, ends=last, steps=steps)
    return of.convolution(of.cut(image, starts, sizes), taps, bias, [phase.dilation for phase in phases])


def _flipped_filter(of: TransposedConvolution) -> SSAValue:
    """The filter as that of a convolution: outputs first, inputs where outputs were, kernel reversed."""
    shape, emit = shape_of(of.op.filter), of.emit
    outputs_axis = channel_axis(len(shape), of.op.layout)
    grouped = emit(ReshapeOp, of.op.filter, shape=(of.groups, shape[0] // of.groups, *shape[1:]))
    order = [0, *range(1, len(shape) + 1)]
    order[1], order[1 + outputs_axis] = order[1 + outputs_axis], order[1]
    swapped = emit(TransposeOp, grouped, permutation=order)
    joined = list(shape)
    joined[0], joined[outputs_axis] = shape[outputs_axis] * of.groups, shape[0] // of.groups
    return _reversed(emit(ReshapeOp, swapped, shape=joined), of.positions, emit)


def _reversed(value: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    """Reverse the elements along some axes."""
    shape = shape_of(value)
    starts, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    for axis in axes:
        starts[axis], ends[axis], steps[axis] = shape[axis] - 1, -1, -1
    return emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


def _interleaved(of: TransposedConvolution, parts: Mapping[tuple[int, ...], SSAValue]) -> SSAValue:
    """Interleave the results of all combinations of phases; zeros for phases without taps."""
    shape = list(sizes_of(next(iter(parts.values()))))
    split = [size for tap, size in enumerate(shape) for size in ((size, 1) if tap in of.positions else (size,))]
    found = {tap: of.emit(ReshapeOp, part, shape=split) for tap, part in parts.items()}
    for number in reversed(range(len(of.axes))):
        zeros: SSAValue | None = None
        if len({tap[number] for tap in found}) < of.axes[number].stride:
            one = next(iter(found.values()))
            zeros = of.emit.splat(0.0, one, sizes_of(one))
        axis, joined = of.positions[number] + number + 1, dict[tuple[int, ...], SSAValue]()
        for tap in {tap[:number]: None for tap in found}:
            values = [found.get((*tap, phase), zeros) for phase in range(of.axes[number].stride)]
            joined[tap] = of.emit(ConcatOp, [value for value in values if value is not None], axis=axis)
        found = joined
    for tap, axis in zip(of.positions, of.axes, strict=True):
        shape[tap] = shape[tap] * axis.stride
    return of.emit(ReshapeOp, found[()], shape=shape)


# ---- one convolution for all phases ----------------------------------------------------------------------------


def _joined(of: TransposedConvolution) -> SSAValue:
    """
    Compute all phases with one convolution: within each group, its channels are the phases of an output channel.

    Phases are counted from outputs that are cropped, as many as the padding exceeds a multiple of the stride: all
    phases then read the same elements.
    """
    offsets = [axis.padding % axis.stride for axis in of.axes]
    counts = [
        (axis.outputs + (offset + axis.stride - 1)) // axis.stride
        for axis, offset in zip(of.axes, offsets, strict=True)
    ]
    leading = [axis.taps - 1 - axis.padding // axis.stride for axis in of.axes]
    sizes = [count + axis.taps - 1 for axis, count in zip(of.axes, counts, strict=True)]
    trailing = [size - axis.inputs - front for axis, size, front in zip(of.axes, sizes, leading, strict=True)]
    image = of.cut(of.padded(leading, trailing), [max(0, -front) for front in leading], sizes)
    found = of.convolution(image, _joined_filter(of), _joined_bias(of), [1] * len(of.axes))
    return of.cut(_spread_channels(of, found), offsets, [axis.outputs for axis in of.axes])


def _joined_filter(of: TransposedConvolution) -> SSAValue:
    """The taps of all phases: [groups, phases…, outputs] in front of the other filter axes."""
    emit, rank, last, filter_ = of.emit, len(of.axes) + 2, is_channels_last(of.op.layout), of.op.filter
    after = [0] * rank
    for tap, axis in zip(of.positions, of.axes, strict=True):
        after[tap] = axis.stride * axis.taps - axis.kernel
    padded = emit(PadOp, filter_, pads=(*[0] * rank, *after)) if any(after) else filter_
    depth, outputs = shape_of(filter_)[0] // of.groups, shape_of(filter_)[-1 if last else 1]
    windows = [size for axis in of.axes for size in (axis.taps, axis.stride)]
    split = (of.groups, depth, *windows, outputs) if last else (of.groups, depth, outputs, *windows)
    first = 2 if last else 3
    windows_at = range(first, first + len(windows), 2)
    reshaped = _reversed(emit(ReshapeOp, padded, shape=split), windows_at, emit)
    inner = (*windows_at, 1) if last else (1, *windows_at)
    phases_at = (tap + 1 for tap in windows_at)
    order = (0, *phases_at, len(split) - 1 if last else 2, *inner)
    ordered = emit(TransposeOp, reshaped, permutation=order)
    strides = prod(axis.stride for axis in of.axes)
    return emit(ReshapeOp, ordered, shape=(of.groups * strides * outputs, *(split[tap] for tap in inner)))


def _joined_bias(of: TransposedConvolution) -> SSAValue | None:
    """Repeat the bias of each channel for its phases."""
    bias, emit = of.op.bias, of.emit
    if bias is None:
        return None
    outputs, ones = shape_of(bias)[0] // of.groups, [1] * len(of.axes)
    whole = (of.groups, *(axis.stride for axis in of.axes), outputs)
    spread = emit(AddOp, emit.splat(0.0, bias, whole), emit(ReshapeOp, bias, shape=(of.groups, *ones, outputs)))
    return emit(ReshapeOp, spread, shape=(prod(whole),))


def _spread_channels(of: TransposedConvolution, value: SSAValue) -> SSAValue:
    """Move the phases from channels to spatial positions."""
    emit, rank = of.emit, len(of.axes)
    batch, counts, _ = split_sizes(value, of.op.layout)
    channels = size_along(value, channel_axis(rank_of(value), of.op.layout))
    strides = [axis.stride for axis in of.axes]
    outputs = channels // of.groups // prod(strides)
    sizes = [count * stride for count, stride in zip(counts, strides, strict=True)]
    if is_channels_last(of.op.layout):
        split = (batch, *counts, of.groups, *strides, outputs)
        positions = [tap for axis in range(rank) for tap in (1 + axis, 2 + rank + axis)]
        order, shape = (0, *positions, 1 + rank, 2 + 2 * rank), (batch, *sizes, of.groups * outputs)
    else:
        split = (batch, of.groups, *strides, outputs, *counts)
        positions = [tap for axis in range(rank) for tap in (3 + rank + axis, 2 + axis)]
        order, shape = (0, 1, 2 + rank, *positions), (batch, of.groups * outputs, *sizes)
    ordered = emit(TransposeOp, emit(ReshapeOp, value, shape=split), permutation=order)
    return emit(ReshapeOp, ordered, shape=shape)


@lowering(ConvTransposeOp)
def conv_transpose(op: ConvTransposeOp, emit: Emitter) -> SSAValue:
    """Lower to convolutions of the input: one per phase of the outputs, or one for all."""
    of = TransposedConvolution.of(op, emit)
    if any(axis.is_sparse for axis in of.axes):
        return _sparse(of)
    return _joined(of) if of.is_joined else _separate(of)

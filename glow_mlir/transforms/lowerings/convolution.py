"""Lowerings of convolutions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, shape_of
from glow_mlir.dialects.windows import is_channels_last, split_image
from glow_mlir.registry import lowering
from glow_mlir.transforms.emitter import Emitter


def _spread(value: SSAValue, axes: range, strides: Shape, emit: Emitter) -> SSAValue:
    """`value` with stride - 1 zeros behind each element along `axes`."""
    if max(strides) == 1:
        return value
    shape = shape_of(value)
    split: list[int] = []
    widths: list[int] = []
    for axis, size in enumerate(shape):
        stride = strides[axis - axes.start] if axis in axes else 1
        split += (size, 1) if stride > 1 else (size,)
        widths += (0, stride - 1) if stride > 1 else (0,)
    padded = emit(PadOp, emit(ReshapeOp, value, shape=split), pads=(*(0 for _ in widths), *widths))
    spread = [size * strides[axis - axes.start] if axis in axes else size for axis, size in enumerate(shape)]
    return emit(ReshapeOp, padded, shape=spread)


def _fitted(
    value: SSAValue, axes: range, leading: Shape, trailing: Shape, emit: Emitter
) -> tuple[SSAValue, tuple[int, ...]]:
    """
    `value` and the paddings of a convolution of it, for paddings along `axes` of which some may be negative.

    Negative ones cut; what they cut may lie in the padding of the other end, so that is there before.
    """
    if min(*leading, *trailing) >= 0:
        return value, (*leading, *trailing)
    rank = len(shape_of(value))
    before, after = [0] * rank, [0] * rank
    for axis, first, last in zip(axes, leading, trailing, strict=True):
        before[axis], after[axis] = first, last
    padded = emit(PadOp, value, pads=tuple(max(0, width) for width in (*before, *after)))
    starts = [max(0, -width) for width in before]
    ends = [size - max(0, -width) for size, width in zip(shape_of(padded), after, strict=True)]
    return emit(SliceOp, padded, starts=starts, ends=ends), (0,) * (2 * len(axes))


def _flipped_filter(op: ConvTransposeOp, axes: range, emit: Emitter) -> SSAValue:
    """The filter of the convolution: outputs first, inputs where outputs were, the kernel in reverse."""
    shape, group = shape_of(op.filter), integer(op.group)
    outputs_axis = len(shape) - 1 if is_channels_last(op.layout) else 1
    grouped = emit(ReshapeOp, op.filter, shape=(group, shape[0] // group, *shape[1:]))
    order = [0, *range(1, len(shape) + 1)]
    order[1], order[1 + outputs_axis] = order[1 + outputs_axis], order[1]
    swapped = emit(TransposeOp, grouped, permutation=order)
    joined = list(shape)
    joined[0], joined[outputs_axis] = shape[outputs_axis] * group, shape[0] // group
    filter_ = emit(ReshapeOp, swapped, shape=joined)
    starts, ends, steps = [0] * len(joined), list(joined), [1] * len(joined)
    for axis in axes:
        starts[axis], ends[axis], steps[axis] = joined[axis] - 1, -1, -1
    return emit(SliceOp, filter_, starts=starts, ends=ends, steps=steps)


@lowering(ConvTransposeOp)
def conv_transpose(op: ConvTransposeOp, emit: Emitter) -> SSAValue:
    """A convolution of the input, with zeros between its elements, by the flipped filter."""
    window = op.window()
    rank = len(window.kernel)
    axes = range(1, rank + 1) if is_channels_last(op.layout) else range(2, rank + 2)
    spread = _spread(op.input, axes, window.strides, emit)
    sizes = split_image(op.result, op.layout)[1]
    reach = [window.extent(axis) - 1 for axis in range(rank)]
    leading = tuple(reach[axis] - window.padding(axis)[0] for axis in range(rank))
    trailing = tuple(sizes[axis] + reach[axis] - shape_of(spread)[axes[axis]] - leading[axis] for axis in range(rank))
    image, pads = _fitted(spread, axes, leading, trailing, emit)
    return emit(
        ConvOp,
        image,
        _flipped_filter(op, axes, emit),
        op.bias,
        pads=pads,
        dilations=window.dilations,
        group=op.group,
        layout=op.layout,
    )

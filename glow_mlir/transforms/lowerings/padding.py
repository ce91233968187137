"""Lowerings of convolutions that a backend does not execute as they are: with padding, or in groups."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, SliceOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import rank_of, shape_of
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.registry import lowering
from glow_mlir.transforms.emitter import Emitter


@lowering(ConvOp)
def conv(op: ConvOp, emit: Emitter) -> SSAValue:
    """
    Padding becomes an explicit border, groups become convolutions side by side (as Glow lowers them).

    The border is a buffer like any other, so that liveness and arena see it.
    """
    window = op.window()
    last = is_channels_last(op.layout)
    if any(window.pads):
        rank = len(window.kernel)
        before, after = window.pads[:rank], window.pads[rank:]
        widths = (0, *before, 0, 0, *after, 0) if last else (0, 0, *before, 0, 0, *after)
        padded = emit(PadOp, op.input, pads=widths)
        return emit(ConvOp, padded, op.filter, op.bias, **_without(op, "pads"))
    return _grouped(op, emit, rank_of(op.input) - 1 if last else 1)


def _without(op: ConvOp, *names: str) -> dict[str, Attribute]:
    hidden = {"operandSegmentSizes", *names}
    return {name: value for name, value in op.properties.items() if name not in hidden}


def _grouped(op: ConvOp, emit: Emitter, channel_axis: int) -> SSAValue:
    group = integer(op.group)
    parts: list[SSAValue] = []
    for index in range(group):
        image = _part(emit, op.input, channel_axis, index, group)
        filter_ = _part(emit, op.filter, 0, index, group)
        bias = None if op.bias is None else _part(emit, op.bias, 0, index, group)
        properties = {**_without(op, "group"), "group": to_attribute(1)}
        parts.append(emit(ConvOp, image, filter_, bias, **properties))
    return emit(ConcatOp, parts, axis=channel_axis)


def _part(emit: Emitter, value: SSAValue, axis: int, index: int, group: int) -> SSAValue:
    shape = shape_of(value)
    size = shape[axis] // group
    starts = [0] * len(shape)
    ends = list(shape)
    starts[axis], ends[axis] = index * size, (index + 1) * size
    return emit(SliceOp, value, starts=starts, ends=ends, steps=[1] * len(shape))

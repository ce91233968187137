"""Lowerings of padded and grouped convolutions that a backend does not execute directly."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import byte_width, is_float
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import element_of, is_empty, rank_of, shape_of
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.rewriting.quantized_values import with_zeros


@lowering(ConvOp)
def conv(op: ConvOp, emit: Emitter) -> SSAValue:
    """
    Make padding an explicit border, and split groups into separate convolutions (as Glow lowers them).

    The border is an ordinary buffer, planned by liveness and arena. Channels go last, results narrower than f32 are
    summed in f32 and converted, and an empty sum is 0.
    """
    window = op.window()
    last = is_channels_last(op.layout)
    element = element_of(op.result)
    if is_empty(op.input) or is_empty(op.filter):
        return _sum_of_nothing(op, emit, last)
    if not last:
        return _channels_last(op, emit)
    if is_float(element) and byte_width(element) < 4:
        bias = None if op.bias is None else emit(CastOp, op.bias, to=f32)
        return emit(CastOp, emit(ConvOp, op.input, op.filter, bias, to=f32, **_without(op)), to=element)
    if any(window.pads):
        return emit(ConvOp, padded_image(op, emit), op.filter, op.bias, **_without(op, "pads"))
    return _grouped(op, emit, rank_of(op.input) - 1)


def padded_image(op: ConvOp, emit: Emitter) -> SSAValue:
    """The image of a convolution padded with zeros, or with its zero point if quantized."""
    pads = op.window().pads
    before, after = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    last = is_channels_last(op.layout)
    front, back = ((0, *part, 0) if last else (0, 0, *part) for part in (before, after))
    return with_zeros(op.input, [*front, *back], emit)


def _sum_of_nothing(op: ConvOp, emit: Emitter, last: bool) -> SSAValue:
    zeros = emit.splat(0, op.result, shape_of(op.result))
    if op.bias is None:
        return zeros
    trailing = 0 if last else rank_of(op.result) - 2
    return emit(AddOp, zeros, emit(ReshapeOp, op.bias, shape=(*shape_of(op.bias), *(1,) * trailing)))


def _channels_last(op: ConvOp, emit: Emitter) -> SSAValue:
    rank = rank_of(op.input)
    to_last, to_first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    image, filter_ = (emit(TransposeOp, value, permutation=to_last) for value in (op.input, op.filter))
    result = emit(ConvOp, image, filter_, op.bias, **_without(op, "layout"))
    return emit(TransposeOp, result, permutation=to_first)


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

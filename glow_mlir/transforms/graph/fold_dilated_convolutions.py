"""`fold-dilated-convolutions`: turn convolutions between space-to-batch and batch-to-space into dilated ones."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.analysis.rearrangement import Arrangement, Factor, arrangement_of, reshaped, transposed, whole_axes
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.transposition import keeps_order
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import Shape, may_be_empty, rank_of, shape_of
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.support.dataclass import dataclass

Rearranging = ReshapeOp | TransposeOp

MAX_STEPS = 8
"""Maximum number of reshapes and transposes to follow on either side; exporters write three to five."""


class FoldDilatedConvolution(Pattern):
    """Turn a convolution between a space-to-batch and its inverse into one with larger dilations and pads."""

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        dealt = _dealt_image(op) if is_channels_last(op.layout) and not may_be_empty(op.result) else None
        if dealt is None:
            return
        strides = zip(op.window().strides, dealt.blocks, strict=True)
        if any(stride > 1 and block > 1 for stride, block in strides):
            return
        _, *spatial, channels = shape_of(op.result)
        sizes = [size * block for size, block in zip(spatial, dealt.blocks, strict=True)]
        shape: Shape = (dealt.shape[0], *sizes, channels)
        found = _gathered(op.result, _result_arrangement(shape, dealt), shape)
        if found is None:
            return
        steps, order = found
        last = steps[-1]
        emit = rewriter.emit_before(last)
        image = _arranged(dealt.image, dealt.axes, dealt.shape, emit)
        location = fuse_locations(part.location for part in (*dealt.steps, op, *steps))
        result = _dilated(op, image, dealt.blocks, emit.at(location))
        rewriter.replace(last, (), [_arranged(result, order, shape_of(last.result), emit)])


@dataclass(frozen=True)
class FoldDilatedConvolutionsPass(PatternPass):
    """
    Fold space-to-batch and batch-to-space reshapes and transposes around a convolution into its dilations and pads,
    which grow by the block size b (Glow's FoldDilatedConv).

    Space-to-batch puts every b-th pixel into the same image of a larger batch. TensorFlow's SpaceToBatchND and
    BatchToSpaceND become such reshapes and transposes, also by way of SpaceToDepth and DepthToSpace. They are
    recognized by the resulting arrangement of elements, in any spelling, for any number of spatial axes. Along axes
    with b > 1 the stride has to be 1.
    """

    name = "fold-dilated-convolutions"
    WALKS = (Walk((FoldDilatedConvolution(),)),)


@dataclass(frozen=True)
class Dealt:
    """The image in front of a space-to-batch arrangement."""

    image: SSAValue
    steps: Sequence[Rearranging]
    """The reshapes and transposes from the image to the convolution."""
    axes: Shape
    """The non-unit axes of the image: batch, spatial axes and channels, in this order."""
    shape: Shape
    """The sizes of batch, spatial axes and channels, units included."""
    blocks: Shape
    """The block size of each spatial axis."""
    batch: tuple[Factor, ...]
    """The factors of the batch of the convolution; axes are numbered as in `shape`."""


def _dealt_image(op: ConvOp) -> Dealt | None:
    """The nearest value that becomes the operand of `op` by a space-to-batch; `None` if there is none."""
    steps: list[Rearranging] = []
    value = op.input
    while isinstance(value.owner, Rearranging) and len(steps) < MAX_STEPS:
        steps.insert(0, value.owner)
        value = value.owner.input
        arranged = _after(steps, arrangement_of(shape_of(value)))
        dealt = None if arranged is None else _roles(value, steps, arranged)
        if dealt is not None:
            return dealt
    return None


def _after(steps: Sequence[Rearranging], axes: Arrangement | None) -> Arrangement | None:
    """Apply reshapes and transposes to an arrangement."""
    for step in steps:
        if axes is None:
            return None
        if isinstance(step, TransposeOp):
            axes = transposed(axes, ints(step.permutation))
        else:
            axes = reshaped(axes, ints(step.shape))
    return axes


def _roles(image: SSAValue, steps: Sequence[Rearranging], arranged: Arrangement) -> Dealt | None:
    """Identify the axes of `image` by the position of their factors in the operand, `[batch, spatial…, channels]`."""
    batch, *spatial, channels = arranged
    sizes = shape_of(image)
    roles: dict[int, int] = {}
    shape, blocks = [1], list[int]()
    for role, factors in enumerate((*spatial, channels), start=1):
        if len(factors) > 1:
            return None
        block = 1
        for factor in factors:
            block = factor.stride
            if factor.size * block != sizes[factor.axis]:
                return None
            roles[factor.axis] = role
        shape.append(factors[0].size * block if factors else 1)
        blocks.append(block)
    if blocks.pop() != 1 or max(blocks) == 1:
        return None
    own = [factor for factor in batch if factor.axis not in roles]
    if len(own) > 1 or any(factor.size != sizes[factor.axis] for factor in own):
        return None
    for factor in own:
        roles[factor.axis], shape[0] = 0, factor.size
    numbered = tuple(Factor(roles[factor.axis], factor.size, factor.stride) for factor in batch)
    expected = {Factor(role, block, 1) for role, block in enumerate(blocks, start=1) if block > 1}
    if {factor for factor in numbered if factor.axis} != expected or len(numbered) != len(expected) + len(own):
        return None
    axes = tuple(sorted(roles, key=roles.__getitem__))
    return Dealt(image, tuple(steps), axes, tuple(shape), tuple(blocks), numbered)


def _result_arrangement(shape: Shape, dealt: Dealt) -> Arrangement:
    """The arrangement of the convolution's result in terms of the dilated result, which has `shape`."""
    spatial = [
        (Factor(axis, size // block, block),) if size != block else ()
        for axis, (size, block) in enumerate(zip(shape[1:-1], dealt.blocks, strict=True), start=1)
    ]
    return (dealt.batch, *spatial, arrangement_of(shape)[-1])


def _gathered(value: SSAValue, axes: Arrangement | None, shape: Shape) -> tuple[list[Rearranging], Shape] | None:
    """
    The steps behind `value` until all axes of an image of `shape` are whole again, and their order; `None` if they
    never are, or an intermediate value has other readers.
    """
    steps: list[Rearranging] = []
    while axes is not None and len(steps) < MAX_STEPS and value.has_one_use():
        user = next(iter(value.uses)).operation
        if not isinstance(user, Rearranging):
            return None
        steps.append(user)
        value, axes = user.result, _after([user], axes)
        order = None if axes is None else whole_axes(axes, shape)
        if order is not None:
            return steps, order
    return None


def _arranged(value: SSAValue, order: Shape, shape: Shape, emit: Emitter) -> SSAValue:
    """Transpose the non-unit axes of `value` to `order`, and reshape it to `shape`."""
    units = [axis for axis in range(rank_of(value)) if axis not in order]
    permutation = (*order, *units)
    if len(shape) == len(permutation):
        longer = iter(order)
        permutation = tuple(units.pop(0) if size == 1 else next(longer) for size in shape)
    if not keeps_order(shape_of(value), permutation):
        value = emit(TransposeOp, value, permutation=permutation)
    return value if shape_of(value) == shape else emit(ReshapeOp, value, shape=shape)


def _dilated(op: ConvOp, image: SSAValue, blocks: Shape, emit: Emitter) -> SSAValue:
    """Build the same convolution on the original image, dilated by the block sizes."""
    window = op.window()
    properties = {
        "strides": window.strides,
        "pads": [pad * block for pad, block in zip(window.pads, (*blocks, *blocks), strict=True)],
        "dilations": [step * block for step, block in zip(window.dilations, blocks, strict=True)],
        "group": op.group,
        "layout": op.layout,
        "to": op.to,
    }
    return emit(ConvOp, image, op.filter, op.bias, **properties)

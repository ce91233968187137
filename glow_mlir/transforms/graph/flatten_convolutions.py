"""`flatten-convolutions`: turn convolutions along three axes or more into two-dimensional ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.element_types import byte_width, is_integer, storage_of
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, element_of, may_be_empty, shape_of
from glow_mlir.dialects.windows import Window, is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.rewriting.quantized_values import with_zeros
from glow_mlir.support.dataclass import dataclass

IMAGE_AXES = 2


class FlattenConvolution(Pattern):
    """Remove axes of a convolution as long as possible; taps become channels only with default accuracy."""

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        if not is_channels_last(op.layout) or may_be_empty(op.result):
            return
        emit, window = rewriter.emit, op.window()
        target = rewriter.function.target
        costs, is_default = costs_of(target), not is_strict(rewriter.function)
        copies = is_default and integer(op.group) == 1 and element_of(op.input) == f32
        found: Convolution | None = Convolution(op.input, op.filter, window)
        flat = found
        while found is not None and len(found.window.kernel) > IMAGE_AXES:
            steps: tuple[Callable[[], Convolution | None], ...] = (
                lambda now=found: _joined_to_batch(now, emit),
                lambda now=found: _merged(now, emit),
                lambda now=found: _taps_as_channels(now, emit, costs) if copies else None,
            )
            found = next((result for step in steps if (result := step()) is not None), None)
            flat = found or flat
        if flat.window == window:
            return
        result = emit(
            ConvOp,
            flat.image,
            flat.filter,
            op.bias,
            strides=flat.window.strides,
            pads=flat.window.pads,
            dilations=flat.window.dilations,
            group=op.group,
            layout=op.layout,
            to=op.to,
        )
        rewriter.replace(op, ReshapeOp.make(result, shape=shape_of(op.result)))


class DeepenConvolution(Pattern):
    """
    Turn the taps along the lines of an image with few channels of 8-bit values into channels, to fill dot products.
    """

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        target = rewriter.function.target
        costs, window = costs_of(target), op.window()
        dot_depth = costs.depth_codes
        if dot_depth < 2 or not is_channels_last(op.layout) or may_be_empty(op.result) or integer(op.group) > 1:
            return
        if len(window.kernel) != IMAGE_AXES or window.kernel[0] == 1 or not _is_one_byte_quantized(op):
            return
        *_, filters = shape_of(op.result)
        lines, pixels = shape_of(op.result)[1:-1]
        width, channels = shape_of(op.input)[2:]
        run = channels * window.kernel[1] if window.dilations[1] == 1 else channels
        rest = window.kernel[1] * channels // run
        taken, needed = window.kernel[0] * -(-run // dot_depth), -(-window.kernel[0] * run // dot_depth)
        saved = (taken - needed) * rest * lines * pixels * filters
        if saved <= costs.copied_code_operations * lines * width * channels * window.kernel[0]:
            return
        emit = rewriter.emit
        images = _images(Convolution(op.input, op.filter, window), emit)
        taps = emit(TransposeOp, op.filter, permutation=(0, 2, 1, 3))
        taps = emit(ReshapeOp, taps, shape=(filters, 1, window.kernel[1], window.kernel[0] * channels))
        deep = emit(
            ConvOp,
            emit(ConcatOp, images, axis=3),
            taps,
            op.bias,
            strides=(1, window.strides[1]),
            pads=(0, window.pads[1], 0, window.pads[3]),
            dilations=(1, window.dilations[1]),
            layout=op.layout,
            to=op.to,
        )
        rewriter.replace(op, (), [deep])


def _is_one_byte_quantized(op: ConvOp) -> bool:
    """Whether a convolution reads 8-bit integers."""
    element = storage_of(element_of(op.input))
    return is_integer(element) and byte_width(element) == 1


@dataclass(frozen=True)
class FlattenConvolutionsPass(PatternPass):
    """
    Turn convolutions along three spatial axes or more into convolutions along two, which have faster algorithms
    (Winograd's), and turn taps into channels if these then apply.

    A first axis along which the filter has one tap joins the batch. Neighbouring axes with one tap each merge. If the
    rest of the window is 3×3 with unit strides, the images at the taps along the first axis are concatenated as
    channels. Channels are last; taps become channels only in one group, of f32, and not with accuracy `strict`, which
    has no such algorithms.

    If instructions multiply many neighbouring quantized values at once (Helium's), taps along the lines of an image
    with few of them become channels as well: the sums are the same.
    """

    name = "flatten-convolutions"
    WALKS = (Walk((FlattenConvolution(), DeepenConvolution())),)


@dataclass(frozen=True)
class Convolution:
    """A convolution during rewriting: image and filter with the channels last, and the window over the spatial axes."""

    image: SSAValue
    filter: SSAValue
    window: Window

    def without(self, axis: int, image: SSAValue, filter_: SSAValue) -> Convolution:
        """Remove one of the spatial axes, which image and filter no longer have."""
        window, rank = self.window, len(self.window.kernel)

        def rest(values: Sequence[int]) -> Shape:
            return (*values[:axis], *values[axis + 1 :])

        pads = (*rest(window.pads[:rank]), *rest(window.pads[rank:]))
        smaller = Window(rest(window.kernel), rest(window.strides), pads, rest(window.dilations))
        return Convolution(image, filter_, smaller)


def _images(of: Convolution, emit: Emitter) -> list[SSAValue]:
    """For each tap along the first axis, the image slices that it multiplies."""
    window, shape = of.window, list(shape_of(of.image))
    before, after = window.padding(0)
    image = of.image
    if before or after:
        none = [0] * (len(shape) - 2)
        image = with_zeros(image, (0, before, *none, 0, after, *none), emit)
    count, stride = window.output(0, shape[1]), window.strides[0]
    starts, ends, steps = [0] * len(shape), list(shape_of(image)), [1] * len(shape)
    found: list[SSAValue] = []
    for tap in range(window.kernel[0]):
        starts[1], steps[1] = tap * window.dilations[0], stride
        ends[1] = starts[1] + (count - 1) * stride + 1
        whole = ends[1] - starts[1] == shape_of(image)[1] and stride == 1
        found.append(image if whole else emit(SliceOp, image, starts=starts, ends=ends, steps=steps))
    return found


def _joined_to_batch(of: Convolution, emit: Emitter) -> Convolution | None:
    """Merge a first axis with one tap into the batch."""
    if of.window.kernel[0] != 1:
        return None
    (image,) = _images(of, emit)
    batch, count, *rest = shape_of(image)
    outputs, _, *filter_rest = shape_of(of.filter)
    image = emit(ReshapeOp, image, shape=(batch * count, *rest))
    return of.without(0, image, emit(ReshapeOp, of.filter, shape=(outputs, *filter_rest)))


def _merged(of: Convolution, emit: Emitter) -> Convolution | None:
    """Merge two neighbouring axes with one tap each and no gaps."""
    window = of.window
    single = [
        kernel == 1 and window.strides[axis] == 1 and not any(window.padding(axis))
        for axis, kernel in enumerate(window.kernel)
    ]
    axis = next((axis for axis in range(len(single) - 1) if single[axis] and single[axis + 1]), None)
    if axis is None:
        return None
    shape, taps = list(shape_of(of.image)), list(shape_of(of.filter))
    shape[axis + 1 : axis + 3] = [math.prod(shape[axis + 1 : axis + 3])]
    del taps[axis + 1]
    return of.without(axis, emit(ReshapeOp, of.image, shape=shape), emit(ReshapeOp, of.filter, shape=taps))


def _taps_as_channels(of: Convolution, emit: Emitter, costs: Costs) -> Convolution | None:
    """Turn the taps of the first axis into channels, if the window along the others is 3×3."""
    window, rest = of.window, len(of.window.kernel) - 1
    outputs, taps, *inner, channels = shape_of(of.filter)
    plain = all(values[1:] == (1,) * rest for values in (window.strides, window.dilations))
    enough = outputs >= costs.least_tap_filters and channels >= costs.least_tap_channels
    is_faster = taps <= costs.most_taps and enough
    if window.kernel[1:] != (3, 3) or not plain or not is_faster:
        return None
    image = emit(ConcatOp, _images(of, emit), axis=rest + 2)
    batch, count, *sizes, depth = shape_of(image)
    order = (0, *range(2, rest + 2), 1, rest + 2)
    filter_ = emit(TransposeOp, of.filter, permutation=order)
    filter_ = emit(ReshapeOp, filter_, shape=(outputs, *inner, taps * channels))
    return of.without(0, emit(ReshapeOp, image, shape=(batch * count, *sizes, depth)), filter_)

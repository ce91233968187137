"""Steps of random graphs that give passes over layout and data movement something to do."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from random_graphs import GraphBuilder, Step
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.activations import ReluOp, SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.canonicalization.slices import bounds
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, LrnOp, RmsNormalizationOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, CumSumOp, ReduceMaxOp, ReduceMinOp, TopKOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_high.transposition import inverse
from glow_mlir.dialects.shapes import rank_of, shape_of, size_of


def step_shuffle(g: GraphBuilder) -> SSAValue:
    """Axes split, reordered and merged again, sometimes between a transpose and its inverse."""
    value = g.pick((3, 4))
    around = g.draw(st.permutations(range(rank_of(value))))
    value = g(data.TransposeOp, value, permutation=around)
    shape = list(shape_of(value))
    axis: int = g.draw(st.integers(0, len(shape) - 1))
    part: int = g.draw(st.sampled_from([size for size in range(1, shape[axis] + 1) if shape[axis] % size == 0]))
    split = [*shape[:axis], part, shape[axis] // part, *shape[axis + 1 :]]
    order = list(range(len(split)))
    order[axis], order[axis + 1] = order[axis + 1], order[axis]
    value = g(data.ReshapeOp, value, shape=split)
    value = g(data.TransposeOp, value, permutation=order)
    value = g(data.ReshapeOp, value, shape=shape)
    if g.draw(st.booleans()):
        value = g(ReluOp, value)
    return g(data.TransposeOp, value, permutation=[int(place) for place in np.argsort(around)])


def transposed(g: GraphBuilder) -> SSAValue:
    """A transposed tensor of at least one axis."""
    value = g.pick((1, 2, 3, 4))
    return g(data.TransposeOp, value, permutation=g.draw(st.permutations(range(rank_of(value)))))


def step_transposed_movement(g: GraphBuilder) -> SSAValue:
    """A transpose, and an operator behind it that moves elements along an axis."""
    value = transposed(g)
    shape, rank = shape_of(value), rank_of(value)
    axis: int = g.draw(st.integers(0, rank - 1))
    kind = g.draw(st.sampled_from(["gather", "tile", "resize", "cum_sum", "expand", "pad"]))
    if kind == "gather":
        taken: tuple[int, ...] = g.draw(st.sampled_from([(), (2,), (1, 2)]))
        places = np.asarray(g.rng.integers(0, shape[axis], taken), np.int64)
        return g(GatherOp, value, g.known(places), axis=axis)
    if kind == "cum_sum":
        return g(CumSumOp, value, axis=axis, reverse=g.draw(st.booleans()))
    if kind == "expand":
        return g(data.ExpandOp, value, shape=(2, *shape))
    if kind == "pad":
        mode = g.draw(st.sampled_from(data.PAD_MODES))
        return g(data.PadOp, value, pads=[g.draw(st.integers(0, 2)) for _ in range(2 * rank)], mode=mode)
    counts = [g.draw(st.integers(1, 2)) for _ in shape]
    if kind == "tile":
        return g(data.TileOp, value, repeats=counts)
    mode = g.draw(st.sampled_from(["nearest", "linear"]))
    return g(ResizeOp, value, shape=[a * b for a, b in zip(shape, counts, strict=True)], mode=mode)


def step_transposed_reduction(g: GraphBuilder) -> SSAValue:
    """A transpose, and an operator behind it that treats one axis in another way than the rest."""
    value = transposed(g)
    axis: int = g.draw(st.integers(0, rank_of(value) - 1))
    kind = g.draw(st.sampled_from(["max", "arg_max", "top_k", "lrn", "layer_norm", "rms_norm"]))
    if kind == "max":
        return g(ReduceMaxOp, value, axes=[axis - rank_of(value)], keepdims=False)
    if kind == "arg_max":
        return g(unary.CastOp, g(ArgMaxOp, value, axis=axis, keepdims=g.draw(st.booleans())), to=f32)
    if kind == "top_k":
        return g(TopKOp, value, k=1, axis=axis)
    if kind == "lrn":
        return g(LrnOp, value, size=3, axis=axis)
    operator = LayerNormalizationOp if kind == "layer_norm" else RmsNormalizationOp
    return g(operator, value, g.constant(shape_of(value)[axis:]), axis=axis)


def step_transposed_pool(g: GraphBuilder) -> SSAValue:
    """A pool of any layout behind a transpose."""
    value = g.pick((3, 4))
    value = g(data.TransposeOp, value, permutation=g.draw(st.permutations(range(rank_of(value)))))
    spatial = rank_of(value) - 2
    return g(
        g.draw(st.sampled_from([MaxPoolOp, AvgPoolOp, LpPoolOp])),
        value,
        kernel_shape=[g.draw(st.integers(1, 2)) for _ in range(spatial)],
        pads=[1] * (2 * spatial),
        strides=[g.draw(st.integers(1, 2)) for _ in range(spatial)],
        layout=g.draw(st.sampled_from(["channels_first", "channels_last"])),
    )


TRANSPOSE_STEPS: tuple[Step, ...] = (
    step_shuffle,
    step_transposed_movement,
    step_transposed_reduction,
    step_transposed_pool,
)
"""For `sink-transposes`."""


def step_limits(g: GraphBuilder) -> SSAValue:
    """Operators in a row that limit elements, behind one that limits them as well or not."""
    value = g.pick()
    if g.draw(st.booleans()):
        value = g(g.draw(st.sampled_from([SigmoidOp, unary.ExpOp, unary.AbsOp, TanhOp])), value)
    for _ in range(g.draw(st.integers(1, 3))):
        kind = g.draw(st.sampled_from(["relu", "clip", "max", "min"]))
        low, high = (g(SplatOp, value=g.draw(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0])), shape=()) for _ in range(2))
        if kind == "relu":
            value = g(ReluOp, value)
        elif kind == "clip":
            value = g(binary.ClipOp, value, *g.draw(st.sampled_from([(low, high), (low, None), (None, high)])))
        else:
            operands = [value, low] if g.draw(st.booleans()) else [low, value]
            value = g(binary.MaxOp if kind == "max" else binary.MinOp, *operands)
        if g.draw(st.booleans()):
            value = g(data.ReshapeOp, value, shape=(size_of(value),))
    return value


def step_casts(g: GraphBuilder) -> SSAValue:
    """Conversions in a row, of numbers that overflow some of the types."""
    value = g(binary.MulOp, g(TanhOp, g.pick()), g(SplatOp, value=g.draw(st.sampled_from([4.0, 300.0])), shape=()))
    for _ in range(g.draw(st.integers(2, 4))):
        value = g(unary.CastOp, value, to=ELEMENT_TYPES[g.draw(st.sampled_from(CAST_TYPES))])
    return g(unary.CastOp, value, to=f32)


CAST_TYPES = ("float16", "float32", "float64", "int8", "int16", "int64", "uint8", "uint32", "bool")


def step_parts(g: GraphBuilder) -> SSAValue:
    """A tensor cut along an axis, some of the parts put together again, and cut once more."""
    value = g.pick((1, 2, 3, 4))
    axis: int = g.draw(st.integers(0, rank_of(value) - 1))
    size = shape_of(value)[axis]
    places: list[int] = g.draw(st.lists(st.integers(0, size), max_size=3))
    cuts = sorted({0, size, *places})
    parts = [cut(g, value, axis, range(first, last)) for first, last in pairwise(cuts)]
    parts += [g(SplatOp, value=0.5, shape=shape_of(parts[0]))] * g.draw(st.integers(0, 2))
    chosen: list[SSAValue] = g.draw(st.lists(st.sampled_from(parts), max_size=4))
    value = g(data.ConcatOp, [*parts[: len(cuts) - 1], *chosen], axis=axis - g.draw(st.integers(0, 1)) * rank_of(value))
    if g.draw(st.booleans()):
        inner = g(data.ConcatOp, [value, parts[0]], axis=axis)
        value = g(data.ConcatOp, [parts[-1], inner], axis=axis)
    size = shape_of(value)[axis]
    first, last = sorted(g.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2)))
    taken = range(first, last + 1) if g.draw(st.booleans()) else range(last, first - 1, -2)
    return cut(g, value, axis, taken)


def cut(g: GraphBuilder, value: SSAValue, axis: int, taken: range) -> SSAValue:
    """A part of a tensor along one axis."""
    ranges = [range(size) for size in shape_of(value)]
    ranges[axis] = taken
    return g(data.SliceOp, value, **bounds(ranges))


def trimmed(g: GraphBuilder, value: SSAValue) -> SSAValue:
    """A tensor without the first or the last element along an axis or two."""
    axes: set[int] = g.draw(st.sets(st.integers(0, rank_of(value) - 1), max_size=2))
    for axis in axes:
        size = shape_of(value)[axis]
        first = g.draw(st.integers(0, 1)) if size > 1 else 0
        left: int = g.draw(st.integers(0, 1)) if size - first > 1 else 0
        value = cut(g, value, axis, range(first, size - left))
    return value


def step_padded_window(g: GraphBuilder) -> SSAValue:
    """A pad, sometimes cut again, and a convolution or pool behind it."""
    value = g.pick((3, 4))
    spatial = rank_of(value) - 2
    if g.draw(st.booleans()):
        value = g(ReluOp, value)
    fill = g(SplatOp, value=g.draw(st.sampled_from([0.0, 0.0, -math.inf, 0.5])), shape=())
    widths = [g.draw(st.integers(0, 1)) for _ in range(2 * spatial)]
    value = g(data.PadOp, value, fill, pads=[0, *widths[:spatial], 0, 0, *widths[spatial:], 0])
    kind = g.draw(st.sampled_from([ConvOp, MaxPoolOp, AvgPoolOp, LpPoolOp]))
    pads = [g.draw(st.integers(0, 1)) for _ in range(2 * spatial)]
    if kind is ConvOp:
        value = g(ConvOp, value, g.constant((2, *(1 for _ in range(spatial)), shape_of(value)[-1])), pads=pads)
        return trimmed(g, value) if g.draw(st.booleans()) else value
    more = {"count_include_pad": g.draw(st.booleans())} if kind is AvgPoolOp else {}
    size: int = g.draw(st.integers(1, min(2, *shape_of(value)[1:-1])))
    pads = [min(width, size - 1) for width in pads]
    return g(kind, value, kernel_shape=[size] * spatial, pads=pads, ceil_mode=g.draw(st.booleans()), **more)


def step_clipped_window(g: GraphBuilder) -> SSAValue:
    """A pool or reduction of elements that are limited, and sometimes read again."""
    value = step_limits(g) if g.draw(st.booleans()) else g(ReluOp, g.pick((3, 4)))
    if rank_of(value) < 3 or g.draw(st.booleans()):
        found = g(g.draw(st.sampled_from([ReduceMaxOp, ReduceMinOp])), value, axes=[rank_of(value) - 1])
    else:
        spatial = rank_of(value) - 2
        size: int = g.draw(st.integers(1, min(2, *shape_of(value)[1:-1])))
        found = g(MaxPoolOp, value, kernel_shape=[size] * spatial, pads=[size - 1] * (2 * spatial))
    return g(ReluOp, value) if g.draw(st.integers(0, 3)) == 0 else found


def step_dealt_conv(g: GraphBuilder) -> SSAValue:
    """A convolution of images to which pixels are dealt, every second or third to one, and gathered, or nearly so."""
    value = g.pick((3, 4))
    spatial = rank_of(value) - 2
    blocks = [g.draw(st.integers(1, 3)) for _ in range(spatial)]
    border = [-size % block for size, block in zip(shape_of(value)[1:-1], blocks, strict=True)]
    value = g(data.PadOp, value, pads=[*[0] * (spatial + 2), 0, *border, 0])
    batch, *sizes, channels = shape_of(value)
    parts = [part for size, block in zip(sizes, blocks, strict=True) for part in (size // block, block)]
    order = g.draw(st.permutations(range(0, 2 * spatial + 1, 2)))
    permutation = (*order, *range(1, 2 * spatial, 2), 2 * spatial + 1)
    value = g(data.ReshapeOp, value, shape=(batch, *parts, channels))
    value = g(data.TransposeOp, value, permutation=permutation)
    value = g(data.ReshapeOp, value, shape=(batch * math.prod(blocks), *parts[::2], channels))
    kernel = [g.draw(st.integers(1, 2)) for _ in range(spatial)]
    value = g(ConvOp, value, g.constant((2, *kernel, channels)), pads=[1] * (2 * spatial))
    kept = shape_of(value)[1:]
    if g.draw(st.integers(0, 3)) == 0:
        order = g.draw(st.permutations(order))
        permutation = (*order, *permutation[spatial + 1 :])
    dealt = [(batch, *parts)[axis] for axis in order]
    value = g(data.ReshapeOp, value, shape=(*dealt, *kept))
    value = g(data.TransposeOp, value, permutation=inverse(permutation))
    gathered = [size * block for size, block in zip(kept[:-1], blocks, strict=True)]
    return g(data.ReshapeOp, value, shape=(batch, *gathered, 2))


def step_gather(g: GraphBuilder) -> SSAValue:
    """A gather with indices at even distances, or nearly so."""
    value = g.pick((1, 2, 3, 4))
    axis: int = g.draw(st.integers(0, rank_of(value) - 1))
    size = shape_of(value)[axis]
    first: int = g.draw(st.integers(-size, size - 1))
    step: int = g.draw(st.integers(-2, 2))
    count: int = g.draw(st.integers(1, 4))
    places = np.clip(first + step * np.arange(count), -size, size - 1)
    if g.draw(st.booleans()):
        places = places.reshape(1, -1)
    return g(GatherOp, value, g.known(places.astype(np.int64)), axis=axis)


def step_splats(g: GraphBuilder) -> SSAValue:
    """Sums and products with tensors of equal elements, and of those alone."""
    value = g.pick((1, 2, 3, 4))
    equal = g(SplatOp, value=g.draw(st.sampled_from([0.0, -0.0, 1.5])), shape=shape_of(value))
    other = g.known(np.full(shape_of(value)[-1:], 2.5, np.float32))
    both = g(binary.AddOp, equal, g(SigmoidOp, equal))
    operands = [value, g.draw(st.sampled_from([equal, other, both]))]
    return g(g.draw(st.sampled_from([binary.AddOp, binary.MulOp, binary.SubOp])), *operands)


def step_reshaped(g: GraphBuilder) -> SSAValue:
    """Functions of elements between a reshape and one back."""
    value = g.pick((2, 3, 4))
    shape = shape_of(value)
    value = g(data.ReshapeOp, value, shape=(shape[0] * shape[1], *shape[2:]))
    value = g(g.draw(st.sampled_from([ReluOp, TanhOp])), value)
    other = g.draw(st.sampled_from([value, g.constant(shape_of(value)), g(SplatOp, value=2.0, shape=(1,))]))
    return g(data.ReshapeOp, g(binary.AddOp, value, other), shape=shape)


def movement(g: GraphBuilder, value: SSAValue) -> SSAValue:
    """An operator that moves the elements of a tensor of at least one axis."""
    shape = shape_of(value)
    kind = g.draw(st.sampled_from(["tile", "expand", "pad", "concat", "slice", "resize"]))
    if kind == "tile":
        return g(data.TileOp, value, repeats=[2, *(1 for _ in shape[1:])])
    if kind == "expand":
        return g(data.ExpandOp, value, shape=(2, *shape))
    if kind == "pad":
        return g(data.PadOp, value, pads=[1, *(0 for _ in range(2 * len(shape) - 1))])
    if kind == "concat":
        return g(data.ConcatOp, [value, g(unary.NegOp, value)], axis=0)
    if kind == "slice":
        return cut(g, value, 0, range(shape[0] - 1, -1, -2))
    return g(ResizeOp, value, shape=(2 * shape[0], *shape[1:]), mode=g.draw(st.sampled_from(["nearest", "linear"])))


def step_moved_clip(g: GraphBuilder) -> SSAValue:
    """Elements that are computed, moved and then limited."""
    value = movement(g, g(unary.NegOp, g.pick((1, 2, 3))))
    limit = g(SplatOp, value=g.draw(st.sampled_from([0.0, 0.5])), shape=g.draw(st.sampled_from([(), (1,)])))
    return g(ReluOp, value) if g.draw(st.booleans()) else g(binary.ClipOp, value, None, limit)


def step_moved_cast(g: GraphBuilder) -> SSAValue:
    """Elements that are moved between conversions to other types."""
    narrow, wide = (ELEMENT_TYPES[name] for name in g.draw(st.permutations(["float16", "float64"])))
    value = movement(g, g(unary.CastOp, g.pick((1, 2, 3)), to=narrow))
    value = movement(g, g(unary.CastOp, value, to=wide))
    return g(unary.CastOp, value, to=f32)


LAYOUT_STEPS: tuple[Step, ...] = (
    *TRANSPOSE_STEPS,
    step_limits,
    step_casts,
    step_parts,
    step_padded_window,
    step_dealt_conv,
    step_gather,
    step_splats,
    step_reshaped,
    step_moved_clip,
    step_moved_cast,
)
"""All steps of this file."""

"""Steps of random graphs that give passes over layout and data movement something to do."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from random_graphs import GraphBuilder, Step
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, LrnOp, RmsNormalizationOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, CumSumOp, ReduceMaxOp, TopKOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.shapes import rank_of, shape_of


def step_shuffle(g: GraphBuilder) -> SSAValue:
    """Axes split, reordered and merged again, sometimes between a transpose and its inverse."""
    value = g.pick((3, 4))
    around = g.draw(st.permutations(range(rank_of(value))))
    value = g(data.TransposeOp, value, permutation=around)
    shape = list(shape_of(value))
    axis = g.draw(st.integers(0, len(shape) - 1))
    part = g.draw(st.sampled_from([size for size in range(1, shape[axis] + 1) if shape[axis] % size == 0]))
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
    axis = g.draw(st.integers(0, rank - 1))
    kind = g.draw(st.sampled_from(["gather", "tile", "resize", "cum_sum", "expand", "pad"]))
    if kind == "gather":
        places = g.rng.integers(0, shape[axis], g.draw(st.sampled_from([(), (2,), (1, 2)]))).astype(np.int64)
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
    axis = g.draw(st.integers(0, rank_of(value) - 1))
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

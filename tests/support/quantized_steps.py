"""Steps of random graphs with codes, whose scales are powers of two, so that no way to compute with them rounds."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from random_graphs import GraphBuilder, Step
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_high.activations import ReluOp, SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp
from glow_mlir.dialects.quant import uniform
from glow_mlir.dialects.shapes import Shape, rank_of, shape_of


def codes_type(g: GraphBuilder) -> Attribute:
    """A type of codes with or without a zero point."""
    storage, least = g.draw(st.sampled_from([(i8, -128), (ui8, 0)]))
    zero = g.draw(st.sampled_from([0, 0, 5, least, least + 255]))
    return uniform(storage, f32, 2.0 ** g.draw(st.integers(-5, -1)), zero)


def step_codes(g: GraphBuilder) -> SSAValue:
    """A value quantized, and back."""
    return quantized(g, g.pick((1, 2, 3, 4)))


def quantized(g: GraphBuilder, value: SSAValue) -> SSAValue:
    """What the codes of a value stand for."""
    return g(DequantizeOp, g(QuantizeOp, value, to=codes_type(g)))


def weights(g: GraphBuilder, shape: Shape, channel: int) -> SSAValue:
    """What small constant codes stand for, with one scale or one for each index of an axis."""
    generator = np.random.default_rng(g.draw(st.integers(0, 99)))
    codes = g.known(generator.integers(-7, 8, shape, np.int8))
    line = [size if axis == channel else 1 for axis, size in enumerate(shape)] if g.draw(st.booleans()) else []
    scale: np.ndarray = np.exp2(generator.integers(-4, 2, line)).astype(np.float32)
    return g(DequantizeOp, codes, g.known(np.asarray(scale)))


def bias_of(g: GraphBuilder, outputs: int) -> SSAValue | None:
    """A constant for each channel, in whole sixteenths."""
    return g.known(np.arange(-outputs, outputs, 2).astype(np.float32) / 16) if g.draw(st.booleans()) else None


def step_quantized_conv(g: GraphBuilder) -> SSAValue:
    """A convolution of codes whose result is quantized, perhaps behind a ReLU or what moves elements."""
    value = quantized(g, g.pick((3, 4)))
    channels, spatial, outputs = shape_of(value)[-1], rank_of(value) - 2, g.draw(st.integers(1, 4))
    filter_ = weights(g, (outputs, *[2] * spatial, channels), 0)
    return tail(g, g(ConvOp, value, filter_, bias_of(g, outputs), pads=[1] * (2 * spatial)))


def step_quantized_matmul(g: GraphBuilder) -> SSAValue:
    """A matrix product of codes whose result is quantized."""
    value, outputs = quantized(g, g.pick((2, 3))), g.draw(st.integers(1, 4))
    depth, is_turned = shape_of(value)[-1], g.draw(st.booleans())
    right = weights(g, (outputs, depth) if is_turned else (depth, outputs), 0 if is_turned else 1)
    return tail(g, g(MatMulOp, value, right, bias_of(g, outputs), transpose_right=is_turned))


def tail(g: GraphBuilder, value: SSAValue) -> SSAValue:
    """What stands between a product and its quantization, and behind it."""
    if g.draw(st.booleans()):
        value = g(ReluOp, value)
    if g.draw(st.booleans()):
        value = g(data.TransposeOp, value, permutation=g.draw(st.permutations(range(rank_of(value)))))
    return quantized(g, value)


def step_moved_codes(g: GraphBuilder) -> SSAValue:
    """Elements that are moved between a dequantization and a quantization to the same codes."""
    value = g.pick((3, 4))
    kind, rank = codes_type(g), rank_of(value)
    value = g(DequantizeOp, g(QuantizeOp, value, to=kind))
    match g.draw(st.sampled_from(["pad", "pool", "concat", "reshape"])):
        case "pad":
            value = g(data.PadOp, value, pads=[1] * (2 * rank))
        case "pool":
            value = g(MaxPoolOp, value, kernel_shape=[2] * (rank - 2), pads=[1] * (2 * rank - 4))
        case "concat":
            value = g(data.ConcatOp, [value, value], axis=1)
        case _:
            value = g(data.ReshapeOp, value, shape=(1, *shape_of(value)))
    return g(DequantizeOp, g(QuantizeOp, value, to=kind))


def step_sum_of_integers(g: GraphBuilder) -> SSAValue:
    """Sums and differences of what codes of several scales stand for, perhaps with a constant, quantized."""
    value = g.pick((1, 2, 3, 4))
    total = quantized(g, value)
    for _ in range(g.draw(st.integers(1, 2))):
        other = quantized(g, value) if g.draw(st.booleans()) else bias_of(g, shape_of(value)[-1])
        if other is not None:
            total = g(g.draw(st.sampled_from([AddOp, SubOp])), total, other)
    return tail(g, total)


def step_mean_of_codes(g: GraphBuilder) -> SSAValue:
    """Means over axes and windows of as many codes as a power of two."""
    value = quantized(g, g.pick((3, 4)))
    even = [axis for axis, size in enumerate(shape_of(value)) if size & (size - 1) == 0]
    if even and g.draw(st.booleans()):
        axes = g.draw(st.lists(st.sampled_from(even), min_size=1, unique=True))
        return quantized(g, g(ReduceMeanOp, value, axes=axes, keepdims=g.draw(st.booleans())))
    spatial = rank_of(value) - 2
    pads, counts = g.draw(st.sampled_from([0, 1])), g.draw(st.booleans())
    if not pads and min(shape_of(value)[1:-1]) < 2:
        return value
    properties = {"pads": [pads] * (2 * spatial), "count_include_pad": counts, "ceil_mode": g.draw(st.booleans())}
    return tail(g, g(AvgPoolOp, value, kernel_shape=[2] * spatial, **properties))


def step_function_of_codes(g: GraphBuilder) -> SSAValue:
    """A function of one code that only a table gives in integers, through other codes or not."""
    value = quantized(g, g.pick((1, 2, 3, 4)))
    bounded = g(g.draw(st.sampled_from([SigmoidOp, TanhOp])), value)
    if g.draw(st.booleans()):
        bounded = quantized(g, bounded)
    return quantized(g, g(MulOp, value, bounded) if g.draw(st.booleans()) else bounded)


def step_limited_codes(g: GraphBuilder) -> SSAValue:
    """Numbers that codes stand for, within limits, as codes of the same scale or of another."""
    value, kind = g.pick((1, 2, 3, 4)), codes_type(g)
    value = g(DequantizeOp, g(QuantizeOp, value, to=kind))
    low, high = (g.known(np.asarray(limit, np.float32)) for limit in (g.draw(st.integers(-2, 1)) / 2, 1.25))
    value = g(ReluOp, value) if g.draw(st.booleans()) else g(ClipOp, value, low, high)
    return g(DequantizeOp, g(QuantizeOp, value, to=kind)) if g.draw(st.booleans()) else quantized(g, value)


def step_joined_codes(g: GraphBuilder) -> SSAValue:
    """Codes of several scales in one tensor of codes, or within a border of other numbers than zeros."""
    value = g.pick((3, 4))
    if g.draw(st.booleans()):
        return quantized(g, g(data.ConcatOp, [quantized(g, value), quantized(g, value)], axis=1))
    border = g.known(np.asarray(0.75, np.float32))
    return quantized(g, g(data.PadOp, quantized(g, value), border, pads=[1] * (2 * rank_of(value))))


def step_other_integers(g: GraphBuilder) -> SSAValue:
    """Codes as integers with a sign and without, which differ by their highest bit."""
    value, scale = g.pick((1, 2, 3, 4)), 2.0 ** g.draw(st.integers(-5, -1))
    zero = g.draw(st.integers(-128, 127))
    kinds = [uniform(i8, f32, scale, zero), uniform(ui8, f32, scale, zero + 128)]
    for kind in g.draw(st.permutations(kinds)):
        value = g(DequantizeOp, g(QuantizeOp, value, to=kind))
    return value


def step_product_of_codes(g: GraphBuilder) -> SSAValue:
    """A product of codes itself, the right ones constant or not, and the numbers that its sums stand for."""
    value = g.pick((2, 3, 4))
    codes, rank = g(QuantizeOp, value, to=codes_type(g)), rank_of(value)
    channels, outputs = shape_of(value)[-1], g.draw(st.integers(1, 4))
    if rank > 2 and g.draw(st.booleans()):
        filter_ = g(QuantizeOp, g.constant((outputs, *[2] * (rank - 2), channels)), to=codes_type(g))
        sums = g(ConvOp, codes, filter_, pads=[1] * (2 * rank - 4))
    else:
        is_turned = g.draw(st.booleans())
        right = g.constant((outputs, channels) if is_turned else (channels, outputs))
        sums = g(MatMulOp, codes, g(QuantizeOp, right, to=codes_type(g)), transpose_right=is_turned)
    return g(DequantizeOp, sums, g.known(np.full((), 0.125, np.float32)))


QUANTIZED_STEPS: tuple[Step, ...] = (
    step_codes,
    step_quantized_conv,
    step_quantized_matmul,
    step_moved_codes,
    step_product_of_codes,
    step_sum_of_integers,
    step_mean_of_codes,
    step_function_of_codes,
    step_limited_codes,
    step_joined_codes,
    step_other_integers,
)
"""All steps of this file."""

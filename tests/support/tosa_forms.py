"""Forms of operators that TOSA executes in different ways, and the operations that each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from execute import Case
from xdsl.dialects.builtin import f32, i8, i16, i32

from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MaxOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp, SumPoolOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp, LookupOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.quant import UniformQuantizedType


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Random floats."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def whole(*shape: int, dtype: str = "int8", seed: int = 1) -> np.ndarray:
    """Random integers of 8 bits, or sums of products of them."""
    low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (-100_000, 100_000))
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def codes(storage: Any, zero_point: int, *bounds: int) -> UniformQuantizedType:
    """A type of codes."""
    least, most = bounds or (None, None)
    limits = None if least is None or most is None else (least, most)
    return UniformQuantizedType.of(storage, f32, [(0.05, zero_point)], bounds=limits)


def rescaled(x: np.ndarray, multiplier: list[int], shift: list[int], *offset: int, to: Any) -> Case:
    """Codes in another scale."""
    parts = [np.asarray(part, np.int32) for part in (multiplier, shift, list(offset)) if part]
    return Case(IntegerRescaleOp, x, *parts, constants=range(1, 1 + len(parts)), to=to)


NEAREST = {"mode": "nearest"}
FACTOR, PLACES = 1_351_000_007, 40

FORMS: Mapping[str, tuple[str, Case]] = {
    "channels apart": (
        "depthwise_conv2d",
        Case(ConvOp, numbers(1, 9, 9, 4), numbers(8, 3, 3, 1), constants=[1], group=4, pads=[1] * 4, strides=[2, 2]),
    ),
    "groups": (
        "slice slice conv2d conv2d concat",
        Case(ConvOp, numbers(1, 5, 5, 4), numbers(6, 3, 3, 2), numbers(6), constants=[1, 2], group=2),
    ),
    "lines": (
        "reshape conv2d reshape",
        Case(ConvOp, numbers(2, 9, 3), numbers(4, 3, 3), constants=[1], pads=[2, 0], dilations=[2]),
    ),
    "volumes": ("conv3d", Case(ConvOp, numbers(1, 4, 5, 6, 2), numbers(3, 2, 2, 2, 2), constants=[1])),
    "windows that end before the image": (
        "slice conv2d",
        Case(ConvOp, numbers(1, 8, 8, 2), numbers(3, 3, 3, 2), constants=[1], strides=[3, 3]),
    ),
    "filters of a call": (
        "reshape transpose depthwise_conv2d",
        Case(ConvOp, numbers(1, 5, 5, 3), numbers(3, 2, 2, 1), group=3),
    ),
    "sums of i8": ("conv2d", Case(ConvOp, whole(1, 7, 7, 5), whole(4, 3, 3, 5), constants=[1], pads=[1] * 4)),
    "sums of ui8 and i8": (
        "conv2d",
        Case(ConvOp, whole(1, 7, 7, 5, dtype="uint8"), whole(4, 3, 3, 5), constants=[1], pads=[1] * 4),
    ),
    "transposed": (
        "transpose_conv2d",
        Case(
            ConvTransposeOp,
            *(numbers(1, 4, 5, 3), numbers(3, 3, 3, 2), numbers(2)),
            constants=[1, 2],
            strides=[2, 2],
            pads=[1, 1, 0, 1],
            output_padding=[1, 0],
        ),
    ),
    "batches of matrices": (
        "reshape reshape tile reshape matmul reshape",
        Case(MatMulOp, numbers(2, 3, 4, 5), numbers(3, 5, 6)),
    ),
    "matrices turned": (
        "transpose reshape reshape matmul reshape add reshape",
        Case(MatMulOp, numbers(4, 5), numbers(6, 5), numbers(6), transpose_right=True),
    ),
    "matrices of ui8": (
        "reshape conv2d reshape",
        Case(MatMulOp, whole(3, 8, dtype="uint8"), whole(8, 4), constants=[1]),
    ),
    "largest i8": (
        "max_pool2d",
        Case(MaxPoolOp, whole(1, 6, 6, 3), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0]),
    ),
    "last window cut": (
        "max_pool2d",
        Case(MaxPoolOp, numbers(1, 6, 6, 3), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=True),
    ),
    "padding that counts": (
        "pad avg_pool2d",
        Case(AvgPoolOp, numbers(1, 6, 6, 3), kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=True),
    ),
    "padding that does not": (
        "avg_pool2d",
        Case(AvgPoolOp, numbers(1, 6, 6, 3), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
    ),
    "sums of windows": (
        "depthwise_conv2d",
        Case(SumPoolOp, whole(1, 5, 5, 3, dtype="uint8"), kernel_shape=[3, 3], pads=[1] * 4),
    ),
    "every third": (
        "slice reshape slice reshape",
        Case(SliceOp, numbers(2, 10), starts=[0, 1], ends=[2, 9], steps=[1, 3]),
    ),
    "mirrored border": ("reshape gather reshape", Case(PadOp, numbers(2, 5), pads=[0, 3, 0, 2], mode="reflect")),
    "places that are known": (
        "gather reshape",
        Case(GatherOp, numbers(3, 7, 2), np.asarray([[-1, 0], [3, 3]], np.int64), constants=[1], axis=1),
    ),
    "places of i64": (
        "reshape greater add select reshape gather reshape",
        Case(GatherOp, numbers(7, 2), np.asarray([-1, 0, 3], np.int64)),
    ),
    "sums to i8": ("rescale", rescaled(whole(2, 3, dtype="int32"), [FACTOR], [PLACES], to=codes(i8, -7))),
    "by channels": (
        "rescale",
        rescaled(whole(2, 3, dtype="int32"), [FACTOR, FACTOR // 3, 1 << 30], [PLACES, 41, 39], to=codes(i8, 5)),
    ),
    "to a part of the range": (
        "rescale clamp",
        rescaled(whole(2, 3, dtype="int32"), [FACTOR], [PLACES], to=codes(ui8, 3, 3, 100)),
    ),
    "an offset": (
        "add rescale",
        rescaled(whole(2, 3, dtype="int32"), [FACTOR], [PLACES], 5, -6, 70_000, to=codes(ui8, 128)),
    ),
    "an offset of codes": ("rescale", rescaled(whole(2, 3), [FACTOR], [31], -7, to=codes(i8, -7))),
    "by places": (
        "transpose reshape rescale reshape transpose",
        Case(
            IntegerRescaleOp,
            whole(2, 3, 4, 5, dtype="int32"),
            np.arange(FACTOR, FACTOR + 12, dtype=np.int32).reshape(3, 4, 1),
            np.asarray(PLACES, np.int32),
            constants=[1, 2],
            to=codes(i8, 5),
        ),
    ),
    "less than nothing": (
        "mul rescale",
        rescaled(whole(2, 3, dtype="int32"), [-FACTOR, FACTOR, -3], [PLACES, PLACES, 18], to=codes(i8, 0)),
    ),
    "to i16": (
        "rescale maximum minimum add cast",
        rescaled(whole(2, 3, dtype="int32"), [FACTOR], [35], to=codes(i16, 300)),
    ),
    "table of i8": ("table", Case(LookupOp, whole(2, 9), whole(256, seed=4), constants=[1])),
    "table of ui8": (
        "table",
        Case(LookupOp, whole(2, 9, dtype="uint8"), whole(256, seed=4), constants=[1]),
    ),
    "larger ui8": (
        "cast cast maximum cast",
        Case(MaxOp, whole(2, 9, dtype="uint8"), whole(2, 9, dtype="uint8", seed=2)),
    ),
    "wider ui8": ("rescale", Case(CastOp, whole(2, 9, dtype="uint8"), to=i32)),
    "floats to ui8": ("greater ceil floor select sub cast", Case(CastOp, numbers(2, 9) * 200, to=ui8)),
    "quotients of integers": (
        "equal select intdiv select",
        Case(DivOp, whole(3, 9, dtype="int32"), np.tile(np.asarray([0, 7, -3], np.int32)[:, None], (1, 9))),
    ),
    "place of the largest": ("argmax", Case(ArgMaxOp, whole(3, 9), axis=1, keepdims=False)),
    "nearest": (
        "resize",
        Case(
            ResizeOp,
            numbers(1, 3, 4, 2),
            shape=[1, 6, 8, 2],
            mode="nearest",
            coordinates="asymmetric",
            rounding="floor",
        ),
    ),
    "nearest, smaller": (
        "resize",
        Case(
            ResizeOp, whole(1, 6, 9, 2), shape=[1, 4, 3, 2], mode="nearest", coordinates="half_pixel", rounding="ceil"
        ),
    ),
    "between, half a pixel": (
        "resize",
        Case(ResizeOp, numbers(1, 3, 4, 2), shape=[1, 6, 12, 2], mode="linear", coordinates="half_pixel"),
    ),
    "between corners": (
        "resize",
        Case(ResizeOp, numbers(1, 3, 4, 2), shape=[1, 5, 10, 2], mode="linear", coordinates="align_corners"),
    ),
}
"""What is special → the operations, and the operator."""

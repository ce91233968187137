"""ONNX's operators on frequencies: Fourier transforms of signals and of their frames, and mel weights."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import normalize_axis, size_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest, static
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size


def _dft(node: Node, axis: int) -> SSAValue:
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    size = node.sizes()[normalize_axis(axis, node.rank())]
    length = (size - 1) * 2 if inverse and onesided else size
    if node.optional(1) is not None:
        (length,) = node.integers(1, "the length")
    (length,) = static((length,))
    node.check_size(*map(largest, node.sizes()), length)
    return node.emit(DftOp, node.input(), axis=axis, length=length, inverse=inverse, onesided=onesided)


@onnx_operator("DFT", since=17)
def dft_of_attribute(node: Node) -> SSAValue:
    """The axis as an attribute."""
    return _dft(node, node.int("axis", 1))


@onnx_operator("DFT", since=20)
def dft(node: Node) -> SSAValue:
    """The axis as an operand."""
    axis = -2
    if node.optional(2) is not None:
        (axis,) = node.integers(2, "the axis")
    return _dft(node, axis)


@onnx_operator("STFT", since=17)
def stft(node: Node) -> SSAValue:
    """Fourier transforms of windowed frames of a signal [batch, length, parts]."""
    node.check_rank(0, (2, 3), "a signal is [batch, length, 1 or 2]")
    signal = node.input()
    if node.rank() == 2:
        signal = node.emit(ReshapeOp, signal, shape=(*node.sizes(), 1))
    window = node.optional(2)
    (step,) = node.integers(1, "the step between frames")
    available = node.sizes()[1]
    if node.optional(3) is not None:
        (length,) = node.integers(3, "the length of frames")
    else:
        length = static((available,))[0] if window is None else size_of(window)
    if step <= 0 or not 0 < length <= smallest(available):
        reason = f"STFT: frames of {length} elements, {step} apart, do not fit a signal of {available}"
        raise ModelError(reason, node=node.name, hint="check frame_step and frame_length")
    if window is not None and size_of(window) != length:
        reason = f"STFT: a window of {size_of(window)} elements does not fit frames of {length}"
        raise ModelError(reason, node=node.name, hint="check window and frame_length")
    value = _frames(node, signal, (available - length) // step + 1, step, length)
    if window is not None:
        value = node.emit(MulOp, value, node.emit(ReshapeOp, window, shape=(length, 1)))
    return node.emit(DftOp, value, axis=2, length=length, onesided=node.flag("onesided", True))


def _frames(node: Node, signal: SSAValue, count: Size, step: int, length: int) -> SSAValue:
    """
    The frames [batch, count, length, parts] of a signal.

    Frames consist of blocks, whose length is the greatest common divisor of step and frame length.
    """
    batch, _, parts = sizes_of(signal)
    block = math.gcd(step, length)
    needed = (count - 1) * step + length
    blocks = node.emit(ReshapeOp, cut(node, signal, {1: (0, needed)}), shape=(batch, needed // block, parts * block))
    starts = np.arange(largest(count))[:, None] * (step // block) + np.arange(length // block)
    taken = cut(node, node.constant(starts, "frames"), {0: (0, count)})
    frames = node.emit(GatherOp, blocks, taken, axis=1)
    return node.emit(ReshapeOp, frames, shape=(batch, count, length, parts))


@onnx_operator("MelWeightMatrix", since=17)
def mel_weight_matrix(node: Node) -> SSAValue:
    """The matrix from the frequencies of a transform to mel bands, which are triangles."""
    roles = ("number of bands", "length of the transform", "sample rate", "lowest frequency", "highest frequency")
    numbers = [node.array(position, f"the {role}").reshape(-1)[0].item() for position, role in enumerate(roles)]
    bands, length, rate = (int(number) for number in numbers[:3])
    low, high = (float(number) for number in numbers[3:])
    edges = _band_edges(bands, length, rate, low, high) if bands > 0 and rate > 0 and -700 < low <= high else None
    if edges is None or edges[0] < 0 or edges[-1] > length // 2:
        reason = (
            f"MelWeightMatrix: {bands} bands from {low} to {high} do not fit a transform of {length} at rate {rate}"
        )
        raise ModelError(reason, node=node.name, hint="the highest frequency is at most half the rate")
    node.check_size(length // 2 + 1, bands)
    position = np.arange(length // 2 + 1).reshape(-1, 1)
    start, peak, end = edges[:-2], edges[1:-1], edges[2:]
    rising = (position - start) / np.maximum(peak - start, 1) * ((position >= start) & (position < peak))
    falling = (end - position) / np.maximum(end - peak, 1) * ((position > peak) & (position < end))
    kind = element_of_onnx(node.int("output_datatype", 1), "the result of MelWeightMatrix")
    return node.constant((rising + falling + (position == peak)).astype(numpy_dtype(kind)))


def _band_edges(bands: int, length: int, rate: int, low: float, high: float) -> np.ndarray:
    """The frequencies, as indices into the transform, at which bands start, peak and end."""
    lowest, highest = (2595 * math.log10(1 + frequency / 700) for frequency in (low, high))
    mels = np.arange(bands + 2) * ((highest - lowest) / (bands + 2)) + lowest
    return ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)

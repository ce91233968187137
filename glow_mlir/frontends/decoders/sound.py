"""Rows of sound, as an encoder reads them: two convolutions of frames, the second of which halves their number."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import GeluOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.decoders.products import product
from glow_mlir.frontends.decoders.weights import Weights

REACH = 3
"""The neighbouring frames that a convolution reads."""


def sound_rows(node_of: Callable[[str], NodeBuilder], weights: Weights, features: SSAValue) -> SSAValue:
    """The rows [frames / 2, width] of frames [frames, bins] of f32; `node_of` makes the builder of a named node."""
    first = _convolved(node_of("conv1"), weights, features, 1)
    return _convolved(node_of("conv2"), weights, first, 2)


def _convolved(node: NodeBuilder, weights: Weights, frames: SSAValue, step: int) -> SSAValue:
    """The activated products of every `step`-th frame and its neighbours, which are zeros outside."""
    width = weights.config.width
    count, depth = static(sizes_of(frames))
    zeros = node.splat(0.0, element_of(frames), (1, depth))
    padded = node.emit(ConcatOp, [zeros, frames, zeros], axis=0)
    parts = [
        node.emit(SliceOp, padded, starts=(first, 0), ends=(first + count - step + 1, depth), steps=(step, 1))
        for first in range(REACH)
    ]
    joined = node.emit(ConcatOp, parts, axis=1)
    matrix = weights.kernel(node.kind, (width, depth, REACH))
    return node.emit(GeluOp, product(node, joined, matrix, weights.vector(node.kind, None, width, "bias")))

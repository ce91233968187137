"""`fold-into-convolution`: absorb batch-norm and arithmetic with constants a channel into constant filters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.pass_statistics import tally
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
from glow_mlir.transforms.rewriting import erase_dead, fuse_locations, high_functions, replace


@dataclass(frozen=True)
class FoldIntoConvolutionPass(ModulePass):
    """
    Fold what follows a convolution and is linear with constants a channel — batch-norm, products, sums — into its
    filter and bias (Glow's OptimizeBatchNorm and FoldArithmeticChainUnderConvIntoBN).

    The convolution must have constant filter and bias, channels last, and no other use.
    """

    name = "fold-into-convolution"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, HighOp):
                    fold_into_producer(candidate, storage)
            erase_dead(function.block)


def fold_into_producer(op: HighOp, storage: Storage) -> None:
    """Fold `op` into the convolution that produces its first operand, if it can be."""
    found = _producer(op)
    if found is None:
        return
    conv, data = found
    parts = linear_parts(op, data, shape_of(conv.result)[-1], storage)
    filter_ = storage.value_of(conv.filter)
    bias = None if conv.bias is None else storage.value_of(conv.bias)
    if parts is None or filter_ is None or (conv.bias is not None and bias is None):
        return
    factor, addend = parts
    if not (np.isfinite(factor).all() and np.isfinite(addend).all()):
        return  # Infinity times a zero of the filter is NaN, where the original had none.
    with np.errstate(all="ignore"):
        scaled = (filter_.astype(np.float64) * factor.reshape(-1, *(1,) * (filter_.ndim - 1))).astype(filter_.dtype)
        wide = addend if bias is None else bias.astype(np.float64) * factor + addend
        shifted = wide.astype(filter_.dtype)
    if not (np.isfinite(scaled).all() and np.isfinite(shifted).all()):
        return
    emit = Emitter(op, storage)
    hint = conv.filter.name_hint or "filter"
    new = ConvOp.make(
        conv.input,
        emit.constant(scaled, hint),
        emit.constant(shifted, f"{hint}_bias"),
        location=fuse_locations([conv.location, op.location]),
        **{name: value for name, value in conv.properties.items() if name != "operandSegmentSizes"},
    )
    emit.insert(new)
    replace(op, [new.result])
    tally("operators folded into convolutions")


def _producer(op: HighOp) -> tuple[ConvOp, SSAValue] | None:
    """The convolution before `op`, and its result among the operands."""
    for value in op.operands:
        owner = value.owner
        if isinstance(owner, ConvOp) and value.has_one_use() and is_channels_last(owner.layout):
            return owner, value
    return None


def linear_parts(op: HighOp, data: SSAValue, channels: int, storage: Storage) -> tuple[np.ndarray, np.ndarray] | None:
    """`op` as factor and addend a channel of `data`, in f64; `None` where it is not linear with constants."""
    if not isinstance(element_of(data), AnyFloat):
        return None
    if isinstance(op, BatchNormalizationOp):
        return _batch_normalization(op, data, storage)
    if not isinstance(op, AddOp | SubOp | MulOp | DivOp):
        return None
    other = op.right if op.left is data else op.left
    array = storage.value_of(other)
    if array is None or (isinstance(op, DivOp | SubOp) and other is op.left):
        return None
    values = _per_channel(array, channels, rank_of(data))
    if values is None:
        return None
    ones, zeros = np.ones(channels), np.zeros(channels)
    if isinstance(op, AddOp):
        return ones, values
    if isinstance(op, SubOp):
        return ones, -values
    with np.errstate(divide="ignore"):
        return (values if isinstance(op, MulOp) else 1.0 / values), zeros


def _per_channel(array: np.ndarray, channels: int, rank: int) -> np.ndarray | None:
    """`array` as one f64 a channel (the last axis), or `None` where it varies along another axis."""
    if array.ndim > rank or any(size != 1 for size in array.shape[:-1]):
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (channels,)) if array.size in (1, channels) else None


def _batch_normalization(
    op: BatchNormalizationOp, data: SSAValue, storage: Storage
) -> tuple[np.ndarray, np.ndarray] | None:
    rank = rank_of(op.input)
    if op.input is not data or normalize_axis(integer(op.axis), rank) != rank - 1:
        return None
    arrays = [storage.value_of(value) for value in (op.scale, op.offset, op.mean, op.variance)]
    if any(array is None for array in arrays):
        return None
    scale, offset, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    factor = scale / np.sqrt(variance + number(op.epsilon))
    return factor, offset - mean * factor

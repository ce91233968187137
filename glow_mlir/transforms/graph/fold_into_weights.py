"""`fold-into-weights`: absorb batch-norm and arithmetic with constants a channel into constant weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.deferred import Scaled
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.shapes import element_of, size_along
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.rewriting.affine import Affine, AffineOp, affine_parts, data_operand
from glow_mlir.rewriting.linear_operators import Factor, Linear, linear_operator
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import float_limits


class FoldArithmeticIntoWeights(Pattern):
    """What a linear operator's channels are scaled and shifted by, before and behind it, is in its weights and bias."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        linear, storage = linear_operator(op), rewriter.storage
        if linear is None or not storage.is_constant(linear.form.weights):
            return
        if linear.form.bias is not None and not storage.is_constant(linear.form.bias):
            return  # What is added to a product of two variable matrices may be a mask, too large to start a sum from.
        accepts = _leaves_roundings if is_strict(rewriter.function) else _accepts_all
        before, after = _preceding(linear, storage, accepts), _following(linear, storage, accepts)
        if before.ops or after.ops:
            _rewrite(linear, before, after, rewriter)


class FoldFactorIntoWeights(Pattern):
    """A factor that is one number goes to the weights that it reaches through transposes and products."""

    @rooted
    def match_and_rewrite(self, op: AffineOp, rewriter: Rewriter, /) -> None:
        data = None if is_strict(rewriter.function) else data_operand(op, rewriter.storage)
        parts = None if data is None else affine_parts(op, data, rewriter.storage)
        if data is None or parts is None or parts.factor.size != 1 or parts.addend.any():
            return
        linear = _weights_behind(data, rewriter.storage)
        factor = parts.factor.reshape(-1)
        if linear is None or not np.isfinite(factor).all():
            return
        vector = np.broadcast_to(factor, (linear.channels,))
        total = Affine(vector, np.zeros(linear.channels))
        if _rewrite(linear, None, _Chain(total, [], linear.op.results[0]), rewriter, [op.location]):
            remaining = data_operand(op, rewriter.storage)
            assert remaining is not None
            rewriter.replace(op, (), [remaining])


@dataclass(frozen=True)
class FoldIntoWeightsPass(PatternPass):
    """
    Fold batch-norm, products and sums with constants a channel into the weights and the bias of the convolution or
    matrix product before or behind them (Glow's OptimizeBatchNorm, FoldArithmeticChainUnderConvIntoBN,
    ConvTransposeBiasAddFold, FoldMatMulAddIntoFullyConnected).

    What follows folds where nothing else reads the linear operator's result, what precedes where nothing else reads
    what it gives, and an addend before only where there is no padding. A number by which a product of two variable
    matrices is multiplied, as in attention, goes through it to the weights that one of them comes from.

    For the accuracy `strict`, batch-norms fold alone, changes of sign, and what is added behind: other products round
    where the model says it, and overflow there.
    """

    name = "fold-into-weights"
    WALKS = (Walk((FoldArithmeticIntoWeights(),)), Walk((FoldFactorIntoWeights(),)))


@dataclass
class _Chain:
    """Arithmetic that follows or precedes a linear operator, as one factor and one addend a channel."""

    total: Affine
    ops: list[Operation]
    end: SSAValue
    """The value behind the chain, or the one before it."""


Accepts = Callable[[Operation, Affine, bool], bool]
"""Whether an operator, and what it does to each channel, may fold, in front of a linear operator or behind it."""


def _accepts_all(op: Operation, step: Affine, is_behind: bool) -> bool:
    return True


def _leaves_roundings(op: Operation, step: Affine, is_behind: bool) -> bool:
    """Whether it moves no rounding that the model says, but of sums in an order of their own."""
    is_sign = bool((np.abs(step.factor) == 1.0).all()) and not step.addend.any()
    return isinstance(op, BatchNormalizationOp) or is_sign or (is_behind and step.is_identity_but_for_addend())


def _following(linear: Linear, storage: Storage, accepts: Accepts) -> _Chain:
    """The longest chain behind `linear` that nothing else reads into."""
    channels = linear.channels
    chain = _Chain(Affine(np.ones(channels), np.zeros(channels)), [], linear.op.results[0])
    while chain.end.has_one_use():
        op = next(iter(chain.end.uses)).operation
        step = _per_channel(op, chain.end, channels, storage)
        if step is None or not accepts(op, step, True):
            break
        chain.ops.append(op)
        chain.total, chain.end = chain.total.then(step), op.results[0]
    return chain


def _preceding(linear: Linear, storage: Storage, accepts: Accepts) -> _Chain:
    """The longest chain in front of `linear` whose result nothing else reads."""
    channels = size_along(linear.form.data, -1)
    chain = _Chain(Affine(np.ones(channels), np.zeros(channels)), [], linear.form.data)
    while chain.end.has_one_use() and isinstance(chain.end.owner, AffineOp):
        op = chain.end.owner
        data = data_operand(op, storage)
        step = None if data is None else _per_channel(op, data, channels, storage)
        if data is None or step is None or (step.addend.any() and not linear.form.keeps_addends):
            break
        if not accepts(op, step, False):
            break
        chain.ops.append(op)
        chain.total, chain.end = step.then(chain.total), data
    chain.ops.reverse()
    return chain


def _per_channel(op: Operation, data: SSAValue, channels: int, storage: Storage) -> Affine | None:
    """`op` as a finite factor and addend a channel: infinity times a zero of the weights would be NaN."""
    parts = affine_parts(op, data, storage)
    vector = None if parts is None else parts.per_channel(channels)
    if vector is None or not (np.isfinite(vector.factor).all() and np.isfinite(vector.addend).all()):
        return None
    return vector


def _rewrite(
    linear: Linear,
    before: _Chain | None,
    after: _Chain | None,
    rewriter: Rewriter,
    locations: Sequence[LocationAttr] = (),
) -> bool:
    """Replace the linear operator and the chains around it by one; whether its numbers allow it, so that it does."""
    known = rewriter.storage.deferred(linear.form.weights)
    bias = None if linear.form.bias is None else rewriter.storage.value_of(linear.form.bias)
    dtype = numpy_dtype(element_of(linear.op.results[0]))
    shift = np.zeros(linear.channels) if bias is None else bias.astype(np.float64)
    factors: list[Factor] = []
    with np.errstate(all="ignore"):
        if before is not None and before.ops and known is not None:
            if before.total.addend.any():
                shift = shift + linear.answer(known, before.total.addend)
            if not before.total.is_identity_but_for_addend():
                factors.append((before.total.factor, linear.form.inputs))
        if after is not None:
            shift = shift * after.total.factor + after.total.addend
            if not after.total.is_identity_but_for_addend():
                factors.append((after.total.factor, linear.form.outputs))
        weights = linear.scaled(known, factors, dtype) if factors and known is not None else None
        shift = shift.astype(dtype)
        if not np.isfinite(shift).all() or not (weights is None or keeps_digits(weights)):
            return False
    ops = [*(before.ops if before else ()), linear.op, *(after.ops if after else ())]
    emit = rewriter.emit_before(ops[-1])
    hint = linear.form.weights.name_hint or "weights"
    data = before.end if before is not None else linear.form.data
    replaced = linear.form.weights if weights is None else emit.constant(weights, hint)
    shifted = emit.constant(shift, f"{hint}_bias") if linear.form.bias is not None or shift.any() else None
    location = fuse_locations([*(op.location for op in ops), *locations])
    rewriter.replace(ops[-1], linear.rebuilt(data, replaced, shifted, location))
    for op in reversed(ops[:-1]):
        rewriter.erase(op)
    return True


def keeps_digits(weights: Scaled) -> bool:
    """Whether scaled weights are finite, and their largest not so small that its type has no more digits for it."""
    largest = weights.largest()
    weights.forget()
    _, tiny, _ = float_limits(weights.dtype)
    return bool(np.isfinite(largest)) and (largest >= tiny or not weights.source.array().any())


def _weights_behind(value: SSAValue, storage: Storage) -> Linear | None:
    """The linear operator with constant weights that all of `value` is proportional to."""
    while value.has_one_use():
        op = value.owner
        linear = linear_operator(op) if isinstance(op, Operation) else None
        if linear is not None and storage.is_constant(linear.form.weights):
            known = linear.form.bias is None or storage.is_constant(linear.form.bias)
            return linear if known else None
        if isinstance(op, ReshapeOp | TransposeOp):
            value = op.input
        elif isinstance(op, MatMulOp) and op.bias is None:
            value = op.left
        else:
            return None
    return None

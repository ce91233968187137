"""`fold-into-weights`: fold batch-norm and per-channel arithmetic with constants into constant weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.deferred import Deferred, Scaled, Stored
from glow_mlir.constants.layer_weights import agreed, of_all_layers
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.shapes import element_of, has_one_element, size_along
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.rewriting.affine import Affine, AffineOp, affine_parts, data_operand
from glow_mlir.rewriting.elementwise_constants import Computed
from glow_mlir.rewriting.linear_operators import Factor, Linear, linear_operator
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import float_limits


class FoldBiasOfLayers(Pattern):
    """Make an addend whose elements differ between layers the bias of the linear operator before it, without a look."""

    @rooted
    def match_and_rewrite(self, op: AddOp, rewriter: Rewriter, /) -> None:
        for data, addend in ((op.left, op.right), (op.right, op.left)):
            array = rewriter.storage.deferred(addend)
            if array is None or not array.is_per_layer or not isinstance(data.owner, Operation):
                continue
            linear = linear_operator(data.owner) if data.has_one_use() and data.type == op.result.type else None
            if (
                linear is None
                or linear.form.bias is not None
                or array.size != linear.channels
                or array.shape[-1] != linear.channels
            ):
                continue
            if not rewriter.storage.is_constant(linear.form.weights):
                continue
            bias = rewriter.emit.constant(array.reshaped((linear.channels,)), "bias")
            location = fuse_locations([linear.op.location, op.location])
            rewriter.replace(op, linear.rebuilt(linear.form.data, linear.form.weights, bias, location))
            rewriter.erase(linear.op)
            return


class FoldArithmeticIntoWeights(Pattern):
    """Fold per-channel scales and shifts before and behind a linear operator into its weights and bias."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        linear, storage = linear_operator(op), rewriter.storage
        if linear is None or not storage.is_constant(linear.form.weights):
            return
        if linear.form.bias is not None and not storage.is_constant(linear.form.bias):
            return  # The addend of a product of variable matrices may be a mask, too large for accumulators.
        accepts = _leaves_roundings if is_strict(rewriter.function) else _accepts_all
        before, after = _preceding(linear, storage, accepts), _following(linear, storage, accepts)
        if before.ops or after.ops:
            _rewrite(linear, before, after, rewriter)


class FoldFactorIntoWeights(Pattern):
    """Move a scalar factor through transposes and products into constant weights."""

    @rooted
    def match_and_rewrite(self, op: AffineOp, rewriter: Rewriter, /) -> None:
        data = None if is_strict(rewriter.function) else data_operand(op, rewriter.storage)
        if data is None or any(value is not data and not has_one_element(value) for value in op.operands):
            return
        parts = affine_parts(op, data, rewriter.storage)
        if parts is None or parts.addend.any():
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
    Fold batch-norm, products and sums with per-channel constants into the weights and the bias of the convolution or
    matrix product before or behind them (Glow's OptimizeBatchNorm, FoldArithmeticChainUnderConvIntoBN,
    ConvTransposeBiasAddFold, FoldMatMulAddIntoFullyConnected).

    Arithmetic behind is folded if the linear operator's result has no other reader, arithmetic before if its own result
    has none, and addends before only without padding. A scalar factor of a product of two variable matrices, as in
    attention, moves through the product to the weights behind one of them.

    With accuracy `strict`, only batch-norms, changes of sign and addends behind are folded: other products would round
    and overflow elsewhere than in the model.
    """

    name = "fold-into-weights"
    WALKS = (
        Walk((FoldBiasOfLayers(),)),
        Walk((FoldArithmeticIntoWeights(),)),
        Walk((FoldFactorIntoWeights(),)),
    )


@dataclass
class _Chain:
    """A chain of arithmetic before or behind a linear operator, as one factor and one addend per channel."""

    total: Affine
    ops: list[Operation]
    end: SSAValue
    """The value behind the chain, or in front of it."""


Accepts = Callable[[Operation, Affine, bool], bool]
"""Whether an operator, with its affine function per channel, may be folded; the flag says whether it is behind."""


def _accepts_all(op: Operation, step: Affine, is_behind: bool) -> bool:
    return True


def _leaves_roundings(op: Operation, step: Affine, is_behind: bool) -> bool:
    """Whether folding keeps the roundings of the model, apart from the order of sums."""
    is_sign = bool((np.abs(step.factor) == 1.0).all()) and not step.addend.any()
    return isinstance(op, BatchNormalizationOp) or is_sign or (is_behind and step.is_identity_but_for_addend())


def _following(linear: Linear, storage: Storage, accepts: Accepts) -> _Chain:
    """The longest chain behind `linear` without other readers."""
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
    """The longest chain in front of `linear` without other readers."""
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
    """`op` as a finite factor and addend per channel: infinity times a zero weight would be NaN."""
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
    """Replace the linear operator and its chains by one operator; returns whether the new weights are acceptable."""
    known = rewriter.storage.deferred(linear.form.weights)
    dtype = numpy_dtype(element_of(linear.op.results[0]))
    factors: list[Factor] = []
    with np.errstate(all="ignore"):
        shift = np.zeros(linear.channels)
        if before is not None and before.ops and known is not None:
            if before.total.addend.any():
                shift = linear.answer(known, before.total.addend)
            if not before.total.is_identity_but_for_addend():
                factors.append((before.total.factor, linear.form.inputs))
        total = Affine(np.ones(()), shift)
        if after is not None:
            total = total.then(after.total)
            if not after.total.is_identity_but_for_addend():
                factors.append((after.total.factor, linear.form.outputs))
        weights = linear.scaled(known, factors, dtype) if factors and known is not None else None
        bias = _shifted(linear, total, dtype, rewriter.storage)
        if not agreed(bias, lambda array: bool(np.isfinite(array).all())):
            return False
        if weights is not None and not all(keeps_digits(one) for one in of_all_layers(weights)):
            return False
    ops = [*(before.ops if before else ()), linear.op, *(after.ops if after else ())]
    emit = rewriter.emit_before(ops[-1])
    hint = linear.form.weights.name_hint or "weights"
    data = before.end if before is not None else linear.form.data
    replaced = linear.form.weights if weights is None else emit.constant(weights, hint)
    is_needed = linear.form.bias is not None or agreed(bias, lambda array: bool(array.any()))
    shifted = emit.constant(bias, f"{hint}_bias") if is_needed else None
    location = fuse_locations([*(op.location for op in ops), *locations])
    rewriter.replace(ops[-1], linear.rebuilt(data, replaced, shifted, location))
    for op in reversed(ops[:-1]):
        rewriter.erase(op)
    return True


def _shifted(linear: Linear, total: Affine, dtype: np.dtype[Any], storage: Storage) -> Deferred:
    """The bias of a linear operator after an affine function per channel; zeros if it has no bias."""
    bias = None if linear.form.bias is None else storage.deferred(linear.form.bias)
    if bias is None:
        return Stored(np.broadcast_to(total.addend, (linear.channels,)).astype(dtype))

    def shift(arrays: Sequence[np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return (arrays[0].astype(np.float64) * arrays[1] + arrays[2]).astype(dtype)

    coefficients = [np.broadcast_to(part, (linear.channels,)) for part in (total.factor, total.addend)]
    return Computed(f"shift {dtype}", shift, bias.reshaped((linear.channels,)), 0, coefficients, dtype)


def keeps_digits(weights: Deferred) -> bool:
    """Whether scaled weights are finite, and the largest is not so small that precision is lost."""
    assert isinstance(weights, Scaled)
    largest = weights.largest()
    weights.forget()
    _, tiny, _ = float_limits(weights.dtype)
    return bool(np.isfinite(largest)) and (largest >= tiny or not weights.source.array().any())


def _weights_behind(value: SSAValue, storage: Storage) -> Linear | None:
    """The linear operator with constant weights to which all of `value` is proportional."""
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

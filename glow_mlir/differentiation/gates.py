"""Gate functions as operators, so that their gradients are those of the operators."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import activations
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MulOp
from glow_mlir.dialects.glow_high.gated import Gate
from glow_mlir.ir.emitter import Emitter

_PLAIN: dict[str, type[HighOp]] = {
    "relu": activations.ReluOp,
    "sigmoid": activations.SigmoidOp,
    "softplus": activations.SoftplusOp,
    "softsign": activations.SoftsignOp,
    "tanh": activations.TanhOp,
}
_WITH_ALPHA: dict[str, type[HighOp]] = {
    "elu": activations.EluOp,
    "leaky_relu": activations.LeakyReluOp,
    "thresholded_relu": activations.ThresholdedReluOp,
}


def _affine(gate: Gate, x: SSAValue, emit: Emitter) -> SSAValue:
    return emit(AddOp, _times(x, gate.alpha, emit), emit.splat(gate.beta, x))


def _hard_sigmoid(gate: Gate, x: SSAValue, emit: Emitter) -> SSAValue:
    return emit(activations.HardSigmoidOp, x, alpha=gate.alpha, beta=gate.beta)


def _scaled_tanh(gate: Gate, x: SSAValue, emit: Emitter) -> SSAValue:
    return _times(emit(activations.TanhOp, _times(x, gate.beta, emit)), gate.alpha, emit)


_OTHERS: dict[str, Callable[[Gate, SSAValue, Emitter], SSAValue]] = {
    "affine": _affine,
    "hard_sigmoid": _hard_sigmoid,
    "scaled_tanh": _scaled_tanh,
}


def _times(x: SSAValue, factor: float, emit: Emitter) -> SSAValue:
    return emit(MulOp, x, emit.splat(factor, x))


def gated(gate: Gate, x: SSAValue, emit: Emitter) -> SSAValue:
    """A gate function of a value."""
    if gate.clip:
        x = emit(ClipOp, x, emit.splat(-gate.clip, x), emit.splat(gate.clip, x))
    if (operator := _PLAIN.get(gate.name)) is not None:
        return emit(operator, x)
    if (operator := _WITH_ALPHA.get(gate.name)) is not None:
        return emit(operator, x, alpha=gate.alpha)
    return _OTHERS[gate.name](gate, x, emit)

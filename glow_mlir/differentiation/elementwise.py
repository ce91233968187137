"""Gradients of elementwise operators: their scalar bodies are differentiated symbolically."""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.glow_high import activations
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.scalar_body import scalar_body
from glow_mlir.dialects.shapes import element_of
from glow_mlir.differentiation.adjoints import derivative
from glow_mlir.differentiation.bodies import expressions_of_block
from glow_mlir.differentiation.contributions import Contribution, Contributions, by_operand, converted_like, reduced_to
from glow_mlir.differentiation.derivative_values import tensor_of, times
from glow_mlir.frontends.builder.emission import emitted
from glow_mlir.frontends.builder.formulas import NOWHERE
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


def elementwise(op: Elementwise, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent times the derivative of the body for each operand, summed over broadcast axes."""
    operands = [
        Tensor(element_of(value), NOWHERE, f"x{position}", operand=position)
        for position, value in enumerate(op.operands)
    ]
    block, yielded = scalar_body(op)
    root = expressions_of_block(block, dict(zip(block.args, operands, strict=True)))[yielded]
    if not isinstance(root, Tensor):
        return {}
    result = Tensor(element_of(op.result), NOWHERE, "result", operand=len(operands))
    factor = Tensor(element_of(op.result), NOWHERE, "cotangent", operand=len(operands) + 1)
    known = {**dict(zip(operands, op.operands, strict=True)), result: op.result, factor: cotangent}

    def contribution(position: int) -> SSAValue | None:
        product = tensor_of(times(factor, derivative(root, operands[position], {root: result})), factor)
        if not isinstance(product, Tensor):
            return None
        operand = op.operands[position]
        return converted_like(reduced_to(emitted(product, known, emit), operand, emit), operand, emit)

    return by_operand(op, [partial(contribution, position) for position in range(len(operands))])


@gradient(activations.SigmoidOp)
def sigmoid(op: activations.SigmoidOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g·y·(1 - y): the body's exponential may be infinite where y is 0."""
    y = op.result
    return {"input": lambda: emit(MulOp, emit(MulOp, cotangent, y), emit(SubOp, emit.splat(1, y), y))}


@gradient(activations.SwishOp)
def swish(op: activations.SwishOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g·s·(1 + alpha·x·(1 - s)), where s is the sigmoid of alpha·x."""

    def contribution() -> SSAValue:
        x, one = op.input, emit.splat(1, op.input)
        scaled = emit(MulOp, x, emit.splat(number(op.alpha), x)) if number(op.alpha) != 1 else x
        s = emit(activations.SigmoidOp, scaled)
        slope = emit(AddOp, one, emit(MulOp, scaled, emit(SubOp, one, s)))
        return emit(MulOp, emit(MulOp, cotangent, s), slope)

    return {"input": contribution}


@gradient(activations.SoftplusOp)
def softplus(op: activations.SoftplusOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g·sigmoid(x)."""
    return {"input": lambda: emit(MulOp, cotangent, emit(activations.SigmoidOp, op.input))}


@gradient(activations.MishOp)
def mish(op: activations.MishOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g·(t + x·(1 - t²)·sigmoid(x)), where t is the hyperbolic tangent of softplus(x)."""

    def contribution() -> SSAValue:
        x, one = op.input, emit.splat(1, op.input)
        t = emit(activations.TanhOp, emit(activations.SoftplusOp, x))
        inner = emit(MulOp, emit(SubOp, one, emit(MulOp, t, t)), emit(activations.SigmoidOp, x))
        return emit(MulOp, cotangent, emit(AddOp, t, emit(MulOp, x, inner)))

    return {"input": contribution}


@gradient(ClipOp)
def clip(op: ClipOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    g where the operand is strictly between the limits; otherwise g goes to the limit, as at the 0 of a ReLU.

    `torch.nn.ReLU6`, which exporters write as Clip, does the same.
    """
    zero = emit.splat(0, cotangent)

    def beyond(limit: SSAValue, comparison: type[HighOp]) -> SSAValue:
        chosen = emit(WhereOp, emit(comparison, op.input, limit), cotangent, zero)
        return reduced_to(chosen, limit, emit)

    def within() -> SSAValue:
        value = cotangent
        for limit, comparison in ((op.low, GreaterOp), (op.high, LessOp)):
            if limit is not None:
                value = emit(WhereOp, emit(comparison, op.input, limit), value, zero)
        return value

    limits = (("low", op.low, LessOrEqualOp), ("high", op.high, GreaterOrEqualOp))
    found: dict[str, Contribution] = {"input": within}
    return found | {name: partial(beyond, limit, kind) for name, limit, kind in limits if limit is not None}

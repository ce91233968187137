"""PyTorch's operators on divisors of integers."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, converted, equal, not_equal, where
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat
from glow_mlir.frontends.torch.node import Operand, TorchNode

MAX_STEPS = 93
"""The maximum number of divisions of Euclid's algorithm on 64-bit integers (Lamé, 1844)."""


def _is_any(node: TorchNode, value: SSAValue) -> SSAValue:
    """Whether any integer is nonzero."""
    others = flat(node, node.value(converted(not_equal(node.formulas.of(value), 0), i32)))
    largest = node.emit(ReduceMaxOp, others, axes=(0,), keepdims=False)
    return node.value(not_equal(node.formulas.of(largest), 0))


def divisor(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The greatest common divisor of two integers (Euclid)."""
    initial = [node.expanded(node.value(abs(node.of(operand)))) for operand in (one, other)]
    body = Body(node, initial, [])
    with node.builder.inside(body.block):
        high, low = (node.formulas.of(value) for value in body.carried)
        is_done = equal(low, 0)
        rest = high % where(is_done, 1, low)
        following = [node.value(where(is_done, high, low)), node.value(where(is_done, 0, rest))]
        condition = _is_any(node, following[1])
    return body.emit(Trips(MAX_STEPS, _is_any(node, initial[1])), following, [], condition)[0]


@torch_operator("gcd.default")
def gcd(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The non-negative greatest common divisor; 0 for 0 and 0."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return divisor(node, one, other)


@torch_operator("lcm.default")
def lcm(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The non-negative least common multiple; 0 if a number is 0."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    shared: Tensor = node.formulas.of(divisor(node, one, other))
    product = node.of(one) / where(equal(shared, 0), 1, shared) * node.of(other)
    return node.value(abs(product))

"""PyTorch's unary functions, casts, and selections between operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log as natural_logarithm
from math import pi
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.expressions import Tensor, log, not_equal, round_even, sqrt, trunc, where
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.activations import MishOp, ReluOp, SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.torch.arithmetic import combined
from glow_mlir.frontends.torch.formulas import formula_operator
from glow_mlir.frontends.torch.functions import plain, torch_operator
from glow_mlir.frontends.torch.logic import truth
from glow_mlir.frontends.torch.node import Operand, TorchNode

_FUNCTIONS = {kind.FUNCTION.aten: kind for kind in math.FLOAT_FUNCTIONS.values() if kind.FUNCTION.aten}

UNARY: Mapping[str, type[HighOp]] = {
    **{name: kind for name, kind in _FUNCTIONS.items() if not kind.FUNCTION.is_step},
    "abs": math.AbsOp,
    "mish": MishOp,
    "neg": math.NegOp,
    "reciprocal": math.ReciprocalOp,
    "relu": ReluOp,
    "sigmoid": SigmoidOp,
    "tanh": TanhOp,
}
"""Name → the operator that computes it in the element type of the result."""

for _name, _operator in UNARY.items():
    torch_operator(f"{_name}.default")(plain(_operator))

ROUNDING: Mapping[str, type[HighOp]] = {name: kind for name, kind in _FUNCTIONS.items() if kind.FUNCTION.is_step}
"""Rounding functions, which do not change integers."""


def _unless_integer(operator: type[HighOp]) -> Callable[[TorchNode, SSAValue], SSAValue]:
    def run(node: TorchNode, value: SSAValue) -> SSAValue:
        return node.emit(operator, value) if is_float(element_of(value)) else value

    return run


for _name, _operator in ROUNDING.items():
    torch_operator(f"{_name}.default")(_unless_integer(_operator))


@torch_operator("trunc.default")
def truncated(node: TorchNode, value: SSAValue) -> SSAValue:
    """Round toward 0."""
    return node.value(trunc(node.of(value))) if is_float(element_of(value)) else value


@torch_operator("round.decimals")
def rounded(node: TorchNode, value: SSAValue, *, decimals: int = 0) -> SSAValue:
    """Round to a number of decimals; negative decimals round to tens, hundreds and so on."""
    if not is_float(element_of(value)):
        return value
    x, scale = node.of(value), 10.0 ** abs(decimals)
    return node.value(round_even(x * scale) / scale if decimals >= 0 else round_even(x / scale) * scale)


@torch_operator("sign.default")
def sign(node: TorchNode, value: SSAValue) -> SSAValue:
    """-1, 0 or 1; 0 for NaN."""
    if is_bool(element_of(value)):
        return value
    found = node.emit(math.SignOp, value)
    if not is_float(element_of(value)):
        return found
    return node.emit(binary.WhereOp, node.emit(math.IsNanOp, value), node.tensor(0), found)


@formula_operator("rsqrt.default")
def rsqrt(x: Tensor) -> Tensor:
    """1 over the square root."""
    return 1.0 / sqrt(x)


@formula_operator("exp2.default")
def exp2(x: Tensor) -> Tensor:
    """2 to the power x."""
    return 2.0**x


def _logarithm(base: float) -> Callable[[Tensor], Tensor]:
    """The logarithm to a base; exact for powers of the base, except for f64, because it is rounded once."""
    return lambda x: log(x) / natural_logarithm(base)


formula_operator("log2.default", is_exact=True)(_logarithm(2))
formula_operator("log10.default", is_exact=True)(_logarithm(10))


@torch_operator("angle.default")
def angle(node: TorchNode, value: SSAValue) -> SSAValue:
    """π for negative numbers, else 0; NaN stays NaN."""
    x = node.of(value)
    return node.value(where(x < 0.0, pi, where(not_equal(x, x), x, 0.0)))


@torch_operator("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def choice(node: TorchNode, condition: SSAValue, one: Operand, other: Operand) -> SSAValue:
    """One operand where a condition holds, else the other."""
    chosen = node.emit(binary.WhereOp, truth(node, condition), node.tensor(one), node.tensor(other))
    return node.expanded(chosen)


@torch_operator("clamp.default", "clamp.Tensor")
def clamp(node: TorchNode, value: SSAValue, least: Operand | None = None, most: Operand | None = None) -> SSAValue:
    """Clamp values to bounds."""
    found = node.tensor(value)
    if least is not None:
        found = combined(node, binary.MaxOp, found, least)
    if most is not None:
        found = combined(node, binary.MinOp, found, most)
    return node.expanded(found)


@torch_operator("hardtanh.default")
def hardtanh(node: TorchNode, value: SSAValue, least: float = -1, most: float = 1) -> SSAValue:
    """Clamp values to two bounds, by default -1 and 1."""
    return clamp(node, value, least, most)


@torch_operator("_to_copy.default", "prims.convert_element_type.default")
def to_copy(node: TorchNode, value: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Convert to the element type of the result."""
    return node.cast(value, node.element)


@torch_operator("alias.default", "clone.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
def same(node: TorchNode, value: SSAValue, **_: Any) -> SSAValue:
    """The same elements."""
    return value

"""PyTorch's elementwise operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.torch.functions import plain, torch_operator
from glow_mlir.frontends.torch.node import Operand, TorchNode

UNARY: Mapping[str, type[HighOp]] = {
    "abs": math.AbsOp,
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atan": math.AtanOp,
    "atanh": math.AtanhOp,
    "ceil": math.CeilOp,
    "cos": math.CosOp,
    "cosh": math.CoshOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "expm1": math.Expm1Op,
    "floor": math.FloorOp,
    "log": math.LogOp,
    "log1p": math.Log1pOp,
    "mish": act.MishOp,
    "neg": math.NegOp,
    "reciprocal": math.ReciprocalOp,
    "relu": act.ReluOp,
    "round": math.RoundOp,
    "sigmoid": act.SigmoidOp,
    "sign": math.SignOp,
    "sin": math.SinOp,
    "sinh": math.SinhOp,
    "sqrt": math.SqrtOp,
    "tan": math.TanOp,
    "tanh": act.TanhOp,
}
"""Name → the operator that computes it in the element type of the result."""

for _name, _operator in UNARY.items():
    torch_operator(f"{_name}.default")(plain(_operator))

ROUNDING = ("ceil", "floor", "round")
"""What leaves integers as they are."""


def _unless_integer(operator: type[HighOp]) -> Callable[[TorchNode, SSAValue], SSAValue]:
    def run(node: TorchNode, value: SSAValue) -> SSAValue:
        return node.emit(operator, value) if is_float(element_of(value)) else value

    return run


for _name in ROUNDING:
    torch_operator(f"{_name}.default")(_unless_integer(UNARY[_name]))


def _on_both(operator: type[HighOp]) -> Callable[..., SSAValue]:
    """Two operands in the element type of the result."""

    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        return node.expanded(node.emit(operator, node.tensor(one), node.tensor(other)))

    return run


BINARY: Mapping[str, type[HighOp]] = {
    "mul": binary.MulOp,
    "maximum": binary.MaxOp,
    "minimum": binary.MinOp,
}

for _name, _operator in BINARY.items():
    for _overload in ("default", "Tensor", "Scalar"):
        torch_operator(f"{_name}.{_overload}")(_on_both(_operator))


def _with_factor(operator: type[HighOp]) -> Callable[..., SSAValue]:
    """Two operands, the second of which has a factor."""

    def run(node: TorchNode, one: Operand, other: Operand, alpha: float = 1) -> SSAValue:
        right = node.tensor(other)
        if alpha != 1:
            right = node.emit(binary.MulOp, right, node.tensor(alpha))
        return node.expanded(node.emit(operator, node.tensor(one), right))

    return run


for _name, _operator in {"add": binary.AddOp, "sub": binary.SubOp}.items():
    torch_operator(f"{_name}.Tensor", f"{_name}.Scalar")(_with_factor(_operator))


@torch_operator("div.Tensor", "div.Scalar")
def div(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The quotient, of integers too, in floats."""
    return node.expanded(node.emit(binary.DivOp, node.tensor(one), node.tensor(other)))


@torch_operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """One number to the power of another."""
    return node.expanded(node.emit(binary.PowOp, node.tensor(one), node.tensor(other)))


COMPARISONS: Mapping[str, type[HighOp]] = {
    "eq": binary.EqualOp,
    "ge": binary.GreaterOrEqualOp,
    "gt": binary.GreaterOp,
    "le": binary.LessOrEqualOp,
    "lt": binary.LessOp,
}


def _comparison(operator: type[HighOp], negates: bool = False) -> Callable[..., SSAValue]:
    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        found = node.emit(operator, *node.promoted(one, other))
        return node.expanded(node.emit(math.NotOp, found) if negates else found)

    return run


for _name, _operator in COMPARISONS.items():
    torch_operator(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_operator))
torch_operator("ne.Tensor", "ne.Scalar")(_comparison(binary.EqualOp, negates=True))


def truth(node: TorchNode, value: SSAValue) -> SSAValue:
    """Whether elements are other than 0."""
    return value if is_bool(element_of(value)) else node.emit(math.CastOp, value, to=i1)


def _logical(operator: type[HighOp]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, *values: SSAValue) -> SSAValue:
        return node.expanded(node.emit(operator, *(truth(node, value) for value in values)))

    return run


for _name, _operator in {
    "and": binary.AndOp,
    "not": math.NotOp,
    "or": binary.OrOp,
    "xor": binary.XorOp,
}.items():
    torch_operator(f"logical_{_name}.default")(_logical(_operator))

BITS: Mapping[str, tuple[type[HighOp], type[HighOp]]] = {
    "and": (binary.AndOp, binary.BitwiseAndOp),
    "not": (math.NotOp, math.BitwiseNotOp),
    "or": (binary.OrOp, binary.BitwiseOrOp),
    "xor": (binary.XorOp, binary.BitwiseXorOp),
}
"""Word → the operator on truth values, and that on integers."""


def _bitwise(operators: tuple[type[HighOp], type[HighOp]]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, *values: Operand) -> SSAValue:
        operator = operators[0 if is_bool(node.element) else 1]
        return node.expanded(node.emit(operator, *(node.tensor(value) for value in values)))

    return run


for _name, _operators in BITS.items():
    torch_operator(*(f"bitwise_{_name}.{overload}" for overload in ("default", "Tensor", "Scalar", "Scalar_Tensor")))(
        _bitwise(_operators)
    )


@torch_operator("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(node: TorchNode, condition: SSAValue, one: Operand, other: Operand) -> SSAValue:
    """One operand where a condition holds, else the other."""
    chosen = node.emit(binary.WhereOp, truth(node, condition), node.tensor(one), node.tensor(other))
    return node.expanded(chosen)


@torch_operator("clamp.default", "clamp.Tensor")
def clamp(node: TorchNode, value: SSAValue, least: Operand | None = None, most: Operand | None = None) -> SSAValue:
    """Values that are not below one bound, and not above the other."""
    found = node.tensor(value)
    if least is not None:
        found = node.emit(binary.MaxOp, found, node.tensor(least))
    if most is not None:
        found = node.emit(binary.MinOp, found, node.tensor(most))
    return node.expanded(found)


@torch_operator("hardtanh.default")
def hardtanh(node: TorchNode, value: SSAValue, least: float = -1, most: float = 1) -> SSAValue:
    """Values between two bounds."""
    return clamp(node, value, least, most)


@torch_operator("gelu.default")
def gelu(node: TorchNode, value: SSAValue, *, approximate: str = "none") -> SSAValue:
    """x · Φ(x)."""
    return node.emit(act.GeluOp, value, approximate=approximate)


@torch_operator("leaky_relu.default")
def leaky_relu(node: TorchNode, value: SSAValue, slope: float = 0.01) -> SSAValue:
    """x, and below 0 a part of it."""
    return node.emit(act.LeakyReluOp, value, alpha=slope)


@torch_operator("silu.default")
def silu(node: TorchNode, value: SSAValue) -> SSAValue:
    """x · sigmoid(x)."""
    return node.emit(act.SwishOp, value, alpha=1.0)


@torch_operator("hardswish.default")
def hardswish(node: TorchNode, value: SSAValue) -> SSAValue:
    """x · min(max(x + 3, 0), 6) / 6."""
    return node.emit(act.HardSwishOp, value)


@torch_operator("hardsigmoid.default")
def hardsigmoid(node: TorchNode, value: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6) / 6."""
    return node.emit(act.HardSigmoidOp, value, alpha=1 / 6, beta=0.5)


@torch_operator("rsqrt.default")
def rsqrt(node: TorchNode, value: SSAValue) -> SSAValue:
    """1 over the square root."""
    return node.emit(math.ReciprocalOp, node.emit(math.SqrtOp, node.tensor(value)))


@torch_operator("_to_copy.default", "prims.convert_element_type.default")
def to_copy(node: TorchNode, value: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """A copy in the element type of the result."""
    return node.cast(value, node.element)


@torch_operator("alias.default", "clone.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
def same(node: TorchNode, value: SSAValue, **_: Any) -> SSAValue:
    """The same elements."""
    return value

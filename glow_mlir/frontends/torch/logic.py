"""PyTorch's comparisons, and its logical and bitwise operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, ui8
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Operand, TorchNode

COMPARISONS: Mapping[str, type[HighOp]] = {
    "eq": binary.EqualOp,
    "ge": binary.GreaterOrEqualOp,
    "gt": binary.GreaterOp,
    "le": binary.LessOrEqualOp,
    "lt": binary.LessOp,
}


def numbers(node: TorchNode, *operands: Operand) -> tuple[SSAValue, ...]:
    """Convert operands to the type in which PyTorch compares them; truth values become 0 and 1."""
    values = node.promoted(*operands)
    return tuple(node.cast(value, ui8) if is_bool(element_of(value)) else value for value in values)


def _comparison(operator: type[HighOp], negates: bool = False) -> Callable[..., SSAValue]:
    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        found = node.emit(operator, *numbers(node, one, other))
        return node.expanded(node.emit(math.NotOp, found) if negates else found)

    return run


for _name, _operator in COMPARISONS.items():
    torch_operator(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_operator))
torch_operator("ne.Tensor", "ne.Scalar")(_comparison(binary.EqualOp, negates=True))


def truth(node: TorchNode, value: SSAValue) -> SSAValue:
    """Whether elements are nonzero."""
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
"""Word → the operators on truth values and on integers."""


def _bitwise(operators: tuple[type[HighOp], type[HighOp]]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, *values: Operand) -> SSAValue:
        operator = operators[0 if is_bool(node.element) else 1]
        return node.expanded(node.emit(operator, *(node.tensor(value) for value in values)))

    return run


for _name, _operators in BITS.items():
    torch_operator(*(f"bitwise_{_name}.{overload}" for overload in ("default", "Tensor", "Scalar", "Scalar_Tensor")))(
        _bitwise(_operators)
    )


def _shift(direction: str) -> Callable[..., SSAValue]:
    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        return node.expanded(node.emit(binary.BitShiftOp, node.tensor(one), node.tensor(other), direction=direction))

    return run


for _direction in ("left", "right"):
    for _prefix in (f"bitwise_{_direction}_shift", f"__{_direction[0]}shift__"):
        torch_operator(
            *(f"{_prefix}.{overload}" for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor", "Scalar"))
        )(_shift(_direction))


def _of_float(operator: type[HighOp]) -> Callable[..., SSAValue]:
    """A test that is false for all integers."""

    def run(node: TorchNode, value: SSAValue) -> SSAValue:
        if not is_float(element_of(value)):
            return node.splat(0, node.element, node.sizes)
        return node.emit(operator, value)

    return run


torch_operator("isnan.default")(_of_float(math.IsNanOp))
torch_operator("isinf.default")(_of_float(math.IsInfOp))

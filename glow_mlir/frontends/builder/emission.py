"""Emit expressions without folds as operators on tensors, one for each operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.expressions import Number, Tensor
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.activations import TanhOp
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.reductions import CumSumOp, Reduction
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.dialects.staging import COMPARISONS, postorder
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.symbols import Size, Sizes


class OperatorEmitter(Protocol):
    """Emits operators: an `Emitter`, or the builder of a node."""

    def __call__(self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None) -> SSAValue:
        """Emit an operator and return its first result."""
        ...

    def splat(self, value: float, like: SSAValue | Attribute, shape: Sizes = ()) -> SSAValue:
        """A splat of `value` in the element type of `like`, by default a scalar."""
        ...


_BINARY: dict[str, type[HighOp]] = {
    "add": binary.AddOp,
    "sub": binary.SubOp,
    "mul": binary.MulOp,
    "div": binary.DivOp,
    "max": binary.MaxOp,
    "min": binary.MinOp,
    "power": binary.PowOp,
    "eq": binary.EqualOp,
    "lt": binary.LessOp,
    "le": binary.LessOrEqualOp,
    "gt": binary.GreaterOp,
    "ge": binary.GreaterOrEqualOp,
}

_UNARY: dict[str, type[HighOp]] = {**unary.FLOAT_FUNCTIONS, "abs": unary.AbsOp, "negate": unary.NegOp, "tanh": TanhOp}

_BITS: dict[str, tuple[type[HighOp], type[HighOp]]] = {
    "and": (binary.AndOp, binary.BitwiseAndOp),
    "or": (binary.OrOp, binary.BitwiseOrOp),
    "xor": (binary.XorOp, binary.BitwiseXorOp),
}
"""Word → the operators on truth values and on integers."""


def positions(count: Size, element: Attribute, emit: OperatorEmitter) -> SSAValue:
    """The vector 0, 1, 2, … of `count` elements, in an integer type."""
    return emit(CumSumOp, emit.splat(1, element, (count,)), axis=0, exclusive=True)


def over_all(operator: type[Reduction], value: SSAValue, emit: OperatorEmitter) -> SSAValue:
    """Reduce all elements to a scalar."""
    return emit(operator, value, axes=tuple(range(rank_of(value))), keepdims=False)


KNOWN = frozenset({*_BINARY, *_UNARY, *_BITS, "select", "convert", "fma", "ne", "rem", "trunc"})
"""The words of operations that can be emitted."""


def emitted(root: Tensor, known: Mapping[Tensor, SSAValue], emit: OperatorEmitter) -> SSAValue:
    """Emit an expression; `known` has the values of some of its parts. Scalars broadcast."""
    values = dict(known)
    for part in postorder(root, values):
        values[part] = emitted_operation(part, values, emit)
    return values[root]


def emitted_operation(part: Tensor, values: Mapping[Tensor, SSAValue], emit: OperatorEmitter) -> SSAValue:
    """Emit one operation, given the values of its parts; raises `UnsupportedError` if it has no operator."""
    like = part.element if part.word == "select" else part.parts[0].element
    operands = [_value(item, values, like, emit) for item in part.arguments]
    word = part.word
    if word == "select":
        return emit(binary.WhereOp, *operands)
    if word == "convert":
        return emit(unary.CastOp, *operands, to=part.element)
    if word == "fma":
        return emit(binary.AddOp, emit(binary.MulOp, *operands[:2]), operands[2])
    if word == "ne":
        return emit(unary.NotOp, emit(binary.EqualOp, *operands))
    if word == "rem":
        return emit(binary.ModOp, *operands, fmod=True)
    if word == "trunc":
        is_below = emit(binary.LessOp, *operands, emit.splat(0, operands[0]))
        return emit(binary.WhereOp, is_below, emit(unary.CeilOp, *operands), emit(unary.FloorOp, *operands))
    if word in _BITS:
        return emit(_BITS[word][0 if is_bool(part.element) else 1], *operands)
    operator = _BINARY.get(word) or _UNARY.get(word)
    if operator is None:
        raise UnsupportedError(f"there is no operator for '{word}'")
    return emit(operator, *operands)


def _value(
    item: Tensor | Number, values: Mapping[Tensor, SSAValue], like: Attribute, emit: OperatorEmitter
) -> SSAValue:
    return values[item] if isinstance(item, Tensor) else emit.splat(item, like)


assert not COMPARISONS - {*_BINARY, "ne"}

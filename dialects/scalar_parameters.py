"""
Scalar parameters: constants of bodies that are passed to code at run time, so that bodies differing in them share code.

`parameterize-scalars` numbers the constants that are parameters. Parameters with the same number, in instructions whose
bodies are otherwise equal, may have different values of one kind; kinds exist because code may be simpler for 0 or for
whole numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import isnan

from xdsl.dialects.arith import ConstantOp, MaximumfOp, MinimumfOp
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType, f32, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.structure import blocks_of, structure_of
from glow_mlir.support.identity import kept_by_identity, number_of

PARAMETER = "glow_low.parameter"
"""The attribute of a constant that is a scalar parameter: its number among those of the instruction."""

WIDEST_WHOLE = 1 << 16
"""Whole numbers from this one on are not distinguished from other numbers."""

MAX_NEAR_ZERO_POINT = (1 << 15) - (1 << 8)
"""The largest zero point for which 8-bit values less the zero point fit into 16 bits."""


def parameter_number(value: SSAValue | Operation) -> int | None:
    """The number of a constant that is a scalar parameter; `None` for any other value."""
    owner = value if isinstance(value, Operation) else value.owner
    if not isinstance(owner, ConstantOp):
        return None
    number = owner.attributes.get(PARAMETER)
    return number.value.data if isinstance(number, IntegerAttr) else None


def set_parameter(op: ConstantOp, number: int) -> None:
    """Make a constant the scalar parameter of that number."""
    op.attributes[PARAMETER] = IntegerAttr(number, i64)


def whole_number(value: Attribute) -> int | None:
    """The whole number that a float is, below `WIDEST_WHOLE`; `None` for any other attribute."""
    found = scalar(value)
    if found is None or found[0] != f32:
        return None
    number = found[1]
    return int(number) if abs(number) < WIDEST_WHOLE and number == int(number) else None


def kind_of(value: Attribute) -> Hashable:
    """
    The kind of a parameter's value, of f32 or i32; `None` for values that cannot be parameters: other types and NaN.
    """
    found = scalar(value)
    if found is None or isnan(found[1]):
        return None
    type_, number = found
    if number == 0:
        return type_, "zero"
    if type_ != f32 or whole_number(value) is None:
        return type_, "number"
    return type_, "near" if abs(number) <= MAX_NEAR_ZERO_POINT else "far"


def scalar(value: Attribute) -> tuple[Attribute, float | int] | None:
    """Type and number of an attribute of f32 or i32; `None` for any other."""
    match value:
        case FloatAttr(type=Float32Type() as type_, value=data):
            return type_, data.data
        case IntegerAttr(type=IntegerType() as type_, value=data) if type_ == i32:
            return type_, data.data
        case _:
            return None


def may_be_parameter(op: ConstantOp) -> bool:
    """Whether a constant may be a scalar parameter: code for clips depends on their bounds."""
    bounds = any(isinstance(use.operation, MaximumfOp | MinimumfOp) for use in op.result.uses)
    return kind_of(op.value) is not None and not bounds


def number_of_constant(op: ConstantOp) -> int:
    """A number that represents all constants of the same kind, for which code and its selection are the same."""
    return _number_of_kind(op.value) if may_be_parameter(op) else number_of(op.value)


@kept_by_identity
def _number_of_kind(value: Attribute) -> int:
    return number_of(kind_of(value))


def shared_structure(blocks: Iterable[Block]) -> Hashable:
    """A key shared by blocks that may share code: equal except for the values of their parameters."""
    return structure_of(blocks, _known)


def _known(op: ConstantOp) -> Hashable:
    number = parameter_number(op)
    return op.value if number is None else (number, kind_of(op.value))


def has_parameters(block: Block) -> bool:
    """Whether constants of a body are scalar parameters."""
    return any(parameter_number(op) is not None for op in block.walk())


def parameters(op: Operation) -> list[ConstantOp]:
    """The scalar parameters of an instruction, in the order of their numbers; none where it has none."""
    found = [one for one in body_constants(op) if parameter_number(one) is not None]
    return sorted(found, key=lambda one: parameter_number(one) or 0)


def body_constants(op: Operation) -> list[ConstantOp]:
    """The constants in the bodies of an instruction, in order."""
    return [one for block in blocks_of(op.regions) for one in block.walk() if isinstance(one, ConstantOp)]

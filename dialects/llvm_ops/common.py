"""Constraints and base classes that the added `llvm` operations share."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    SignlessIntegerConstraint,
    VectorType,
    i1,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

FLOAT = AnyFloatConstr
INTEGER = SignlessIntegerConstraint
BOOL = EqAttrConstraint(i1)
FLOAT_OR_VECTOR = FLOAT | VectorType.constr(FLOAT)
INTEGER_OR_VECTOR = INTEGER | VectorType.constr(INTEGER)
BOOL_OR_VECTOR = BOOL | VectorType.constr(BOOL)
POINTER_OR_VECTOR = base(LLVMPointerType) | VectorType.constr(base(LLVMPointerType))

INTRINSIC_FORMAT = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

Value = SSAValue | Operation


def fast_math(flags: FastMathAttr | FastMathFlag | Sequence[FastMathFlag] | None) -> FastMathAttr:
    """Return `flags` as the attribute `#llvm.fastmath<…>`; None means no flag."""
    if isinstance(flags, FastMathAttr):
        return flags
    if isinstance(flags, FastMathFlag):
        return FastMathAttr((flags,))
    return FastMathAttr(flags)


def lanes(type_: Attribute) -> int | None:
    """Return how many elements a vector type has, or None for a scalar type."""
    return type_.get_shape()[0] if isinstance(type_, VectorType) else None


def with_lanes(element: Attribute, count: int | None) -> Attribute:
    """Return `element` itself when `count` is None, else the vector of `count` such elements."""
    return element if count is None else VectorType(element, [count])


def verify_same_lanes(op: Operation, *types: Attribute) -> None:
    """
    Check that all types are scalars, or all vectors of one length.

    Raises `VerifyException` naming `op` otherwise.
    """
    if len({lanes(type_) for type_ in types}) > 1:
        listed = ", ".join(str(type_) for type_ in types)
        raise VerifyException(f"'{op.name}' mixes vectors of different lengths, or vectors with scalars: {listed}")


class FloatIntrinsic(IRDLOperation, ABC):
    """An intrinsic on floats: operands and result have one type, fast-math flags allowed."""

    T: ClassVar = VarConstraint("T", FLOAT_OR_VECTOR)

    res = result_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))

    traits = traits_def(Pure())
    assembly_format = INTRINSIC_FORMAT
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, *operands: Value, flags: FastMathAttr | FastMathFlag | Sequence[FastMathFlag] | None = None):
        super().__init__(
            operands=operands,
            result_types=[SSAValue.get(operands[0]).type],
            properties={"fastmathFlags": fast_math(flags)},
        )


class UnaryFloatIntrinsic(FloatIntrinsic, ABC):
    """`llvm.intr.<name>(%x)` on a float or a vector of floats."""

    arg = operand_def(FloatIntrinsic.T)


class BinaryFloatIntrinsic(FloatIntrinsic, ABC):
    """`llvm.intr.<name>(%a, %b)` on floats or vectors of floats."""

    lhs = operand_def(FloatIntrinsic.T)
    rhs = operand_def(FloatIntrinsic.T)


class TernaryFloatIntrinsic(FloatIntrinsic, ABC):
    """`llvm.intr.<name>(%a, %b, %c)` on floats or vectors of floats."""

    a = operand_def(FloatIntrinsic.T)
    b = operand_def(FloatIntrinsic.T)
    c = operand_def(FloatIntrinsic.T)


class IntegerIntrinsic(IRDLOperation, ABC):
    """An intrinsic on integers: operands and result have one type."""

    T: ClassVar = VarConstraint("T", INTEGER_OR_VECTOR)

    res = result_def(T)

    traits = traits_def(Pure())
    assembly_format = INTRINSIC_FORMAT

    def __init__(self, *operands: Value):
        super().__init__(operands=operands, result_types=[SSAValue.get(operands[0]).type])


class UnaryIntegerIntrinsic(IntegerIntrinsic, ABC):
    """`llvm.intr.<name>(%x)` on an integer or a vector of integers."""

    arg = operand_def(IntegerIntrinsic.T)


class BinaryIntegerIntrinsic(IntegerIntrinsic, ABC):
    """`llvm.intr.<name>(%a, %b)` on integers or vectors of integers."""

    lhs = operand_def(IntegerIntrinsic.T)
    rhs = operand_def(IntegerIntrinsic.T)


class TernaryIntegerIntrinsic(IntegerIntrinsic, ABC):
    """`llvm.intr.<name>(%a, %b, %c)` on integers or vectors of integers."""

    a = operand_def(IntegerIntrinsic.T)
    b = operand_def(IntegerIntrinsic.T)
    c = operand_def(IntegerIntrinsic.T)

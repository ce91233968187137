"""Comparison, selection, conversion and undefined values, on scalars and vectors alike."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr, VectorType, i1, i64
from xdsl.dialects.llvm import (
    FastMathAttr,
    FCmpPredicateFlag,
    GenericCastOp,
    ICmpPredicateFlag,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.llvm_ops.common import (
    BOOL_OR_VECTOR,
    FLOAT_OR_VECTOR,
    INTEGER_OR_VECTOR,
    POINTER_OR_VECTOR,
    Value,
    fast_math,
    lanes,
    verify_same_lanes,
    with_lanes,
)
from glow_mlir.xdsl_patches.definitions import op_definition


def _parse_comparison(
    parser: Parser,
) -> tuple[str, UnresolvedOperand, UnresolvedOperand, dict[str, Attribute]]:
    """Parse `"predicate" %lhs, %rhs {attributes} :`, up to the type."""
    predicate = parser.parse_str_literal()
    lhs = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    rhs = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return predicate, lhs, rhs, attributes


def _print_comparison(
    printer: Printer, predicate: str, lhs: SSAValue, rhs: SSAValue, attributes: dict[str, Attribute]
) -> None:
    """Print what `_parse_comparison` reads, and the type of the operands."""
    printer.print_string(f' "{predicate}" ')
    printer.print_ssa_value(lhs)
    printer.print_string(", ")
    printer.print_ssa_value(rhs)
    printer.print_op_attributes(attributes)
    printer.print_string(" : ")
    printer.print_attribute(lhs.type)


def verify_result_of_comparison(op: Operation, compared: Attribute, result: Attribute) -> None:
    """Check that operands and result of a comparison are scalars, or vectors of one length."""
    if isinstance(result, VectorType) != isinstance(compared, VectorType):
        kind, of = ("a vector", "vectors") if isinstance(compared, VectorType) else ("scalar", "scalar")
        raise VerifyException(f"Result must be {kind} if operands are {of}, got {result}")
    verify_same_lanes(op, compared, result)


@op_definition
class ICmpOp(IRDLOperation):
    """Compare integers or pointers: `llvm.icmp "slt" %a, %b : vector<8xi32>`."""

    name = "llvm.icmp"

    T: ClassVar = VarConstraint("T", INTEGER_OR_VECTOR | POINTER_OR_VECTOR)

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(BOOL_OR_VECTOR)
    predicate = prop_def(IntegerAttr[I64])

    traits = traits_def(Pure())

    def __init__(self, predicate: str, lhs: Value, rhs: Value, attributes: dict[str, Attribute] | None = None):
        super().__init__(
            operands=[lhs, rhs],
            attributes=attributes or {},
            result_types=[with_lanes(i1, lanes(SSAValue.get(lhs).type))],
            properties={"predicate": IntegerAttr(ICmpPredicateFlag(predicate).to_int(), i64)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        predicate, lhs, rhs, attributes = _parse_comparison(parser)
        type_ = parser.parse_type()
        return cls(predicate, parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_), attributes)

    def print(self, printer: Printer) -> None:
        predicate = ICmpPredicateFlag.from_int(self.predicate.value.data)
        _print_comparison(printer, predicate, self.lhs, self.rhs, self.attributes)

    def verify_(self) -> None:
        verify_result_of_comparison(self, self.lhs.type, self.res.type)


@op_definition
class FCmpOp(IRDLOperation):
    """Compare floats: `llvm.fcmp "olt" %a, %b {fastmathFlags = #llvm.fastmath<nnan>} : vector<8xf32>`."""

    name = "llvm.fcmp"

    T: ClassVar = VarConstraint("T", FLOAT_OR_VECTOR)

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(BOOL_OR_VECTOR)
    predicate = prop_def(IntegerAttr[I64])
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))

    traits = traits_def(Pure())

    def __init__(
        self,
        predicate: str,
        lhs: Value,
        rhs: Value,
        flags: FastMathAttr | FastMathFlag | Sequence[FastMathFlag] | None = None,
        attributes: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[lhs, rhs],
            attributes=attributes or {},
            result_types=[with_lanes(i1, lanes(SSAValue.get(lhs).type))],
            properties={
                "predicate": IntegerAttr(FCmpPredicateFlag(predicate).to_int(), i64),
                "fastmathFlags": fast_math(flags),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        predicate, lhs, rhs, attributes = _parse_comparison(parser)
        type_ = parser.parse_type()
        flags = attributes.pop("fastmathFlags", None)
        if flags is not None and not isinstance(flags, FastMathAttr):
            parser.raise_error("expected 'fastmathFlags' to be a #llvm.fastmath attribute")
        lhs, rhs = parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_)
        return cls(predicate, lhs, rhs, flags, attributes)

    def print(self, printer: Printer) -> None:
        predicate = FCmpPredicateFlag.from_int(self.predicate.value.data)
        flags = {"fastmathFlags": self.fastmathFlags} if self.fastmathFlags.data else {}
        _print_comparison(printer, predicate, self.lhs, self.rhs, {**flags, **self.attributes})

    def verify_(self) -> None:
        verify_result_of_comparison(self, self.lhs.type, self.res.type)


@op_definition
class SelectOp(IRDLOperation):
    """Choose between two values, or lane by lane: `llvm.select %m, %a, %b : vector<8xi1>, vector<8xf32>`."""

    name = "llvm.select"

    T: ClassVar = VarConstraint("T", AnyAttr())

    cond = operand_def(BOOL_OR_VECTOR)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))

    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        cond: Value,
        lhs: Value,
        rhs: Value,
        flags: FastMathAttr | FastMathFlag | Sequence[FastMathFlag] | None = None,
    ):
        super().__init__(
            operands=[cond, lhs, rhs],
            result_types=[SSAValue.get(lhs).type],
            properties={"fastmathFlags": fast_math(flags)},
        )

    def verify_(self) -> None:
        if self.cond.type != i1:
            verify_same_lanes(self, self.cond.type, self.res.type)


@op_definition
class FreezeOp(IRDLOperation):
    """Turn poison into some fixed value: `llvm.freeze %x : i32`."""

    name = "llvm.freeze"

    T: ClassVar = VarConstraint("T", AnyAttr())

    val = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$val attr-dict `:` type($val)"

    def __init__(self, val: Value):
        super().__init__(operands=[val], result_types=[SSAValue.get(val).type])


@op_definition
class PoisonOp(IRDLOperation):
    """A value that must not be observed: `llvm.mlir.poison : vector<8xf32>`."""

    name = "llvm.mlir.poison"

    res = result_def()

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


class _VerifiedCast(GenericCastOp, ABC):
    """A conversion between scalars, or between vectors of one length."""

    def verify_(self) -> None:
        verify_same_lanes(self, self.arg.type, self.result.type)


@op_definition
class FPToSIOp(_VerifiedCast):
    """Float to signed integer, towards zero; poison outside the range: `llvm.fptosi %x : f32 to i32`."""

    name = "llvm.fptosi"


@op_definition
class FPToUIOp(_VerifiedCast):
    """Float to unsigned integer, towards zero; poison outside the range."""

    name = "llvm.fptoui"


@op_definition
class UIToFPOp(IRDLOperation):
    """Unsigned integer to float: `llvm.uitofp nneg %x : i32 to f32`; `nneg` promises a clear top bit."""

    name = "llvm.uitofp"

    arg = operand_def(INTEGER_OR_VECTOR)
    res = result_def(FLOAT_OR_VECTOR)
    non_neg = opt_prop_def(UnitAttr, prop_name="nonNeg")

    traits = traits_def(Pure())
    assembly_format = "(`nneg` $nonNeg^)? $arg attr-dict `:` type($arg) `to` type($res)"

    def __init__(self, arg: Value, result_type: Attribute, non_neg: bool = False):
        super().__init__(
            operands=[arg],
            result_types=[result_type],
            properties={"nonNeg": UnitAttr() if non_neg else None},
        )

    def verify_(self) -> None:
        verify_same_lanes(self, self.arg.type, self.res.type)


@op_definition
class AddrSpaceCastOp(GenericCastOp):
    """A pointer seen in another address space: `llvm.addrspacecast %p : !llvm.ptr<1> to !llvm.ptr`."""

    name = "llvm.addrspacecast"

    def verify_(self) -> None:
        if self.arg.type == self.result.type:
            raise VerifyException(f"'{self.name}' must change the address space")


OPERATIONS = (
    ICmpOp,
    FCmpOp,
    SelectOp,
    FreezeOp,
    PoisonOp,
    FPToSIOp,
    FPToUIOp,
    UIToFPOp,
    AddrSpaceCastOp,
)

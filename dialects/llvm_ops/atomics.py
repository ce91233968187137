"""Read-modify-write, compare-and-exchange and fences: what threads need."""

from __future__ import annotations

from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import I64, AnyFloatConstr, IntegerAttr, IntegerType, StringAttr, UnitAttr, i1, i64
from xdsl.dialects.llvm import LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.llvm_ops.common import INTEGER, Value
from glow_mlir.dialects.llvm_ops.ordering import (
    ordering_attr,
    ordering_name,
    parse_ordering,
    parse_syncscope,
    present,
    print_syncscope,
)
from glow_mlir.support.op_definition import op_definition

ATOMIC_BINARY = (
    "xchg",
    "add",
    "sub",
    "_and",
    "nand",
    "_or",
    "_xor",
    "max",
    "min",
    "umax",
    "umin",
    "fadd",
    "fsub",
    "fmax",
    "fmin",
    "uinc_wrap",
    "udec_wrap",
    "usub_cond",
    "usub_sat",
    "fmaximum",
    "fminimum",
)
"""Upstream's `AtomicBinOp` enumeration, in its order."""


def _take_alignment(parser: Parser, attributes: dict[str, Attribute]) -> IntegerAttr[IntegerType] | None:
    """Take the alignment, which prints inside the attribute dictionary, out of it."""
    alignment = attributes.pop("alignment", None)
    if alignment is not None and not isinstance(alignment, IntegerAttr):
        parser.raise_error("expected 'alignment' to be an integer")
    return cast("IntegerAttr[IntegerType] | None", alignment)


@op_definition
class AtomicRMWOp(IRDLOperation):
    """
    Replace a value in memory and return the old one: `llvm.atomicrmw add %p, %v seq_cst : !llvm.ptr, i64`.
    """

    name = "llvm.atomicrmw"

    T: ClassVar = VarConstraint("T", INTEGER | AnyFloatConstr | base(LLVMPointerType))

    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    res = result_def(T)

    bin_op = prop_def(IntegerAttr[I64])
    ordering = prop_def(IntegerAttr[IntegerType])
    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr[IntegerType])
    volatile_ = opt_prop_def(UnitAttr)

    def __init__(
        self,
        bin_op: str,
        ptr: Value,
        val: Value,
        ordering: str = "seq_cst",
        *,
        syncscope: StringAttr | None = None,
        alignment: IntegerAttr[IntegerType] | None = None,
        volatile: bool = False,
    ):
        super().__init__(
            operands=[ptr, val],
            result_types=[SSAValue.get(val).type],
            properties=present(
                bin_op=IntegerAttr(ATOMIC_BINARY.index(bin_op), i64),
                ordering=ordering_attr(ordering),
                syncscope=syncscope,
                alignment=alignment,
                volatile_=volatile,
            ),
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        volatile = parser.parse_optional_keyword("volatile") is not None
        bin_op = parser.expect(lambda: parser.parse_optional_keyword_in(ATOMIC_BINARY), "expected an atomic operation")
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        val = parser.parse_unresolved_operand()
        scope = parse_syncscope(parser)
        ordering = parse_ordering(parser)
        attributes = parser.parse_optional_attr_dict()
        alignment = _take_alignment(parser, attributes)
        parser.parse_punctuation(":")
        ptr_type = parser.parse_type()
        parser.parse_punctuation(",")
        op = cls(
            bin_op,
            parser.resolve_operand(ptr, ptr_type),
            parser.resolve_operand(val, parser.parse_type()),
            ordering,
            syncscope=scope,
            alignment=alignment,
            volatile=volatile,
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" volatile " if self.volatile_ else " ")
        printer.print_string(ATOMIC_BINARY[self.bin_op.value.data] + " ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_syncscope(printer, self.syncscope)
        printer.print_string(" " + ordering_name(self.ordering))
        printer.print_op_attributes({**present(alignment=self.alignment), **self.attributes})
        printer.print_string(" : ")
        printer.print_list([self.ptr.type, self.val.type], printer.print_attribute)


@op_definition
class AtomicCmpXchgOp(IRDLOperation):
    """
    Store `val` where `cmp` is found; returns the old value and whether it was equal.

    `llvm.cmpxchg weak %p, %cmp, %val acq_rel monotonic : !llvm.ptr, i64`
    """

    name = "llvm.cmpxchg"

    T: ClassVar = VarConstraint("T", INTEGER | base(LLVMPointerType))

    ptr = operand_def(LLVMPointerType)
    cmp = operand_def(T)
    val = operand_def(T)
    res = result_def(LLVMStructType)

    success_ordering = prop_def(IntegerAttr[IntegerType])
    failure_ordering = prop_def(IntegerAttr[IntegerType])
    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr[IntegerType])
    weak = opt_prop_def(UnitAttr)
    volatile_ = opt_prop_def(UnitAttr)

    def __init__(
        self,
        ptr: Value,
        cmp: Value,
        val: Value,
        success_ordering: str = "seq_cst",
        failure_ordering: str = "seq_cst",
        *,
        syncscope: StringAttr | None = None,
        alignment: IntegerAttr[IntegerType] | None = None,
        weak: bool = False,
        volatile: bool = False,
    ):
        super().__init__(
            operands=[ptr, cmp, val],
            result_types=[LLVMStructType.from_type_list([SSAValue.get(val).type, i1])],
            properties=present(
                success_ordering=ordering_attr(success_ordering),
                failure_ordering=ordering_attr(failure_ordering),
                syncscope=syncscope,
                alignment=alignment,
                weak=weak,
                volatile_=volatile,
            ),
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        weak = parser.parse_optional_keyword("weak") is not None
        volatile = parser.parse_optional_keyword("volatile") is not None
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        cmp = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        val = parser.parse_unresolved_operand()
        scope = parse_syncscope(parser)
        success, failure = parse_ordering(parser), parse_ordering(parser)
        attributes = parser.parse_optional_attr_dict()
        alignment = _take_alignment(parser, attributes)
        parser.parse_punctuation(":")
        ptr_type = parser.parse_type()
        parser.parse_punctuation(",")
        type_ = parser.parse_type()
        op = cls(
            parser.resolve_operand(ptr, ptr_type),
            parser.resolve_operand(cmp, type_),
            parser.resolve_operand(val, type_),
            success,
            failure,
            syncscope=scope,
            alignment=alignment,
            weak=weak,
            volatile=volatile,
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" weak" if self.weak else "")
        printer.print_string(" volatile " if self.volatile_ else " ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_syncscope(printer, self.syncscope)
        printer.print_string(f" {ordering_name(self.success_ordering)} {ordering_name(self.failure_ordering)}")
        printer.print_op_attributes({**present(alignment=self.alignment), **self.attributes})
        printer.print_string(" : ")
        printer.print_list([self.ptr.type, self.val.type], printer.print_attribute)


@op_definition
class FenceOp(IRDLOperation):
    """Order the memory accesses around it: `llvm.fence syncscope("agent") acq_rel`."""

    name = "llvm.fence"

    ordering = prop_def(IntegerAttr[IntegerType])
    syncscope = opt_prop_def(StringAttr)

    def __init__(self, ordering: str, syncscope: StringAttr | None = None):
        super().__init__(properties=present(ordering=ordering_attr(ordering), syncscope=syncscope))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        scope = parse_syncscope(parser)
        op = cls(parse_ordering(parser), scope)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        print_syncscope(printer, self.syncscope)
        printer.print_string(" " + ordering_name(self.ordering))
        printer.print_op_attributes(self.attributes)


OPERATIONS = (AtomicRMWOp, AtomicCmpXchgOp, FenceOp)

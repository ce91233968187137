"""Read-modify-write, compare-and-exchange and fences: what threads need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import I64, AnyFloatConstr, IntegerAttr, IntegerType, StringAttr, UnitAttr, i1
from xdsl.dialects.llvm import LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute
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

from glow_mlir.dialects.llvm_ops.access import (
    MemoryAccess,
    ordering_attr,
    ordering_name,
    parse_ordering,
    parse_syncscope,
    present,
    print_syncscope,
)
from glow_mlir.dialects.llvm_ops.common import INTEGER
from glow_mlir.xdsl_patches.definitions import op_definition

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


@op_definition
class AtomicRMWOp(MemoryAccess):
    """
    Replace a value in memory and return the old one: `llvm.atomicrmw add %p, %v seq_cst : !llvm.ptr, i64`.
    """

    name = "llvm.atomicrmw"
    WORDS: ClassVar[Sequence[str]] = ATOMIC_BINARY

    T: ClassVar = VarConstraint("T", INTEGER | AnyFloatConstr | base(LLVMPointerType))

    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    res = result_def(T)

    bin_op = prop_def(IntegerAttr[I64])
    ordering = prop_def(IntegerAttr[IntegerType])

    @classmethod
    def result_types_of(cls, parser: Parser, types: Sequence[Attribute]) -> Sequence[Attribute]:
        return types[1:]


@op_definition
class AtomicCmpXchgOp(MemoryAccess):
    """
    Store `val` where `cmp` is found; returns the old value and whether it was equal.

    `llvm.cmpxchg weak %p, %cmp, %val acq_rel monotonic : !llvm.ptr, i64`
    """

    name = "llvm.cmpxchg"
    FLAGS: ClassVar[Sequence[str]] = ("weak", "volatile")
    ORDERINGS: ClassVar[Sequence[str]] = ("success_ordering", "failure_ordering")

    T: ClassVar = VarConstraint("T", INTEGER | base(LLVMPointerType))

    ptr = operand_def(LLVMPointerType)
    cmp = operand_def(T)
    val = operand_def(T)
    res = result_def(LLVMStructType)

    success_ordering = prop_def(IntegerAttr[IntegerType])
    failure_ordering = prop_def(IntegerAttr[IntegerType])
    weak = opt_prop_def(UnitAttr)

    @classmethod
    def operand_types_of(cls, types: Sequence[Attribute]) -> Sequence[Attribute]:
        return [*types, types[-1]]

    @classmethod
    def result_types_of(cls, parser: Parser, types: Sequence[Attribute]) -> Sequence[Attribute]:
        return [LLVMStructType.from_type_list([types[-1], i1])]

    def print_types(self, printer: Printer) -> None:
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

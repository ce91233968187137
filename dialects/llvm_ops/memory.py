"""Address arithmetic, loads and stores with all their flags, masked and block accesses, prefetch."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects import llvm as xdsl_llvm
from xdsl.dialects.builtin import (
    I1,
    I32,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.llvm import GEP_USE_SSA_VAL, LLVMArrayType, LLVMPointerType, LLVMStructType
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.llvm_ops.access import MemoryAccess
from glow_mlir.dialects.llvm_ops.common import (
    BOOL,
    INTEGER,
    INTEGER_OR_VECTOR,
    POINTER_OR_VECTOR,
    Value,
    verify_same_lanes,
)
from glow_mlir.xdsl_patches.definitions import op_definition

GEP_FLAGS = {"inbounds": 3, "nusw": 2, "nuw": 4}
"""Upstream's `GEPNoWrapFlags`: bit 0 is the raw in-bounds bit, which implies `nusw`."""


def gep_flag_names(flags: int) -> list[str]:
    """Return the keywords for a set of no-wrap flags, in the order upstream prints them."""
    names = ["inbounds"] if flags & 1 else ["nusw"] if flags & 2 else []
    return [*names, "nuw"] if flags & 4 else names


def _parse_gep_flags(parser: Parser) -> int:
    """Parse the no-wrap keywords, separated by `|`."""
    flags = 0
    while (keyword := parser.parse_optional_keyword_in(GEP_FLAGS)) is not None:
        flags |= GEP_FLAGS[keyword]
        if parser.parse_optional_characters("|") is None:
            break
    return flags


@op_definition
class GEPOp(IRDLOperation):
    """
    Address arithmetic: `llvm.getelementptr inbounds %p[%i, 2] : (!llvm.ptr, i64) -> !llvm.ptr, f32`.

    Unlike xDSL's op it keeps the flags where upstream does, so that the generic form survives, and may give a
    vector of pointers.
    """

    name = "llvm.getelementptr"

    ptr = operand_def(POINTER_OR_VECTOR)
    ssa_indices = var_operand_def(INTEGER_OR_VECTOR)
    result = result_def(POINTER_OR_VECTOR)

    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr[I32], default_value=IntegerAttr(0, i32))

    traits = traits_def(Pure())

    def __init__(
        self,
        ptr: Value,
        indices: Sequence[int | Value],
        elem_type: Attribute,
        flags: int = GEP_FLAGS["inbounds"],
        result_type: Attribute | None = None,
    ):
        super().__init__(
            operands=[ptr, [SSAValue.get(index) for index in indices if not isinstance(index, int)]],
            result_types=[result_type or LLVMPointerType()],
            properties={
                "rawConstantIndices": DenseArrayBase.from_list(
                    i32, [index if isinstance(index, int) else GEP_USE_SSA_VAL for index in indices]
                ),
                "elem_type": elem_type,
                "noWrapFlags": IntegerAttr(flags, i32),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        flags = _parse_gep_flags(parser)
        ptr = parser.parse_unresolved_operand()
        dynamic, constants = parse_dynamic_index_list_without_types(parser, GEP_USE_SSA_VAL)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        parser.parse_punctuation(",")
        elem_type = parser.parse_type()
        base, *indices = parser.resolve_operands([ptr, *dynamic], signature.inputs.data, parser.pos)
        following = iter(indices)
        mixed = [next(following) if index == GEP_USE_SSA_VAL else index for index in constants]
        op = cls(base, mixed, elem_type, flags, signature.outputs.data[0])
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        if names := gep_flag_names(self.noWrapFlags.value.data):
            printer.print_string(" " + "|".join(names))
        printer.print_string(" ")
        printer.print_ssa_value(self.ptr)
        print_dynamic_index_list(printer, GEP_USE_SSA_VAL, self.ssa_indices, self.rawConstantIndices.iter_values())
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([operand.type for operand in self.operands], [self.result.type])
        printer.print_string(", ")
        printer.print_attribute(self.elem_type)

    def verify_(self) -> None:
        dynamic = sum(index == GEP_USE_SSA_VAL for index in self.rawConstantIndices.iter_values())
        if dynamic != len(self.ssa_indices):
            raise VerifyException(f"'{self.name}' marks {dynamic} dynamic indices but has {len(self.ssa_indices)}")
        element = self.elem_type  # The first index counts elements of the pointer, the others go into one.
        for number, index in enumerate(list(self.rawConstantIndices.iter_values())[1:], start=1):
            element = _indexed(element, number, index)


def _indexed(type_: Attribute, number: int, index: int) -> Attribute:
    """The type of the element that the `number`-th index of `getelementptr` selects from a value of a type."""
    where = f"GEP index #{number}"
    if isinstance(type_, LLVMArrayType | VectorType):
        return cast("Attribute", type_.type if isinstance(type_, LLVMArrayType) else type_.element_type)
    if not isinstance(type_, LLVMStructType):
        raise VerifyException(f"{where}: cannot index into {type_}")
    if index == GEP_USE_SSA_VAL:
        raise VerifyException(f"{where}: struct indices must be constants")
    if not 0 <= index < len(type_.types):
        raise VerifyException(f"{where}: {index} is out of range for struct with {len(type_.types)} field(s)")
    return type_.types.data[index]


@op_definition
class LoadOp(MemoryAccess, xdsl_llvm.LoadOp):
    """
    Read memory: `llvm.load volatile %p atomic acquire invariant {alignment = 4 : i64} : !llvm.ptr -> f32`.

    It is xDSL's as well, so that passes of xDSL know it.
    """

    name = "llvm.load"
    MORE_FLAGS: ClassVar[Sequence[str]] = ("invariant",)
    IS_ATOMIC: ClassVar[bool] = False

    ptr = operand_def(LLVMPointerType)
    dereferenced_value = result_def()

    ordering = opt_prop_def(IntegerAttr[IntegerType])
    nontemporal = opt_prop_def(UnitAttr)
    invariant = opt_prop_def(UnitAttr)

    @classmethod
    def result_types_of(cls, parser: Parser, types: Sequence[Attribute]) -> Sequence[Attribute]:
        parser.parse_punctuation("->")
        return [parser.parse_type()]

    def print_types(self, printer: Printer) -> None:
        printer.print_attribute(self.ptr.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.dereferenced_value.type)


@op_definition
class StoreOp(MemoryAccess, xdsl_llvm.StoreOp):
    """
    Write memory: `llvm.store volatile %v, %p atomic release {alignment = 4 : i64} : f32, !llvm.ptr`.

    It is xDSL's as well, so that passes of xDSL know it.
    """

    name = "llvm.store"
    IS_ATOMIC: ClassVar[bool] = False

    value = operand_def()
    ptr = operand_def(LLVMPointerType)

    ordering = opt_prop_def(IntegerAttr[IntegerType])
    nontemporal = opt_prop_def(UnitAttr)

    @classmethod
    def result_types_of(cls, parser: Parser, types: Sequence[Attribute]) -> Sequence[Attribute]:
        return []


@op_definition
class MaskedLoadOp(IRDLOperation):
    """
    Read the lanes whose mask is set, and take the others from `pass_thru` (poison without one).

    `llvm.intr.masked.load %p, %m, %t {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xf32>) ->
    vector<8xf32>`
    """

    name = "llvm.intr.masked.load"

    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType.constr(BOOL))
    pass_thru = opt_operand_def(VectorType)
    res = result_def(VectorType)

    alignment = prop_def(IntegerAttr[I32])
    nontemporal = opt_prop_def(UnitAttr)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, data: Value, mask: Value, pass_thru: Value | None, result_type: Attribute, alignment: int):
        super().__init__(
            operands=[data, mask, pass_thru],
            result_types=[result_type],
            properties={"alignment": IntegerAttr(alignment, i32)},
        )

    def verify_(self) -> None:
        verify_same_lanes(self, self.mask.type, self.res.type)
        if self.pass_thru is not None and self.pass_thru.type != self.res.type:
            raise VerifyException(f"'{self.name}' passes {self.pass_thru.type} through to {self.res.type}")


@op_definition
class MaskedStoreOp(IRDLOperation):
    """Write the lanes whose mask is set, of any element type (xDSL's takes floats only)."""

    name = "llvm.intr.masked.store"

    value = operand_def(VectorType)
    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType.constr(BOOL))

    alignment = prop_def(IntegerAttr[I32])

    assembly_format = "$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, value: Value, data: Value, mask: Value, alignment: int):
        super().__init__(operands=[value, data, mask], properties={"alignment": IntegerAttr(alignment, i32)})

    def verify_(self) -> None:
        verify_same_lanes(self, self.mask.type, self.value.type)


@op_definition
class MaskedGatherOp(IRDLOperation):
    """Read one element through each pointer whose mask is set."""

    name = "llvm.intr.masked.gather"

    ptrs = operand_def(VectorType.constr(LLVMPointerType))
    mask = operand_def(VectorType.constr(BOOL))
    pass_thru = opt_operand_def(VectorType)
    res = result_def(VectorType)

    alignment = prop_def(IntegerAttr[I32])

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, ptrs: Value, mask: Value, pass_thru: Value | None, result_type: Attribute, alignment: int):
        super().__init__(
            operands=[ptrs, mask, pass_thru],
            result_types=[result_type],
            properties={"alignment": IntegerAttr(alignment, i32)},
        )

    def verify_(self) -> None:
        verify_same_lanes(self, self.ptrs.type, self.mask.type, self.res.type)


@op_definition
class MaskedScatterOp(IRDLOperation):
    """Write one element through each pointer whose mask is set."""

    name = "llvm.intr.masked.scatter"

    value = operand_def(VectorType)
    ptrs = operand_def(VectorType.constr(LLVMPointerType))
    mask = operand_def(VectorType.constr(BOOL))

    alignment = prop_def(IntegerAttr[I32])

    assembly_format = "$value `,` $ptrs `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($ptrs)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, value: Value, ptrs: Value, mask: Value, alignment: int):
        super().__init__(operands=[value, ptrs, mask], properties={"alignment": IntegerAttr(alignment, i32)})

    def verify_(self) -> None:
        verify_same_lanes(self, self.ptrs.type, self.mask.type, self.value.type)


@op_definition
class PrefetchOp(IRDLOperation):
    """
    Hint that an address is used soon: `"llvm.intr.prefetch"(%p) <{rw = 0, hint = 3, cache = 1}> : (!llvm.ptr)
    -> ()`.

    `rw` is 1 before a write; `hint` is 3 for "keep in L1", 2 for L2, 1 for L3; `cache` is 1 for data.
    """

    name = "llvm.intr.prefetch"

    addr = operand_def(LLVMPointerType)
    rw = prop_def(IntegerAttr[I32])
    hint = prop_def(IntegerAttr[I32])
    cache = prop_def(IntegerAttr[I32])

    def __init__(self, addr: Value, rw: int = 0, hint: int = 3, cache: int = 1):
        flags = {"rw": rw, "hint": hint, "cache": cache}
        super().__init__(operands=[addr], properties={name: IntegerAttr(value, i32) for name, value in flags.items()})


class _BlockTransfer(IRDLOperation, ABC):
    """A fill or copy of a whole block of bytes (generic form only); the blocks of a copy do not overlap."""

    isVolatile = prop_def(IntegerAttr[I1])

    def __init__(self, *operands: Value, length: int | None = None, volatile: bool = False):
        properties: dict[str, Attribute] = {"isVolatile": IntegerAttr.from_bool(volatile)}
        if length is not None:
            properties["len"] = IntegerAttr(length, i64)
        super().__init__(operands=operands, properties=properties)


@op_definition
class MemcpyOp(_BlockTransfer):
    """Copy `len` bytes; LLVM may call `memcpy` for it, so compiled code prefers the inline form."""

    name = "llvm.intr.memcpy"
    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    len = operand_def(INTEGER)


@op_definition
class MemcpyInlineOp(_BlockTransfer):
    """Copy a constant number of bytes, never by a call."""

    name = "llvm.intr.memcpy.inline"
    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    len = prop_def(IntegerAttr[IntegerType])


@op_definition
class MemsetOp(_BlockTransfer):
    """Fill `len` bytes with one value; LLVM may call `memset` for it."""

    name = "llvm.intr.memset"
    dst = operand_def(LLVMPointerType)
    val = operand_def(IntegerType(8))
    len = operand_def(INTEGER)


@op_definition
class MemsetInlineOp(_BlockTransfer):
    """Fill a constant number of bytes with one value, never by a call."""

    name = "llvm.intr.memset.inline"
    dst = operand_def(LLVMPointerType)
    val = operand_def(IntegerType(8))
    len = prop_def(IntegerAttr[IntegerType])


OPERATIONS = (
    GEPOp,
    LoadOp,
    StoreOp,
    MaskedLoadOp,
    MaskedStoreOp,
    MaskedGatherOp,
    MaskedScatterOp,
    PrefetchOp,
    MemcpyOp,
    MemcpyInlineOp,
    MemsetOp,
    MemsetInlineOp,
)

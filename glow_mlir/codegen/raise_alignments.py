"""
`raise-alignments`: derives alignments of accesses from those of parameters; llvmlite lacks LLVM's own pass.

Kernels declare each access as aligned to one element, as any array is. A device reads a vector at once only if it knows
more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.dialects.llvm import (
    GEP_USE_SSA_VAL,
    AddOp,
    AndOp,
    ConstantOp,
    FuncOp,
    LLVMArrayType,
    LLVMStructType,
    MulOp,
    OrOp,
    SExtOp,
    ShlOp,
    SubOp,
    TruncOp,
    URemOp,
    XOrOp,
    ZExtOp,
)
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.codegen.builder.types import ALIGNMENTS, type_info
from glow_mlir.codegen.passed_values import passed_values
from glow_mlir.dialects.llvm_ops.memory import GEPOp, LoadOp, StoreOp
from glow_mlir.dialects.llvm_ops.values import AddrSpaceCastOp, SelectOp
from glow_mlir.ir.traversal import all_operations, own_operations
from glow_mlir.support.dataclass import dataclass

MAX_ALIGNMENT = 16
"""Bytes of the largest access, and so the largest alignment that matters."""

Factors = dict[SSAValue, int]
"""Value → a power of two that divides it, at most `MAX_ALIGNMENT`."""


@dataclass(frozen=True)
class RaiseAlignmentsPass(ModulePass):
    """
    Raise the alignments of vector loads and stores in structured functions, as far as they follow from promises about
    the parameters.
    """

    name = "raise-alignments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in own_operations(op.body.block):
            if isinstance(inner, ModuleOp):
                self.apply(ctx, inner)
            elif isinstance(inner, FuncOp) and inner.body.blocks:
                _raise(inner)


def _raise(function: FuncOp) -> None:
    """
    Compute the largest fixed point: all values start as multiples of `MAX_ALIGNMENT`, and are lowered where they are
    not.
    """
    factors = _of_parameters(function)
    ops = all_operations(function.body.block)
    while _lower(ops, factors):
        pass
    for op in ops:
        if isinstance(op, LoadOp):
            _raise_access(op, op.operands[0], op.results[0].type, factors)
        elif isinstance(op, StoreOp):
            _raise_access(op, op.operands[1], op.operands[0].type, factors)


def _raise_access(op: Operation, address: SSAValue, type_: Attribute, factors: Mapping[SSAValue, int]) -> None:
    info = type_info(type_)
    found = min(factors[address], info.lanes * info.bytes_in_memory)
    declared = op.properties.get("alignment")
    if not isinstance(declared, IntegerAttr):
        return  # LLVM then takes the alignment of the type.
    if found.bit_count() == 1 and found > declared.value.data:
        op.properties["alignment"] = ALIGNMENTS[found]


def _of_parameters(function: FuncOp) -> Factors:
    """The factors that are promised for the parameters."""
    attributes = function.properties.get("arg_attrs")
    promises = cast("ArrayAttr[Attribute]", attributes).data if isinstance(attributes, ArrayAttr) else ()
    found: Factors = {}
    for number, argument in enumerate(function.body.block.args):
        promise = promises[number] if number < len(promises) else None
        aligned = promise.data.get("llvm.align") if isinstance(promise, DictionaryAttr) else None
        found[argument] = min(aligned.value.data, MAX_ALIGNMENT) if isinstance(aligned, IntegerAttr) else 1
    return found


def _lower(ops: Sequence[Operation], factors: Factors) -> bool:
    """Lower factors that are too large if all others are right; returns whether any was."""
    is_lowered = False
    for op in ops:
        if not op.regions:
            if op.results:
                is_lowered |= _set(factors, op.results[0], _factor(op, factors))
            continue
        if isinstance(op, ForOp):
            is_lowered |= _set(factors, op.body.block.args[0], min(_at(factors, op.lb), _at(factors, op.step)))
        for value, passed in passed_values(op):
            is_lowered |= _set(factors, value, _at(factors, passed))
    return is_lowered


def _set(factors: Factors, value: SSAValue, found: int) -> bool:
    """Lower the factor of one value."""
    if found >= factors.get(value, MAX_ALIGNMENT + 1):
        return False
    factors[value] = found
    return True


def _factor(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    rule = _RULES.get(type(op))
    return 1 if rule is None else min(MAX_ALIGNMENT, rule(op, factors))


def _at(factors: Mapping[SSAValue, int], value: SSAValue) -> int:
    return factors.get(value, MAX_ALIGNMENT)


def _of_constant(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    value = op.properties.get("value")
    return _power(value.value.data) if isinstance(value, IntegerAttr) else 1


def _power(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number if number else MAX_ALIGNMENT


def _smallest(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return min(_at(factors, value) for value in op.operands)


def _product(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return _at(factors, op.operands[0]) * _at(factors, op.operands[1])


def _largest(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return max(_at(factors, value) for value in op.operands)


def _shifted(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    by = op.operands[1].owner
    number = by.properties.get("value") if isinstance(by, ConstantOp) else None
    bits = number.value.data if isinstance(number, IntegerAttr) else 0
    return _at(factors, op.operands[0]) << max(0, min(bits, MAX_ALIGNMENT.bit_length()))


def _chosen(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return min(_at(factors, op.operands[1]), _at(factors, op.operands[2]))


def _address(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    assert isinstance(op, GEPOp)
    number, *others = op.rawConstantIndices.get_values()
    if others or isinstance(op.elem_type, LLVMArrayType | LLVMStructType):
        return 1
    info = type_info(op.elem_type)
    size = info.lanes * info.bytes_in_memory
    index = _at(factors, op.operands[1]) if number == GEP_USE_SSA_VAL else _power(number)
    return min(_at(factors, op.operands[0]), _power(size) * index)


_RULES: Mapping[type[Operation], Callable[[Operation, Mapping[SSAValue, int]], int]] = {
    ConstantOp: _of_constant,
    AddOp: _smallest,
    SubOp: _smallest,
    OrOp: _smallest,
    XOrOp: _smallest,
    URemOp: _smallest,
    SExtOp: _smallest,
    ZExtOp: _smallest,
    TruncOp: _smallest,
    AddrSpaceCastOp: _smallest,
    MulOp: _product,
    AndOp: _largest,
    ShlOp: _shifted,
    SelectOp: _chosen,
    GEPOp: _address,
}
"""Operation → the factor of its result; it is 1 for all others."""

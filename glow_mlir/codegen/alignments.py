"""
Alignments of accesses, as far as they follow from those of parameters: LLVM's pass for that is not in llvmlite.

Kernels say of an access that it is aligned to one element, which any array is. A device reads a vector at once only
where it knows more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.dialects.llvm import (
    GEP_USE_SSA_VAL,
    AddOp,
    AndOp,
    BrOp,
    CondBrOp,
    ConstantOp,
    FuncOp,
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
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.builder.types import ALIGNMENTS, type_info
from glow_mlir.dialects.llvm_ops.memory import GEPOp, LoadOp, StoreOp
from glow_mlir.dialects.llvm_ops.values import AddrSpaceCastOp, SelectOp
from glow_mlir.ir.traversal import own_operations

MOST = 16
"""Bytes of the largest access: no larger alignment is asked about."""

Factors = dict[SSAValue, int]
"""Value → a power of two of which it is a multiple, `MOST` at most."""


def raise_alignments(module: ModuleOp) -> None:
    """Let loads and stores of vectors in the functions of a module say how their addresses are aligned."""
    for op in own_operations(module.body.block):
        if isinstance(op, FuncOp) and op.body.blocks:
            _raise(op)


def _raise(function: FuncOp) -> None:
    """
    The largest fixed point: all values count as multiples of `MOST` at first, and as of less where they are of less.
    """
    factors = _of_parameters(function)
    blocks = list(function.body.blocks)
    while _lower(blocks, factors):
        pass
    for block in blocks:
        for op in own_operations(block):
            if isinstance(op, LoadOp):
                _say(op, op.operands[0], op.results[0].type, factors)
            elif isinstance(op, StoreOp):
                _say(op, op.operands[1], op.operands[0].type, factors)


def _say(op: Operation, address: SSAValue, type_: Attribute, factors: Mapping[SSAValue, int]) -> None:
    info = type_info(type_)
    found = min(factors[address], info.lanes * info.bytes_in_memory)
    said = op.properties["alignment"]
    assert isinstance(said, IntegerAttr)
    if found.bit_count() == 1 and found > said.value.data:
        op.properties["alignment"] = ALIGNMENTS[found]


def _of_parameters(function: FuncOp) -> Factors:
    """What is promised of the parameters."""
    attributes = function.properties.get("arg_attrs")
    promises = cast("ArrayAttr[Attribute]", attributes).data if isinstance(attributes, ArrayAttr) else ()
    found: Factors = {}
    for number, argument in enumerate(function.body.blocks[0].args):
        promise = promises[number] if number < len(promises) else None
        aligned = promise.data.get("llvm.align") if isinstance(promise, DictionaryAttr) else None
        found[argument] = min(aligned.value.data, MOST) if isinstance(aligned, IntegerAttr) else 1
    return found


def _lower(blocks: list[Block], factors: Factors) -> bool:
    """Lower what is too large where all else is as it is said; whether anything was."""
    is_lowered = False
    for block in blocks:
        for op in own_operations(block):
            if op.results:
                is_lowered |= _set(factors, op.results[0], _factor(op, factors))
            for value, passed in _passed(op):
                is_lowered |= _set(factors, value, factors.get(passed, MOST))
    return is_lowered


def _set(factors: Factors, value: SSAValue, found: int) -> bool:
    """Lower one value."""
    if found >= factors.get(value, MOST + 1):
        return False
    factors[value] = found
    return True


def _passed(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Arguments of blocks, and what a jump passes to them."""
    if isinstance(op, BrOp):
        yield from zip(op.successors[0].args, op.operands, strict=True)
    elif isinstance(op, CondBrOp):
        first, second = op.successors
        behind = 1 + len(first.args)
        yield from zip(first.args, op.operands[1:behind], strict=True)
        yield from zip(second.args, op.operands[behind:], strict=True)


def _factor(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    rule = _RULES.get(type(op))
    return 1 if rule is None else min(MOST, rule(op, factors))


def _at(factors: Mapping[SSAValue, int], value: SSAValue) -> int:
    return factors.get(value, MOST)


def _of_constant(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    value = op.properties.get("value")
    return _power(value.value.data) if isinstance(value, IntegerAttr) else 1


def _power(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number if number else MOST


def _least(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return min(_at(factors, value) for value in op.operands)


def _product(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return _at(factors, op.operands[0]) * _at(factors, op.operands[1])


def _largest(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return max(_at(factors, value) for value in op.operands)


def _shifted(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    by = op.operands[1].owner
    number = by.properties.get("value") if isinstance(by, ConstantOp) else None
    return _at(factors, op.operands[0]) << (number.value.data if isinstance(number, IntegerAttr) else 0)


def _chosen(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    return min(_at(factors, op.operands[1]), _at(factors, op.operands[2]))


def _address(op: Operation, factors: Mapping[SSAValue, int]) -> int:
    assert isinstance(op, GEPOp)
    info = type_info(op.elem_type)
    size = info.lanes * info.bytes_in_memory
    (number,) = op.rawConstantIndices.get_values()
    index = _at(factors, op.operands[1]) if number == GEP_USE_SSA_VAL else _power(number)
    return min(_at(factors, op.operands[0]), _power(size) * index)


_RULES: Mapping[type[Operation], Callable[[Operation, Mapping[SSAValue, int]], int]] = {
    ConstantOp: _of_constant,
    AddOp: _least,
    SubOp: _least,
    OrOp: _least,
    XOrOp: _least,
    URemOp: _least,
    SExtOp: _least,
    ZExtOp: _least,
    TruncOp: _least,
    AddrSpaceCastOp: _least,
    MulOp: _product,
    AndOp: _largest,
    ShlOp: _shifted,
    SelectOp: _chosen,
    GEPOp: _address,
}
"""Operation → the factor of its result; that of all others is 1."""

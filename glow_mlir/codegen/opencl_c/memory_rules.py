"""Rules for addresses, loads and stores, and calls of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, SymbolRefAttr
from xdsl.dialects.llvm import GEP_USE_SSA_VAL, LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.rules import Rule
from glow_mlir.codegen.opencl_c.scope import (
    Pieces,
    Scope,
    is_mask,
    is_pointer,
    lane,
    lanes_of,
    picked,
)
from glow_mlir.codegen.opencl_c.spaces import GLOBAL
from glow_mlir.codegen.opencl_c.types import element_name, info, of_lanes, piece_sizes

POINTER_BYTES = 8


def bytes_of(type_: Attribute) -> int:
    """Bytes of an element in memory."""
    return POINTER_BYTES if isinstance(type_, LLVMPointerType) else info(type_).bytes_in_memory


def integer(op: Operation, name: str) -> int:
    """An integer property; 0 if it is absent."""
    found = op.properties.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else 0


def moved(pointer: str, nbytes: int) -> str:
    """An address, moved by some bytes."""
    return f"({pointer} + {nbytes})" if nbytes else pointer


def _gep(scope: Scope, op: Operation) -> Pieces:
    indices = cast("DenseArrayBase[IntegerType]", op.properties["rawConstantIndices"]).get_values()
    if len(indices) != 1:
        raise EmissionError("'llvm.getelementptr' into aggregates is not translated")
    (pointer,) = scope.pieces(op.operands[0])
    size = bytes_of(op.properties["elem_type"]) * lanes_in(op.properties["elem_type"])
    if indices[0] != GEP_USE_SSA_VAL:
        offset = indices[0] * size
        return [f"{pointer} {'-' if offset < 0 else '+'} {abs(offset)}"]
    (index,) = scope.pieces(op.operands[1])
    bits = info(op.operands[1].type).bits
    # The offset is signed: an unsigned one would wrap around where addresses have another width.
    number = f"(long){index}" if bits == 64 else f"(long)(int){index}"
    return [f"{pointer} + {number}" if size == 1 else f"{pointer} + {number} * {size}"]


def lanes_in(type_: Attribute) -> int:
    """The number of lanes of a type."""
    return 1 if isinstance(type_, LLVMPointerType) else info(type_).lanes


def _at_offset(scope: Scope, pointer: SSAValue, type_: str, nbytes: int, align: int) -> str:
    """The memory some bytes after a pointer."""
    (text,) = scope.pieces(pointer)
    return f"*({scope.spaces[pointer]} {scope.access_type(type_, align)} *){moved(text, nbytes)}"


def _pointer_at(scope: Scope, pointer: SSAValue) -> str:
    """The pointer in memory at an address; pointers in memory always point to buffers."""
    (text,) = scope.pieces(pointer)
    return f"*({scope.spaces[pointer]} buffer_pointer *){text}"


def _load(scope: Scope, op: Operation) -> Pieces:
    pointer, result = op.operands[0], op.results[0]
    if is_pointer(result):
        return [_pointer_at(scope, pointer)]
    found = info(result.type)
    align, name = integer(op, "alignment"), element_name(found.element)
    texts: list[str] = []
    begin = 0
    for size in piece_sizes(lanes_of(result)):
        texts.append(_at_offset(scope, pointer, of_lanes(name, size), begin, _aligned(align, begin)))
        begin += size * found.bytes_in_memory
    return texts


def _aligned(align: int, offset: int) -> int:
    """The alignment at an offset from an aligned address."""
    return min(align, offset & -offset) if offset else align


def store(scope: Scope, op: Operation) -> None:
    """Write a store."""
    value, pointer = op.operands
    if is_pointer(value):
        if scope.spaces.get(value, GLOBAL) != GLOBAL:
            raise EmissionError(f"a pointer into the address space {scope.spaces[value]} is stored")
        scope.line(f"{_pointer_at(scope, pointer)} = {scope.pieces(value)[0]};")
        return
    found = info(value.type)
    align, name = integer(op, "alignment"), element_name(found.element)
    begin = 0
    for text, size in zip(scope.pieces(value), piece_sizes(lanes_of(value)), strict=True):
        scope.line(f"{_at_offset(scope, pointer, of_lanes(name, size), begin, _aligned(align, begin))} = {text};")
        begin += size * found.bytes_in_memory


def _masked_load(scope: Scope, op: Operation) -> Pieces:
    """Load each lane that is in the mask."""
    pointer, mask = op.operands[:2]
    found = info(op.results[0].type)
    name, lanes = element_name(found.element), lanes_of(op.results[0])
    otherwise = scope.pieces(op.operands[2]) if len(op.operands) > 2 else None
    scalars: list[str | None] = []
    for number in range(lanes):
        scalar = scope.fresh()
        chosen = lane(scope.pieces(mask), lanes, number)
        kept = "0" if otherwise is None else lane(otherwise, lanes, number)
        scope.line(f"{name} {scalar} = {kept};")
        memory = _at_offset(scope, pointer, name, number * found.bytes_in_memory, found.bytes_in_memory)
        scope.line(f"if ({chosen}) {scalar} = {memory};")
        scalars.append(scalar)
    assert is_mask(mask)
    return picked(scalars, name, "0")


def masked_store(scope: Scope, op: Operation) -> None:
    """Store each lane that is in the mask."""
    value, pointer, mask = op.operands
    found, lanes = info(value.type), lanes_of(value)
    name = element_name(found.element)
    for number in range(lanes):
        memory = _at_offset(scope, pointer, name, number * found.bytes_in_memory, found.bytes_in_memory)
        chosen = lane(scope.pieces(mask), lanes, number)
        scope.line(f"if ({chosen}) {memory} = {lane(scope.pieces(value), lanes, number)};")


def _address_of(scope: Scope, op: Operation) -> Pieces:
    symbol = op.properties["global_name"]
    assert isinstance(symbol, SymbolRefAttr)
    return [f"({scope.spaces[op.results[0]]} uchar *){scope.table(symbol.string_value())}"]


def call(scope: Scope, op: Operation) -> str:
    """The text of a call, of the function variant for the address spaces of its arguments."""
    callee = op.properties.get("callee")
    if not isinstance(callee, SymbolRefAttr):
        raise EmissionError("a call of an address is not translated")
    spaces = [scope.spaces.get(operand, GLOBAL) for operand in op.operands if is_pointer(operand)]
    texts = [text for operand in op.operands for text in scope.pieces(operand)]
    if any(map(is_mask, op.operands)):
        raise EmissionError("a call with vectors of truth values is not translated")
    return f"{scope.callee(callee.string_value(), spaces)}({', '.join(texts)})"


MEMORY_RULES: Mapping[str, Rule] = {
    "llvm.getelementptr": _gep,
    "llvm.load": _load,
    "llvm.intr.masked.load": _masked_load,
    "llvm.mlir.addressof": _address_of,
}
"""Operation with a result → the rule that writes it."""

STATEMENTS = {"llvm.store": store, "llvm.intr.masked.store": masked_store}
"""Operation without a result → the function that writes it."""

NOTHING = frozenset({"llvm.intr.prefetch"})
"""Operations that are hints, and are not written."""

"""
The address space of each pointer of a function, which OpenCL C requires and the `llvm` dialect does not state.

It follows from the origin of a pointer: an argument, a buffer of the function, a table of the module. Pointers that are
computed from it are in the same space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Operation, Region, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.passed_values import passed_values
from glow_mlir.ir.traversal import operations

GLOBAL, CONSTANT, PRIVATE = "__global", "__constant", "__private"

_SOURCES = {
    "llvm.alloca": PRIVATE,
    "llvm.mlir.addressof": CONSTANT,
    "llvm.load": GLOBAL,
    "llvm.inttoptr": GLOBAL,
}
"""Operation that makes a pointer from something else → its space: pointers in memory point to buffers."""

_THROUGH = {"llvm.getelementptr": (0,), "llvm.select": (1, 2), "llvm.freeze": (0,)}
"""Operation → the operands whose space its result has."""


def spaces_of(region: Region, arguments: Sequence[str]) -> Mapping[SSAValue, str]:
    """
    The space of each pointer in a structured function; `arguments` are the spaces of its pointer arguments, in order.

    Only a null pointer has none. Raises `EmissionError` if a pointer may be in two.
    """
    spaces: dict[SSAValue, str] = {}
    given = iter(arguments)
    for argument in region.block.args:
        if isinstance(argument.type, LLVMPointerType):
            spaces[argument] = next(given)
    known = -1
    while known < len(spaces):  # Values carried by a loop are known after the next walk.
        known = len(spaces)
        for op in operations(region.block):
            for result in op.results:
                if isinstance(result.type, LLVMPointerType):
                    _learn(spaces, result, _sources(op, spaces))
            for value, passed in passed_values(op):
                if isinstance(value.type, LLVMPointerType) and passed in spaces:
                    _learn(spaces, value, [spaces[passed]])
    return spaces


def _sources(op: Operation, spaces: Mapping[SSAValue, str]) -> Sequence[str]:
    """The possible spaces of the pointer that an operation returns."""
    if op.name in _SOURCES:
        return [_SOURCES[op.name]]
    operands = [op.operands[number] for number in _THROUGH.get(op.name, ())]
    return [spaces[operand] for operand in operands if operand in spaces]


def _learn(spaces: dict[SSAValue, str], value: SSAValue, found: Sequence[str]) -> None:
    for space in found:
        if spaces.setdefault(value, space) != space:
            raise EmissionError(f"a pointer is in the address spaces {spaces[value]} and {space}")

"""The symbols of an object file of any format: those that it defines, and those that it leaves to a linker."""

from __future__ import annotations

import re

from glow_mlir.codegen.llvm import coff, elf, mach_o, wasm
from glow_mlir.codegen.llvm.symbol import Symbol
from glow_mlir.errors import CompilerBugError

_READERS = {
    elf.MAGIC: elf.symbols,
    wasm.MAGIC: wasm.symbols,
    mach_o.MAGIC: mach_o.symbols,
    **dict.fromkeys(coff.MACHINES, coff.symbols),
}
"""The first bytes of a file → the reader of its symbols."""

FLOATS_ARE_USED = "_fltused"
"""
The symbol to which objects for Windows refer if they use floats; the C library, or a program without one, defines it.
"""

_ARITHMETIC = re.compile(
    r"__aeabi_(?!mem|read|unwind)\w+"  # Arm's run-time ABI
    r"|__(gnu_)?[a-z]+?([hbsdtx]f|[sdt]i){1,2}\d?(_ieee)?"  # libgcc and compiler-rt: operation, types, operands
)
"""The functions of a compiler's runtime library for arithmetic that a processor lacks."""


def symbols(data: bytes) -> list[Symbol]:
    """Return the named symbols of an object file. Raises `CompilerBugError` for an unknown format."""
    for magic, read in _READERS.items():
        if data.startswith(magic):
            return read(data)
    raise CompilerBugError("the object file has an unknown format")


def undefined_symbols(data: bytes) -> tuple[str, ...]:
    """Return the names that an object file leaves to a linker, sorted; empty means it stands alone."""
    return tuple(sorted({symbol.name for symbol in symbols(data) if not symbol.defined}))


def linker_names(data: bytes) -> list[str]:
    """Return the names that an object file exports, as linkers write them: Apple's with an underscore."""
    mark = "_" if data.startswith(mach_o.MAGIC) else ""
    return [f"{mark}{symbol.name}" for symbol in symbols(data) if symbol.defined and symbol.exported]


def is_arithmetic(name: str) -> bool:
    """Whether an undefined symbol is arithmetic of a compiler's runtime library, or marks the use of floats."""
    return _ARITHMETIC.fullmatch(name) is not None or name == FLOATS_ARE_USED

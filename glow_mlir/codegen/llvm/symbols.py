"""The symbols of an object file, of whatever format: which it defines, and which it leaves to a linker."""

from __future__ import annotations

from glow_mlir.codegen.llvm import coff, elf, mach_o, wasm
from glow_mlir.codegen.llvm.elf import Symbol
from glow_mlir.errors import CompilerBugError

_READERS = {
    elf.MAGIC: elf.symbols,
    wasm.MAGIC: wasm.symbols,
    mach_o.MAGIC: mach_o.symbols,
    **dict.fromkeys(coff.MACHINES, coff.symbols),
}
"""How a file begins → what reads its symbols."""

_SUPPORT = "__"
"""How the functions of a compiler's own library begin (libgcc, compiler-rt): arithmetic that a processor lacks."""


def symbols(data: bytes) -> list[Symbol]:
    """Return the named symbols of an object file. Raises `CompilerBugError` for a format that is not known."""
    for magic, read in _READERS.items():
        if data.startswith(magic):
            return read(data)
    raise CompilerBugError("the format of the object file is not known, nor are its symbols")


def undefined_symbols(data: bytes) -> tuple[str, ...]:
    """Return the names that an object file leaves to a linker, sorted; empty means it stands alone."""
    return tuple(sorted({symbol.name for symbol in symbols(data) if not symbol.defined}))


def is_arithmetic(name: str) -> bool:
    """Whether an undefined symbol is arithmetic that a processor lacks, and a compiler's library has."""
    return name.startswith(_SUPPORT)

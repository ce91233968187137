"""The symbols of an ELF object."""

from __future__ import annotations

import struct
from typing import NamedTuple

from glow_mlir.codegen.llvm.symbol import Symbol
from glow_mlir.errors import CompilerBugError

MAGIC = b"\x7fELF"
"""The first bytes of a file."""

_SYMBOL_TABLE = 2
_UNDEFINED = 0
_LOCAL = 0
_FLAGS = 2
"""The index of the flags in a section header."""
_IN_MEMORY = 2
"""The flag of sections that are loaded."""


class _Layout(NamedTuple):
    """The positions of fields, for 32 and 64 bits."""

    section_table: tuple[int, str]
    section_count: tuple[int, str]
    section_header: str
    symbol: str
    # Positions in the unpacked section header: type, offset, size, link, entry size.
    section_fields: tuple[int, int, int, int, int]
    # Positions in the unpacked symbol: name, info, section.
    symbol_fields: tuple[int, int, int]


_LAYOUTS = {
    1: _Layout((32, "I"), (46, "HH"), "10I", "IIIBBH", (1, 4, 5, 6, 9), (0, 3, 5)),
    2: _Layout((40, "Q"), (58, "HH"), "IIQQQQIIQQ", "IBBHQQ", (1, 4, 5, 6, 9), (0, 1, 3)),
}


def symbols(data: bytes) -> list[Symbol]:
    """
    Return the named symbols of an ELF object file, in the order of its table.

    Raises `CompilerBugError` for a file of another width than 32 or 64 bits.
    """
    if data[4] not in _LAYOUTS:
        raise CompilerBugError("the ELF file has an unknown width")
    layout, order = _LAYOUTS[data[4]], _order(data)
    headers = _headers(data, layout)
    kind, offset, length, link, entry = layout.section_fields
    found: list[Symbol] = []
    for header in headers:
        if header[kind] == _SYMBOL_TABLE:
            strings = headers[header[link]][offset]
            starts = range(header[offset], header[offset] + header[length], header[entry])
            entries = (struct.unpack_from(order + layout.symbol, data, start) for start in starts)
            found.extend(_symbol(data, strings, fields, layout) for fields in entries)
    return [symbol for symbol in found if symbol.name]


def loaded_bytes(data: bytes) -> int:
    """Return the bytes of an ELF object file that a program has in memory: code and tables."""
    layout = _LAYOUTS[data[4]]
    _, _, length, _, _ = layout.section_fields
    return sum(header[length] for header in _headers(data, layout) if header[_FLAGS] & _IN_MEMORY)


def _order(data: bytes) -> str:
    """Return the byte order in the notation of `struct`."""
    return "<" if data[5] == 1 else ">"


def _headers(data: bytes, layout: _Layout) -> list[tuple[int, ...]]:
    """Return the headers of all sections."""
    order = _order(data)
    position, code = layout.section_table
    (table,) = struct.unpack_from(order + code, data, position)
    position, code = layout.section_count
    size, count = struct.unpack_from(order + code, data, position)
    return [struct.unpack_from(order + layout.section_header, data, table + size * i) for i in range(count)]


def _symbol(data: bytes, strings: int, fields: tuple[int, ...], layout: _Layout) -> Symbol:
    name, info, section = (fields[i] for i in layout.symbol_fields)
    start = strings + name
    text = data[start : data.index(b"\0", start)].decode() if name else ""
    return Symbol(text, section != _UNDEFINED, info >> 4 != _LOCAL)

"""The symbols of a Mach-O object, as Apple's systems link them."""

from __future__ import annotations

import struct

from glow_mlir.codegen.llvm.symbol import Symbol

MAGIC = b"\xcf\xfa\xed\xfe"
"""The first bytes of a 64-bit file."""

_HEADER_BYTES, _SYMBOL_TABLE = 32, 2
_DEBUG, _KIND, _EXTERNAL = 0xE0, 0x0E, 0x01
_ENTRY = struct.Struct("<IBBHQ")


def symbols(data: bytes) -> list[Symbol]:
    """The named symbols of a 64-bit Mach-O object file, without the underscore with which its names begin."""
    (commands,) = struct.unpack_from("<I", data, 16)
    position = _HEADER_BYTES
    found: list[Symbol] = []
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, position)
        if command == _SYMBOL_TABLE:
            table, count, strings, _ = struct.unpack_from("<IIII", data, position + 8)
            for number in range(count):
                text, kind, _, _, _ = _ENTRY.unpack_from(data, table + number * _ENTRY.size)
                if not kind & _DEBUG:
                    begin = strings + text
                    name = data[begin : data.index(b"\0", begin)].decode().removeprefix("_")
                    found.append(Symbol(name, bool(kind & _KIND), bool(kind & _EXTERNAL)))
        position += size
    return found

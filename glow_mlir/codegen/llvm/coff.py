"""The symbols of a COFF object, as Windows links them."""

from __future__ import annotations

import struct

from glow_mlir.codegen.llvm.symbol import Symbol

MACHINES = {b"\x64\x86": "x86_64", b"\x64\xaa": "aarch64"}
"""The first bytes of a file → the architecture."""

_EXTERNAL, _STATIC = 2, 3
_ENTRY = struct.Struct("<8sIhHBB")


def symbols(data: bytes) -> list[Symbol]:
    """The functions and variables of a COFF object file, in the order of its table."""
    table, count = struct.unpack_from("<II", data, 8)
    strings = table + count * _ENTRY.size
    found: list[Symbol] = []
    position = 0
    while position < count:
        name, value, section, _, storage, auxiliary = _ENTRY.unpack_from(data, table + position * _ENTRY.size)
        position += 1 + auxiliary
        if storage in (_EXTERNAL, _STATIC) and not (storage == _STATIC and auxiliary):
            is_defined = section != 0 or value != 0
            found.append(Symbol(_name(data, strings, name), is_defined, storage == _EXTERNAL))
    return found


def _name(data: bytes, strings: int, name: bytes) -> str:
    """A name; one of more than eight bytes is in the table of strings."""
    if name[:4] != b"\0\0\0\0":
        return name.rstrip(b"\0").decode()
    begin = strings + int.from_bytes(name[4:], "little")
    return data[begin : data.index(b"\0", begin)].decode()

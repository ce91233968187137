"""The symbols of a WebAssembly object: the tables of its sections `import` and `linking` (the tool conventions)."""

from __future__ import annotations

from collections.abc import Iterator

from glow_mlir.codegen.llvm.symbol import Symbol
from glow_mlir.support.dataclass import dataclass

MAGIC = b"\0asm"
OF_LINKER = frozenset({"__linear_memory", "__stack_pointer", "__indirect_function_table"})
"""Symbols that the linker itself defines for every object."""

_CUSTOM, _IMPORTS, _SYMBOLS = 0, 2, 8
_DATA, _SECTION = 1, 3
_LOCAL, _UNDEFINED, _EXPLICIT_NAME = 0x02, 0x10, 0x40


@dataclass
class _Reader:
    """A reader of consecutive numbers and names of a module."""

    data: bytes
    position: int = 0

    def byte(self) -> int:
        """The next byte."""
        self.position += 1
        return self.data[self.position - 1]

    def number(self) -> int:
        """The next number, in unsigned LEB128."""
        found, shift = 0, 0
        while True:
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    def bytes(self) -> bytes:
        """The next bytes, preceded by their count."""
        count = self.number()
        self.position += count
        return self.data[self.position - count : self.position]

    def name(self) -> str:
        """The next name."""
        return self.bytes().decode()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.data)


def symbols(data: bytes) -> list[Symbol]:
    """The named symbols of a relocatable WebAssembly module, in the order of its table."""
    reader = _Reader(data, 8)
    imported: dict[int, list[str]] = {}
    found: list[Symbol] = []
    while not reader.is_done:
        kind, section = reader.byte(), _Reader(reader.bytes())
        if kind == _IMPORTS:
            imported = _imports(section)
        elif kind == _CUSTOM and section.name() == "linking":
            section.number()  # The version of the conventions.
            found += _linked(section, imported)
    return [symbol for symbol in found if symbol.name not in OF_LINKER]


def _imports(section: _Reader) -> dict[int, list[str]]:
    """Kind → the names of a module's imports of that kind, in the order of their indices."""
    found: dict[int, list[str]] = {}
    for _ in range(section.number()):
        section.name()
        name, kind = section.name(), section.byte()
        found.setdefault(kind, []).append(name)
        if kind == 1:  # A table: its type, then limits like those of a memory.
            section.byte()
        if kind in (1, 2):
            bounded = section.number() & 1
            for _ in range(1 + bounded):
                section.number()
        elif kind == 3:
            section.position += 2
        else:
            section.number()
    return found


def _linked(section: _Reader, imported: dict[int, list[str]]) -> Iterator[Symbol]:
    """The symbols of the section `linking`."""
    while not section.is_done:
        kind, part = section.number(), _Reader(section.bytes())
        if kind == _SYMBOLS:
            for _ in range(part.number()):
                symbol = _symbol(part, imported)
                if symbol is not None:
                    yield symbol


def _symbol(part: _Reader, imported: dict[int, list[str]]) -> Symbol | None:
    """The next symbol, unless it is a section."""
    kind, flags = part.byte(), part.number()
    is_defined, is_exported = not flags & _UNDEFINED, not flags & _LOCAL
    if kind == _SECTION:
        part.number()
        return None
    if kind == _DATA:
        name = part.name()
        for _ in range(3 * is_defined):
            part.number()
        return Symbol(name, is_defined, is_exported)
    number = part.number()
    if is_defined or flags & _EXPLICIT_NAME:
        return Symbol(part.name(), is_defined, is_exported)
    # Imports of a kind are numbered from 0, before the module's own definitions.
    names = imported.get(_IMPORT_KINDS.get(kind, kind), [])
    return Symbol(names[number] if number < len(names) else f"#{number}", is_defined, is_exported)


_IMPORT_KINDS = {0: 0, 2: 3, 5: 1}
"""Kind of a symbol (function, global, table) → kind of an import."""

"""Archives of objects, as `ar` writes them for linkers: with an index of the symbols."""

from __future__ import annotations

from glow_mlir.codegen.llvm.symbols import linker_names

MAGIC = b"!<arch>\n"
_MAX_LETTERS = 15


def archive(name: str, data: bytes) -> bytes:
    """
    The archive of one object, as a member of that name, in GNU and System V format.

    Times, owners and modes are fixed, so that the same object gives the same archive.
    """
    exported = linker_names(data)
    strings = b"".join(symbol.encode() + b"\0" for symbol in exported)
    index_size = 4 + 4 * len(exported) + len(strings)
    begin = len(MAGIC) + 60 + index_size + index_size % 2
    words = [len(exported), *[begin] * len(exported)]
    index = b"".join(word.to_bytes(4, "big") for word in words) + strings
    return MAGIC + _member("/", index) + _member(f"{name[:_MAX_LETTERS]}/", data)


def _member(name: str, data: bytes) -> bytes:
    """A member with its text header; members start at even offsets."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)

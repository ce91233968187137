"""A symbol, in the form that all formats of object files share."""

from __future__ import annotations

from typing import NamedTuple


class Symbol(NamedTuple):
    """One entry of a symbol table: its name, whether the file defines it, and whether other files see it."""

    name: str
    defined: bool
    exported: bool

"""Functions of TOSA as text for `tosa-opt`: the generic form, and behind it the bytes of constants."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, StringAttr
from xdsl.printer import Printer

from tosa_backend.builder import Content

ENTRY = "main"
"""The name of the only function of a file."""

_PREFIX = "0x01000000"
"""What stands in front of the bytes of a constant: its alignment, 1, in hexadecimal as the bytes are."""


def tosa_text(function: func.FuncOp) -> str:
    """A module with a function alone, which is called `main`, with the bytes of its constants."""
    alone = function.clone()
    alone.properties["sym_name"] = StringAttr(ENTRY)
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(ModuleOp([alone]))
    stream.write("\n")
    contents = contents_of(function)
    if contents:
        entries = ",\n".join(f'  {name}: "{_PREFIX}{name.array.tobytes().hex()}"' for name in contents)
        stream.write(f"{{-# dialect_resources: {{ builtin: {{\n{entries}\n}} }} #-}}\n")
    return stream.getvalue()


def contents_of(function: func.FuncOp) -> list[Content]:
    """The constants whose bytes are beside the text, each once."""
    found: dict[Content, None] = {}
    for op in function.walk():
        values = op.properties.get("values")
        if isinstance(values, DenseResourceAttr) and isinstance(values.resource_handle.data, Content):
            found[values.resource_handle.data] = None
    return list(found)

"""The protocol's names of element types."""

from __future__ import annotations

from functools import cache

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dtypes import STRING

STRINGS = "BYTES"
"""The protocol's name of strings."""

WORDS = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "bfloat16": "BF16",
    STRING: STRINGS,
}
"""Element type → the protocol's name."""


@cache
def datatype_of(dtype: str) -> str:
    """The protocol's name of an element type; raises `UnsupportedError` if it has none."""
    if dtype not in WORDS:
        hint = f"it has {', '.join(WORDS)}"
        raise UnsupportedError(f"the inference protocol has no element type '{dtype}'", hint=hint)
    return WORDS[dtype]

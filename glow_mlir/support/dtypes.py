"""numpy dtypes by name, also those that numpy itself lacks and `ml_dtypes` adds: bfloat16, and what is narrower."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

BFLOAT16 = "bfloat16"
"""The name of the dtype of floats with the upper half of the bits of a float32."""

NARROW_FLOATS = frozenset(
    {
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    }
)
"""The names of dtypes of floats of 8 bits and less, each in a byte."""

NARROW_INTEGERS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""The names of dtypes of integers of less than a byte, each in one of its own → their bits."""

STRING = "object"
"""The name of the dtype of arrays that hold strings."""

FLOAT4 = "float4_e2m1fn"
"""The name of the dtype of floats that has neither infinities nor NaN."""

POWERS_OF_TWO = "float8_e8m0fnu"
"""The name of the dtype that has exponents alone."""


ONNX_WORDS = {
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    POWERS_OF_TWO: "float8e8m0",
    FLOAT4: "float4e2m1",
    STRING: "string",
}
"""The names of dtypes that ONNX calls otherwise → its words."""

ONNX_NUMBERS = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    FLOAT4: 23,
    POWERS_OF_TWO: 24,
    "uint2": 25,
    "int2": 26,
}
"""The names of dtypes → their numbers among ONNX's data types."""


def onnx_word(name: str) -> str:
    """What ONNX calls the dtype of that name, as in `tensor(float)`."""
    return ONNX_WORDS.get(name, name)


def packed_bits(name: str) -> int:
    """The bits that an element of the dtype of that name takes where several are in a byte; 0 where none are."""
    return 4 if name == FLOAT4 else NARROW_INTEGERS.get(name, 0)


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, which numpy puts together each time."""
    return dtype.name


def named_dtype(name: str) -> np.dtype[Any]:
    """The dtype of that name; raises `TypeError` where there is none."""
    if name == BFLOAT16 or is_narrow_name(name):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def is_narrow_name(name: str) -> bool:
    """Whether the dtype of that name has elements of less than 16 bits that numpy does not have itself."""
    return name in NARROW_FLOATS or name in NARROW_INTEGERS


@cache  # numpy takes long to say a name.
def signless_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of integers with a sign that are as wide as those of an unsigned one; any other dtype itself."""
    return named_dtype(dtype.name.removeprefix("u")) if dtype.name.startswith("uint") else dtype


def unsigned_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of integers without a sign that are as wide as those of one with it; any other dtype itself."""
    return named_dtype(f"u{dtype.name}") if dtype.name.startswith("int") else dtype


def is_float_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of floats; numpy calls most of those that it lacks a kind of bytes."""
    return dtype.kind == "f" or dtype.name == BFLOAT16 or dtype.name in NARROW_FLOATS


def float_limits(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """The step behind 1, the smallest normal number and the largest number of a dtype of floats."""
    if dtype.name == BFLOAT16:
        return 2.0**-7, 2.0**-126, float.fromhex("0x1.fep127")
    limits = np.finfo(dtype)
    return float(limits.eps), float(limits.tiny), float(limits.max)


def is_plain(value: object) -> bool:
    """Whether a value is a number, or a list of some, whose element type is for the reader to choose."""
    return isinstance(value, bool | int | float | list | tuple | np.generic)

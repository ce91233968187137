"""Constants of programs that are handed over as arrays, not as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import NUMPY_NAMES, numpy_dtype

MAX_PRINTED = 100
"""
The largest number of elements of a constant that is printed; others are handed over as arrays.

MLIR writes larger ones as their bytes in hexadecimal.
"""

_ELEMENTS: Mapping[str, Attribute] = {str(element): element for element in NUMPY_NAMES}

_BYTES = re.compile(r'dense<"0x([0-9A-F]*)">')

_COMPLEX: Mapping[str, Any] = {"complex<f32>": np.complex64, "complex<f64>": np.complex128}

_Dense = ir.DenseElementsAttr


def value_of(operation: Any) -> Any:
    """The value of a constant as an attribute of jaxlib, which has none of complex numbers, or else as its text."""
    try:
        return operation.attributes["value"]
    except TypeError:
        text = operation.get_asm(print_generic_op_form=True)
        return text[text.index("value = ") + len("value = ") : text.rindex("}> :")]


def is_left_out(operation: Any) -> bool:
    """Whether an operation is a constant that the text leaves out."""
    if operation.name != "stablehlo.constant":
        return False
    value, size = value_of(operation), prod(operation.results[0].type.shape)
    if size <= MAX_PRINTED:
        return False
    if isinstance(value, str):
        return _BYTES.match(value) is not None
    return isinstance(value, _Dense) and not value.is_splat


def left_out(operation: Any) -> tuple[np.ndarray, ...]:
    """The constants within an operation that its text leaves out, in its order."""
    return tuple(map(_array, _left_out(operation)))


def _array(operation: Any) -> np.ndarray:
    """The array of a constant; jaxlib gives the memory of types that Python's buffers have, and the text of others."""
    value, type_ = value_of(operation), operation.results[0].type
    with suppress(TypeError):
        if not isinstance(value, str):
            return np.array(value)
    match, element = _BYTES.match(str(value)), str(type_.element_type)
    assert match is not None
    dtype = _COMPLEX[element] if element in _COMPLEX else numpy_dtype(_ELEMENTS[element])
    return np.frombuffer(bytes.fromhex(match.group(1)), dtype).reshape(type_.shape)


def _left_out(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                if is_left_out(each.operation):
                    yield each.operation
                yield from _left_out(each.operation)

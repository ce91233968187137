"""Constants of programs that are handed over as arrays, not as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import NUMPY_NAMES, numpy_dtype
from glow_mlir.support.dataclass import dataclass

MAX_PRINTED = 100
"""
The largest number of elements of a constant that is printed; others are handed over as arrays.

MLIR writes larger ones as their bytes in hexadecimal.
"""

_ELEMENTS: Mapping[str, Attribute] = {str(element): element for element in NUMPY_NAMES}

_COMPLEX_TYPES: Mapping[str, np.dtype[Any]] = {
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}

_BYTES = re.compile(r'dense<"0x([0-9A-F]*)">')

_COMPLEX = re.compile(r"(dense<.*> : tensor<[^<>]*complex<[^<>]*>>)", re.DOTALL)

_Dense = ir.DenseElementsAttr


@dataclass(frozen=True)
class ComplexConstant:
    """A constant of complex numbers, for which jaxlib has no object: its text, and its type of jaxlib."""

    text: str
    type: Any

    def __str__(self) -> str:
        """The text of the attribute."""
        return self.text


def attribute_of(operation: Any, name: str) -> Any:
    """An attribute of an operation: an object of jaxlib, or a `ComplexConstant`."""
    try:
        return operation.attributes[name]
    except TypeError:
        match = _COMPLEX.search(operation.get_asm(print_generic_op_form=True))
        if match is None:
            raise
        return ComplexConstant(match.group(1), operation.results[0].type)


def is_left_out(value: Any) -> bool:
    """Whether an attribute is a constant that the text leaves out."""
    if isinstance(value, ComplexConstant):
        return _BYTES.match(value.text) is not None
    if not isinstance(value, _Dense) or getattr(value, "is_splat", False):
        return False
    return prod(value.type.shape) > MAX_PRINTED


def left_out(operation: Any) -> tuple[np.ndarray, ...]:
    """The constants within an operation that its text leaves out, in its order."""
    return tuple(_array(value) for value in _constants(operation) if is_left_out(value))


def _array(value: Any) -> np.ndarray:
    """The array of a constant; jaxlib gives the memory of types that Python's buffers have, and the text of others."""
    if not isinstance(value, ComplexConstant):
        try:
            return np.array(value)
        except TypeError:
            dtype = numpy_dtype(_ELEMENTS[str(value.type.element_type)])
    else:
        dtype = _COMPLEX_TYPES[str(value.type.element_type)]
    match = _BYTES.match(str(value))
    assert match is not None
    return np.frombuffer(bytes.fromhex(match.group(1)), dtype).reshape(value.type.shape)


def _constants(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                inner = each.operation
                if inner.name == "stablehlo.constant":
                    yield attribute_of(inner, "value")
                yield from _constants(inner)

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
from glow_mlir.ir.dense_text import ELIDED

MAX_PRINTED = 100
"""
The largest number of elements of a constant that is printed; others are handed over as arrays.

MLIR writes larger ones as their bytes in hexadecimal.
"""

_ELEMENTS: Mapping[str, Attribute] = {str(element): element for element in NUMPY_NAMES}

_BYTES = re.compile(r'dense<"0x([0-9A-F]*)">')

_VALUE = re.compile(r"value = (.*)\}> : \(\) -> ")
"""The value of a constant in its text, in the generic form."""

_COMPLEX = re.compile(r"tensor<.*complex<(.*)>>")

_ELIDED = f"dense_resource<{ELIDED}>"

_Dense = ir.DenseElementsAttr


def is_left_out(value: Any) -> bool:
    """Whether an attribute is a constant that the text leaves out; one as text is not."""
    if not isinstance(value, _Dense) or getattr(value, "is_splat", False):
        return False
    return prod(value.type.shape) > MAX_PRINTED


def value_of(operation: Any, name: str) -> Any:
    """An attribute of an operation, as text where jaxlib has no object for it: constants of complex numbers."""
    try:
        return operation.attributes[name]
    except TypeError:
        match = _VALUE.search(operation.get_asm(print_generic_op_form=True, large_elements_limit=MAX_PRINTED))
        if match is None:
            raise
        return match.group(1)


def left_out(operation: Any) -> tuple[np.ndarray, ...]:
    """The constants within an operation that its text leaves out, in its order."""
    return tuple(array for constant in _constants(operation) if (array := _left_out(constant)) is not None)


def _left_out(constant: Any) -> np.ndarray | None:
    """The array of a constant that the text leaves out, else `None`."""
    value = value_of(constant, "value")
    if is_left_out(value):
        return _array(value)
    return _complex_array(constant) if isinstance(value, str) and value.startswith(_ELIDED) else None


def _array(value: Any) -> np.ndarray:
    """The array of a constant; jaxlib gives the memory of types that Python's buffers have, and the text of others."""
    try:
        return np.array(value)
    except TypeError:
        return _of_text(str(value), numpy_dtype(_ELEMENTS[str(value.type.element_type)]), value.type.shape)


def _complex_array(constant: Any) -> np.ndarray:
    """The array of a constant of complex numbers, which jaxlib gives as text alone."""
    type_ = constant.results[0].type
    match = _COMPLEX.fullmatch(str(type_))
    assert match is not None
    dtype = np.result_type(numpy_dtype(_ELEMENTS[match.group(1)]), np.complex64)
    return _of_text(constant.get_asm(print_generic_op_form=True), dtype, type_.shape)


def _of_text(text: str, dtype: np.dtype[Any], shape: Any) -> np.ndarray:
    """The array of the first bytes in hexadecimal in a text."""
    match = _BYTES.search(text)
    assert match is not None
    return np.frombuffer(bytes.fromhex(match.group(1)), dtype).reshape(shape)


def _constants(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                inner = each.operation
                if inner.name == "stablehlo.constant":
                    yield inner
                yield from _constants(inner)

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

MAX_PRINTED = 100
"""
The largest number of elements of a constant that is printed; others are handed over as arrays.

MLIR writes larger ones as their bytes in hexadecimal.
"""

_ELEMENTS: Mapping[str, Attribute] = {str(element): element for element in NUMPY_NAMES}

_BYTES = re.compile(r'dense<"0x([0-9A-F]*)">')

_Dense = ir.DenseElementsAttr


def is_left_out(value: Any) -> bool:
    """Whether an attribute is a constant that the text leaves out."""
    if not isinstance(value, _Dense) or getattr(value, "is_splat", False):
        return False
    return prod(value.type.shape) > MAX_PRINTED


def left_out(operation: Any) -> tuple[np.ndarray, ...]:
    """The constants within an operation that its text leaves out, in its order."""
    return tuple(_array(value) for value in _constants(operation) if is_left_out(value))


def _array(value: Any) -> np.ndarray:
    """The array of a constant; jaxlib gives the memory of types that Python's buffers have, and the text of others."""
    try:
        return np.array(value)
    except TypeError:
        match = _BYTES.match(str(value))
        assert match is not None
        dtype = numpy_dtype(_ELEMENTS[str(value.type.element_type)])
        return np.frombuffer(bytes.fromhex(match.group(1)), dtype).reshape(value.type.shape)


def _constants(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for each in block.operations:
                inner = each.operation
                if inner.name == "stablehlo.constant":
                    yield inner.attributes["value"]
                yield from _constants(inner)

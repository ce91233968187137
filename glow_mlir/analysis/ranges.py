"""Value ranges of tensors, derived from operators and constants."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.layer_weights import of_all_layers
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_bool, is_unsigned
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.ranges import ANY, POSITIVE, Range
from glow_mlir.dialects.glow_high.storage import GetOp
from glow_mlir.dialects.shapes import element_of, size_of
from glow_mlir.ir.traversal import Scope, operations

MAX_ELEMENTS = 1 << 12
"""Maximum number of elements of constants that are examined."""


def value_ranges(scope: Scope, storage: Storage) -> dict[SSAValue, Range]:
    """The known ranges of the values of a function or block, computed in one walk."""
    known: dict[SSAValue, Range] = {}
    for op in operations(scope):
        for result in op.results:
            if (found := _range_of(op, result, known, storage)) != ANY:
                known[result] = found
    return known


def _range_of(op: Operation, result: SSAValue, known: Mapping[SSAValue, Range], storage: Storage) -> Range:
    if isinstance(op, GetOp):
        return _constant_range(result, storage)
    number = splat_number(result)
    if number is not None:
        return ANY if math.isnan(number) or is_bool(element_of(result)) else Range(number, number)
    operands = [known.get(operand, ANY) for operand in op.operands]
    limits = limits_of(op)
    if limits is not None:
        inner = known.get(limits.input, ANY)
        return Range(limits.limited(inner.low), limits.limited(inner.high))
    found = op.result_range(operands) if isinstance(op, HighOp) and operands else ANY
    return POSITIVE if found == ANY and is_unsigned(element_of(result)) else found


def _constant_range(value: SSAValue, storage: Storage) -> Range:
    if not storage.is_constant(value) or not 0 < size_of(value) <= MAX_ELEMENTS or is_bool(element_of(value)):
        return ANY
    constant = storage.deferred(value)
    arrays = [] if constant is None else [array.array() for array in of_all_layers(constant)]
    known = [array for array in arrays if not np.isnan(array).all()]
    if not known or len(known) < len(arrays):
        return ANY
    # Not as floats, which cannot represent all integers.
    return Range(min(np.nanmin(array).item() for array in known), max(np.nanmax(array).item() for array in known))

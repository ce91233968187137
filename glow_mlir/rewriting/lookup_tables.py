"""Replace unary functions of 8-bit quantized values by 256-entry lookup tables."""

from __future__ import annotations

from dataclasses import field
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import byte_width, is_integer, numpy_dtype, storage_of
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NegOp
from glow_mlir.dialects.glow_high.quantization import (
    VALUES_OF_A_BYTE,
    DequantizeOp,
    LookupOp,
    QuantizeOp,
    RescaleOp,
    StorageCastOp,
)
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import element_of, has_one_element, sizes_of
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.policies import policy_of
from glow_mlir.rewriting.quantized_values import combination_of
from glow_mlir.rewriting.rescaled_values import limited
from glow_mlir.support.dataclass import dataclass

MAX_OPERATORS = 64
"""Maximum number of operators of a function that are visited."""

CHEAP = (
    binary.AddOp,
    binary.SubOp,
    binary.MulOp,
    binary.MaxOp,
    binary.MinOp,
    binary.ClipOp,
    CastOp,
    DequantizeOp,
    NegOp,
    QuantizeOp,
    ReluOp,
    RescaleOp,
    StorageCastOp,
)
"""Operators that are as fast as a lookup."""


class TabulateQuantized(Pattern):
    """Replace elementwise operators on one 8-bit quantized value by a lookup table (Glow's IntLookupTable)."""

    @rooted
    def match_and_rewrite(self, op: QuantizeOp, rewriter: Rewriter, /) -> None:
        if byte_width(op.to) > 1 or not isinstance(op.to, UniformQuantizedType):
            return
        search = OriginSearch(rewriter.storage)
        code = search.origin(op.result)
        if code is None or code is op.result or sizes_of(code) != sizes_of(op.result):
            return
        if all(isinstance(inner, CHEAP) for inner in search.between(op.result, code)):
            is_sum = combination_of(limited(op.input, op.to)[0], rewriter.storage) is not None
            if is_sum or policy_of(rewriter.function).requantization == "float":
                return
        emit = rewriter.emit
        table = emit.constant(tabulated(op.result, code, rewriter.storage), "table")
        rewriter.replace(op, StorageCastOp.make(emit(LookupOp, code, table), to=op.to))


@dataclass
class OriginSearch:
    """Searches for the single 8-bit value that elementwise operators compute others from."""

    storage: Storage
    origins: dict[SSAValue, SSAValue | None] = field(default_factory=dict[SSAValue, "SSAValue | None"])
    """Value → its 8-bit origin; `None` if it depends on anything else."""

    def origin(self, value: SSAValue) -> SSAValue | None:
        """The earliest 8-bit value that `value` is a function of; `value` itself if it is 8-bit and has no other."""
        if value not in self.origins:
            self.origins[value] = None  # Until the result is known; final if the limit is reached.
            if len(self.origins) <= MAX_OPERATORS:
                self.origins[value] = self._origin(value)
        return self.origins[value]

    def _origin(self, value: SSAValue) -> SSAValue | None:
        stored = storage_of(element_of(value))
        own = value if is_integer(stored) and byte_width(stored) == 1 else None
        if not isinstance(value.owner, Elementwise | LookupOp):
            return own
        variable = [operand for operand in value.owner.operands if not self._is_number(operand)]
        found = {self.origin(operand) for operand in variable}
        return found.pop() or own if len(found) == 1 else own

    def _is_number(self, value: SSAValue) -> bool:
        is_table = any(isinstance(use.operation, LookupOp) and use.index == 1 for use in value.uses)
        return (has_one_element(value) or is_table) and self.storage.is_constant(value)

    def between(self, value: SSAValue, code: SSAValue) -> list[Operation]:
        """The operators between a value and its origin, each once."""
        found: dict[Operation, None] = {}
        pending = [value]
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or owner in found:
                continue
            found[owner] = None
            pending += [v for v in owner.operands if v is not code and not self.storage.is_constant(v)]
        return list(found)


def tabulated(value: SSAValue, code: SSAValue, storage: Storage) -> np.ndarray:
    """Evaluate a value for all 256 values of its origin, in the order of their bits."""
    known: dict[SSAValue, np.ndarray] = {
        code: np.arange(VALUES_OF_A_BYTE).astype(np.uint8).view(numpy_dtype(element_of(code)))
    }

    def of(operand: SSAValue) -> np.ndarray:
        if operand not in known:
            array = storage.value_of(operand)
            if array is None:
                owner = cast("HighOp", operand.owner)
                arrays = [of(inner) for inner in owner.operands]
                if isinstance(owner, LookupOp):  # Its semantics take arrays of its own shape.
                    array = arrays[1][arrays[0].view(np.uint8)]
                else:
                    array = apply_semantics(owner, group_like(owner, arrays))[0]
            elif array.size == 1:
                array = array.reshape(())
            known[operand] = np.asarray(array)
        return known[operand]

    return of(value)

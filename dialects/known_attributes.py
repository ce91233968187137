"""The attributes that ops of ours may have: their declared properties, and those of other dialects by prefix."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import OpTrait

from glow_mlir.dialects.shapes import require

SEGMENT_SIZES = "operandSegmentSizes"
"""The property that says how many operands each definition has; text does not show it."""


class KnownAttributes(OpTrait):
    """
    An op whose attributes are declared properties, or discardable attributes with a dialect prefix, such as
    `test.note`.

    The verifier refuses other attributes, which are usually misspelt properties.
    """

    def verify(self, op: Operation) -> None:
        if unknown := next((name for name in op.attributes if "." not in name), None):
            assert isinstance(op, IRDLOperation)
            known = sorted(op.get_irdl_definition().properties.keys() - {SEGMENT_SIZES})
            listed = f"those of {op.name} are {', '.join(known)}" if known else f"{op.name} has none"
            require(False, f"unknown property '{unknown}' (hint: {listed})")

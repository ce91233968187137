"""Folds along dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i8
from xdsl.ir import Block, SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator

FOLDS: Mapping[str, type[HighOp]] = {
    "stablehlo.add": ReduceSumOp,
    "stablehlo.multiply": ReduceProdOp,
    "stablehlo.maximum": ReduceMaxOp,
    "stablehlo.minimum": ReduceMinOp,
}
"""The operation of a region → the operator that folds by it."""

FOLDS_OF_TRUTH: Mapping[str, type[HighOp]] = {
    "stablehlo.add": ReduceMaxOp,
    "stablehlo.maximum": ReduceMaxOp,
    "stablehlo.or": ReduceMaxOp,
    "stablehlo.multiply": ReduceMinOp,
    "stablehlo.minimum": ReduceMinOp,
    "stablehlo.and": ReduceMinOp,
}
"""The same for truth values."""


def single_operation(block: Block) -> str:
    """The name of the only operation of a region, which is on its two arguments; else an empty string."""
    operations = list(block.ops)
    if len(operations) != 2 or len(block.args) != 2:
        return ""
    one, end = operations
    is_pair = set(one.operands) == set(block.args) and list(end.operands) == list(one.results)
    return one.name if is_pair else ""


@stablehlo_operator("reduce")
def reduce(node: StablehloNode) -> Sequence[Value]:
    """A fold of tensors along dimensions by a region."""
    axes = node.integers("dimensions")
    block = node.op.regions[0].block
    if node.count == 2:
        kind = single_operation(block)
        value, initial = node.inputs()
        folded = folded_by(node, value, kind, axes)
        if folded is not None:
            return node.mapped(0, [folded, initial])
    raise node.unsupported("with such a region is not supported")


def folded_by(node: StablehloNode, value: SSAValue, kind: str, axes: Sequence[int]) -> SSAValue | None:
    """A value folded along axes by an operation; `None` if there is no operator for it."""
    if is_bool(element_of(value)):
        operator = FOLDS_OF_TRUTH.get(kind)
        if operator is None:
            return None
        found = node.emit(operator, node.cast(value, i8), axes=tuple(axes), keepdims=False)
        return node.cast(found, element_of(value))
    operator = FOLDS.get(kind)
    return None if operator is None else node.emit(operator, value, axes=tuple(axes), keepdims=False)

"""Products of rows with the weights of decoders, and rows of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import constant_op
from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.decoders.weights import Matrix


def constant(node: NodeBuilder, array: Deferred, name: str) -> SSAValue:
    """A constant whose elements are computed when they are packed."""
    op = node.insert(constant_op(node.builder.storage, array, name, node.location))
    return op.results[0]


def product(
    node: NodeBuilder, rows: SSAValue, weight: Matrix, bias: np.ndarray | None = None, left_bits: int = 0
) -> SSAValue:
    """Rows [R, depth] times a matrix, as f32 [R, rows of the matrix]; quantized weights take rows of `left_bits`."""
    added = None if bias is None else node.constant(bias, f"{node.name}.bias")
    if weight.numbers is not None:
        numbers = node.cast(constant(node, weight.numbers, node.name), f32)
        return node.emit(MatMulOp, rows, numbers, added, transpose_right=True)
    operands, form = _operands(node, weight)
    return node.emit(BlockwiseMatMulOp, rows, *operands[:4], added, *operands[4:], **form, left_bits=left_bits)


def table_rows(node: NodeBuilder, table: Matrix, numbers: SSAValue) -> SSAValue:
    """The rows of a table at these numbers, as f32."""
    if table.numbers is not None:
        rows = node.emit(GatherOp, constant(node, table.numbers, node.name), numbers, axis=0)
        return node.cast(rows, f32)
    operands, form = _operands(node, table)
    chosen = [None if item is None else node.emit(GatherOp, item, numbers, axis=0) for item in operands]
    return node.emit(BlockwiseDequantizeOp, *chosen, **form)


def _operands(node: NodeBuilder, weight: Matrix) -> tuple[list[SSAValue | None], dict[str, Any]]:
    """The operands of quantized weights, with factors last, and the properties of their form."""
    names = ("quantized", "scales", "", "minima", "scale_factors", "minimum_factors")
    found: list[SSAValue | None] = []
    for name in names:
        array = getattr(weight, name, None)
        found.append(None if array is None else constant(node, array, f"{node.name}.{name}"))
    return found, {"bits": weight.bits, "block": weight.block, "table": weight.table or None}

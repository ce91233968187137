"""PyTorch's operators whose results have as many elements as their operands say."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import LessOp, WhereOp
from glow_mlir.dialects.glow_high.selection import NonZeroOp
from glow_mlir.dialects.shapes import rank_of, shape_of, sizes_of
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


@torch_operator("nonzero_static.default")
def nonzero_static(node: TorchNode, value: SSAValue, *, size: int, fill_value: int = -1) -> SSAValue:
    """The places of the first elements that are not 0, as many as `size` says; where there are fewer, a number."""
    fill = node.splat(fill_value, i64)
    if 0 in node.sizes or 0 in sizes_of(value) or not rank_of(value):
        return node.splat(fill_value, i64, node.sizes)
    places, count = node.emit_all(NonZeroOp, value)
    most = shape_of(places)[1]
    widths = [(0, 0), (0, size - most)]
    columns = pad_value(node, places, widths, "constant", fill)
    inside = node.emit(LessOp, iota(node, size), count)
    return node.emit(TransposeOp, node.emit(WhereOp, inside, columns, fill), permutation=(1, 0))

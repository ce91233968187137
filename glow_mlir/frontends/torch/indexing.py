"""PyTorch's operators on elements at indices."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of


@torch_operator("embedding.default")
def embedding(node: TorchNode, weight: SSAValue, indices: SSAValue, *_: object) -> SSAValue:
    """Rows of a table."""
    return node.emit(GatherOp, weight, indices, axis=0)


@torch_operator("gather.default")
def gather(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, **_: object) -> SSAValue:
    """The elements at indices of an axis."""
    return node.emit(GatherElementsOp, value, indices, axis=axis_of(axis, rank_of(value)))


@torch_operator("index_select.default")
def index_select(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue) -> SSAValue:
    """The parts at indices of an axis."""
    return node.emit(GatherOp, value, indices, axis=axis_of(axis, rank_of(value)))

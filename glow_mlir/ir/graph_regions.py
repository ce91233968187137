"""Regions in which an operation may use what stands behind it: MLIR's graph regions, of which xDSL has no notion."""

from __future__ import annotations

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block

GRAPH_OPS = frozenset(
    {
        "builtin.module",
        "equivalence.graph",
        "hw.module",
        "test.graph_region",
        "test.op",  # xDSL's, which stands for any.
    }
)
"""Operations whose regions are graphs."""

_E_GRAPH = "equivalence"
"""The dialect of e-graphs: classes refer to each other in circles, and stand in the bodies of functions."""


def is_graph(block: Block) -> bool:
    """Whether a block is a graph: in such an op's region of one block, or with classes of an e-graph in it."""
    if (region := block.parent) is None or len(region.blocks) > 1 or (op := region.parent) is None:
        return False
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return name in GRAPH_OPS or any(inner.dialect_name() == _E_GRAPH for inner in block.ops)

"""MLIR's graph regions, in which an operation may use later results; xDSL does not model them."""

from __future__ import annotations

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block

GRAPH_OPS = frozenset(
    {
        "builtin.module",
        "equivalence.graph",
        "hw.module",
        "test.graph_region",
        "test.op",  # xDSL's unregistered operation, which stands for any.
    }
)
"""Operations whose regions are graphs."""

_E_GRAPH = "equivalence"
"""The e-graph dialect: classes refer to each other in cycles, and occur in bodies of functions."""


def is_graph(block: Block) -> bool:
    """Whether a block is a graph: the only block of such an op's region, or one that contains e-graph classes."""
    if (region := block.parent) is None or len(region.blocks) > 1 or (op := region.parent) is None:
        return False
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return name in GRAPH_OPS or any(inner.dialect_name() == _E_GRAPH for inner in block.ops)

"""Construction of loops for nodes of models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.glow_high.control_flow import INDEX, YieldOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass


@dataclass
class Body:
    """
    A loop under construction: `block` is its body, and `emit` completes the loop.

    The arguments of `block` are the trip number, carried values, and rows of scanned tensors.
    """

    node: NodeBuilder
    initial: Sequence[SSAValue]
    scanned: Sequence[Rows]

    def __post_init__(self) -> None:
        rows = [tensor(sizes_of(rows.value)[1:], element_of(rows.value)) for rows in self.scanned]
        self.block = Block(arg_types=[INDEX, *(value.type for value in self.initial), *rows])

    @property
    def carried(self) -> list[SSAValue]:
        """The carried values at the start of a trip."""
        return list(self.block.args[1 : 1 + len(self.initial)])

    @property
    def rows(self) -> list[SSAValue]:
        """The rows of scanned tensors in a trip."""
        return list(self.block.args[1 + len(self.initial) :])

    def carry_number(self, node: NodeBuilder) -> SSAValue:
        """Carry the number of trips made, as the last carried value; returns the number after the current trip."""
        self.initial = [*self.initial, node.constant(np.array(0, np.int64))]
        self.block.insert_arg(INDEX, len(self.initial))
        with node.builder.inside(self.block):
            return self.next_number(node)

    def next_number(self, node: NodeBuilder) -> SSAValue:
        """The number of trips made after the current one; emitted in the body."""
        return node.emit(AddOp, self.block.args[0], node.constant(np.array(1, np.int64)))

    def emit(
        self,
        trips: Trips,
        following: Sequence[SSAValue],
        stacked: Sequence[Rows],
        condition: SSAValue | None = None,
    ) -> list[SSAValue]:
        """Emit the loop, whose trips yield `condition`, `following` carried values, and rows to stack; its results."""
        yielded = [*([] if condition is None else [condition]), *following, *(rows.value for rows in stacked)]
        self.block.add_op(YieldOp.of(yielded, self.node.location))
        backwards = [rows.reversed for rows in stacked]
        location = self.node.location
        loop = LoopOp.of(trips, self.initial, self.scanned, Region(self.block), backwards, location)
        return list(self.node.insert(loop).results)

"""Loops that nodes of models become: their bodies, and how they are put there."""

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
    The body of a loop as a region: what a trip takes is there, what it yields is found by `run`.

    `block` takes the number of the trip, then what is carried, then rows.
    """

    node: NodeBuilder
    initial: Sequence[SSAValue]
    scanned: Sequence[Rows]

    def __post_init__(self) -> None:
        rows = [tensor(sizes_of(rows.value)[1:], element_of(rows.value)) for rows in self.scanned]
        self.block = Block(arg_types=[INDEX, *(value.type for value in self.initial), *rows])

    @property
    def carried(self) -> list[SSAValue]:
        """What a trip takes from the one before."""
        return list(self.block.args[1 : 1 + len(self.initial)])

    @property
    def rows(self) -> list[SSAValue]:
        """What a trip takes of the tensors that the loop goes over."""
        return list(self.block.args[1 + len(self.initial) :])

    def carry_number(self, node: NodeBuilder) -> SSAValue:
        """Carry how many trips there have been, behind all else; gives what is to be carried on."""
        self.initial = [*self.initial, node.constant(np.array(0, np.int64))]
        self.block.insert_arg(INDEX, len(self.initial))
        with node.builder.inside(self.block):
            return self.next_number(node)

    def next_number(self, node: NodeBuilder) -> SSAValue:
        """How many trips there have been behind this one, in the body."""
        return node.emit(AddOp, self.block.args[0], node.constant(np.array(1, np.int64)))

    def emit(
        self,
        trips: Trips,
        following: Sequence[SSAValue],
        stacked: Sequence[Rows],
        condition: SSAValue | None = None,
    ) -> list[SSAValue]:
        """
        The results of the loop whose trips carry `following` on, and give rows to `stacked`.
        """
        yielded = [*([] if condition is None else [condition]), *following, *(rows.value for rows in stacked)]
        self.block.add_op(YieldOp.of(yielded, self.node.location))
        backwards = [rows.reversed for rows in stacked]
        location = self.node.location
        loop = LoopOp.of(trips, self.initial, self.scanned, Region(self.block), backwards, location)
        return list(self.node.insert(loop).results)

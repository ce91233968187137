"""`sink-from-loops`: move products of stacked rows behind the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block, SSAValue

from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Trips
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import bytes_of, has_static_shape
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Link:
    """An operator that maps one row to another, and its properties for all rows."""

    op: HighOp
    is_row: Sequence[bool]
    properties: Mapping[str, Attribute]

    @property
    def row(self) -> SSAValue:
        """The row operand."""
        return self.op.operands[self.is_row.index(True)]

    def pays(self) -> bool:
        """Whether this is a product whose matrix is larger than its result: one read saves more than is stored."""
        if not isinstance(self.op, MatMulOp) or not all(map(has_static_shape, (self.op.right, self.op.result))):
            return False
        return bytes_of(self.op.right) > bytes_of(self.op.result)


class SinkProducts(Pattern):
    """Stack the operand of a product instead of its result, and multiply all rows behind the loop."""

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        if op.size_of_trips is None or op.condition is not None:
            return
        for position in range(len(op.initial), len(op.results)):
            links = _links(op, position)
            while links and not links[-1].pays():
                links.pop()
            if links:
                _sink(op, position, links, rewriter)
                return


def _links(loop: LoopOp, position: int) -> list[Link]:
    """The operators that only a stacked result needs, last one first."""
    found: list[Link] = []
    value = loop.yielded(loop.body)[position]
    while value.uses.get_length() == 1 and (link := _link(loop, value)) is not None:
        found.append(link)
        value = link.row
    return found


def _link(loop: LoopOp, value: SSAValue) -> Link | None:
    """The operator of the body that computes a value, if it has a form for all rows; only one operand may be a row."""
    op, block, trips = value.owner, loop.body.block, loop.size_of_trips
    if not isinstance(op, HighOp) or op.parent is not block or len(op.results) != 1 or failure_of(op) or trips is None:
        return None
    is_row = [_is_of(operand, block) and not isinstance(operand.owner, SplatOp) for operand in op.operands]
    properties = op.over_rows(is_row, trips) if is_row.count(True) == 1 else None
    return None if properties is None else Link(op, is_row, properties)


def _is_of(value: SSAValue, block: Block) -> bool:
    """Whether a value is defined directly by a block."""
    return (value.owner if isinstance(value.owner, Block) else value.owner.parent) is block


def _sink(op: LoopOp, position: int, links: Sequence[Link], rewriter: Rewriter) -> None:
    """Stack the row in front of the operators, and apply them to all rows behind the loop."""
    last = op.body.block.last_op
    assert last is not None
    last.operands[position] = links[-1].row
    trips, backwards = Trips(op.size_of_trips), [rows.reversed for rows in op.stacks]
    body = op.detach_region(op.body)
    emit = rewriter.emit
    new = emit.insert(LoopOp.of(trips, op.initial, op.over, body, backwards, op.location))
    results: list[SSAValue] = list(new.results)
    for link in reversed(links):
        operands = [_outside(operand, body.block, rewriter) for operand in link.op.operands]
        operands[link.is_row.index(True)] = results[position]
        wide = emit.insert(type(link.op).inferred(operands, link.properties, link.op.location))
        results[position] = wide.results[0]
    rewriter.replace(op, [], results)


def _outside(value: SSAValue, block: Block, rewriter: Rewriter) -> SSAValue:
    """The value for use behind the loop: splats of the body are copied."""
    if isinstance(value.owner, SplatOp) and value.owner.parent is block:
        return rewriter.emit.insert(value.owner.clone()).results[0]
    return value


@dataclass(frozen=True)
class SinkFromLoopsPass(PatternPass):
    """
    Let loops stack the operand of a product instead of its result, if nothing else needs that: one product of all rows
    behind the loop reads the matrix once.
    """

    name = "sink-from-loops"
    WALKS = (Walk((SinkProducts(),), repeated=True),)

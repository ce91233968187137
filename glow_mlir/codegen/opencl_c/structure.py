"""The control flow of a function as loops and branches, one inside the other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.llvm import BrOp, CondBrOp
from xdsl.ir import Block, Operation, Region, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Straight:
    """The operations of a block, but for what ends it."""

    block: Block


@dataclass(frozen=True)
class Edge:
    """What a block passes on to the arguments of another, which comes next."""

    target: Block
    values: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Return:
    """The end of the function."""

    op: Operation


@dataclass(frozen=True)
class Branch:
    """One of two ways."""

    condition: SSAValue
    yes: tuple[Node, ...]
    no: tuple[Node, ...]


@dataclass(frozen=True)
class Loop:
    """What is done again until a `Latch` inside ends it."""

    body: tuple[Node, ...]


@dataclass(frozen=True)
class Latch:
    """The end of a trip: another one, where the condition is `again`, or the way out of the innermost loop."""

    condition: SSAValue
    again: bool
    next: Edge
    out: Edge


Node = Straight | Edge | Return | Branch | Loop | Latch


def structured(region: Region) -> tuple[Node, ...]:
    """
    The blocks of a function as a tree; each is in it once.

    Raises `EmissionError` for jumps that are no loops with one latch, which ends with a choice, and no branches.
    """
    blocks = list(region.blocks)
    structure = _Structure(blocks)
    nodes = structure.sequence(blocks[0], None)
    if len(structure.seen) != len(blocks):
        raise EmissionError("the blocks of a function are no loops and branches, one inside the other")
    return nodes


def edges(op: Operation) -> list[Edge]:
    """Where what ends a block goes, and with which values."""
    if isinstance(op, BrOp):
        return [Edge(op.successors[0], tuple(op.operands))]
    if isinstance(op, CondBrOp):
        count = len(op.successors[0].args)
        values = tuple(op.operands[1:])
        return [Edge(op.successors[0], values[:count]), Edge(op.successors[1], values[count:])]
    if op.successors:
        raise EmissionError(f"the operation '{op.name}' is not translated")
    return []


def _end(block: Block) -> Operation:
    if block.last_op is None:
        raise EmissionError("a block has no end")
    return block.last_op


class _Structure:
    """The blocks of a function, by number, with those that each comes after, and those that come after it."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.seen: set[Block] = set()
        self._blocks = blocks
        self._numbers = {block: number for number, block in enumerate(blocks)}
        after = [[self._numbers[edge.target] for edge in edges(_end(block))] for block in blocks]
        before: list[list[int]] = [[] for _ in blocks]
        for number, targets in enumerate(after):
            for target in targets:
                before[target].append(number)
        self._dominators = _closed(before, [0], range(len(blocks)))
        ends = [number for number, targets in enumerate(after) if not targets]
        self._postdominators = _closed(after, ends, range(len(blocks) - 1, -1, -1))
        self._latches = {
            blocks[target]: blocks[number]
            for number, targets in enumerate(after)
            for target in targets
            if self._dominators[number] >> target & 1
        }

    def sequence(self, block: Block | None, stop: Block | None, opened: Block | None = None) -> tuple[Node, ...]:
        """What happens from a block on, before `stop`; in a loop whose head was `opened`, up to its latch."""
        nodes: list[Node] = []
        while block is not None and block is not stop:
            latch = self._latches.get(block)
            if latch is not None and block is not opened:
                nodes.append(Loop(self.sequence(block, None, block)))
                block = self._way_out(block, latch).target
                continue
            opened = None
            if block in self.seen:
                raise EmissionError("the blocks of a function are no loops and branches, one inside the other")
            self.seen.add(block)
            nodes.append(Straight(block))
            block = self._behind(block, nodes)
        return tuple(nodes)

    def _behind(self, block: Block, nodes: list[Node]) -> Block | None:
        """Add how a block ends; returns where it goes on."""
        end = _end(block)
        ways = edges(end)
        if not ways:
            nodes.append(Return(end))
            return None
        if len(ways) == 1:
            if ways[0].target in self._latches and self._latches[ways[0].target] is block:
                raise EmissionError("a loop has no way out where its trip ends")
            nodes.append(ways[0])
            return ways[0].target
        head = next((way.target for way in ways if self._latches.get(way.target) is block), None)
        if head is not None:
            again = ways[0].target is head
            nodes.append(Latch(end.operands[0], again, *(ways if again else reversed(ways))))
            return None
        join = self._join(block)
        yes, no = ((way, *self.sequence(way.target, join)) for way in ways)
        nodes.append(Branch(end.operands[0], yes, no))
        return join

    def _way_out(self, head: Block, latch: Block) -> Edge:
        """Where a loop goes on behind its last trip."""
        out = [way for way in edges(_end(latch)) if way.target is not head]
        if len(out) != 1:
            raise EmissionError("a loop has no way out where its trip ends")
        return out[0]

    def _join(self, block: Block) -> Block | None:
        """Where both ways behind a block meet: the first of those that all ways to the end go through."""
        number = self._numbers[block]
        found = self._postdominators[number] & ~(1 << number)
        choices = [other for other in range(len(self._blocks)) if found >> other & 1]
        nearest = max(choices, key=lambda other: self._postdominators[other].bit_count(), default=None)
        return None if nearest is None else self._blocks[nearest]


def _closed(before: Sequence[Sequence[int]], starts: Sequence[int], order: Sequence[int]) -> list[int]:
    """For each number, the set of those, as bits, that all ways from a start to it go through, itself among them."""
    everything = (1 << len(before)) - 1
    found = [everything] * len(before)
    for start in starts:
        found[start] = 1 << start
    changed = True
    while changed:
        changed = False
        for number in order:
            if number in starts:
                continue
            common = everything
            for other in before[number]:
                common &= found[other]
            if (new := common | 1 << number) != found[number]:
                found[number], changed = new, True
    return found

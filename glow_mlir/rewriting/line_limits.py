"""Selection of the chains that `tile-lines` tiles so that a function respects its memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import accumulate

from xdsl.ir import SSAValue

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.analysis.line_blocks import Schedule
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import AllocOp, aligned_size, byte_size
from glow_mlir.rewriting.line_blocks import Link
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Span:
    """A buffer of `size` bytes, live from one position in a block to another, both included."""

    first: int
    last: int
    size: int


@dataclass(frozen=True, eq=False)
class Piece:
    """A candidate chain: its range of positions, its effect on buffers, and its schedules, least memory first."""

    ops: Sequence[DerivedInstruction]
    links: Sequence[Link]
    first: int
    last: int
    gone: frozenset[SSAValue]
    around: frozenset[SSAValue]
    """The other buffers that the chain accesses: they live throughout the chain."""
    schedules: Sequence[Schedule]

    def overlaps(self, other: Piece) -> bool:
        """Whether the two chains share an instruction."""
        return self.first <= other.last and other.first <= self.last


def line_bytes(schedule: Schedule) -> int:
    """The arena bytes of the line buffers."""
    pairs = zip(schedule.heights(), schedule.buffers, strict=True)
    return sum(aligned_size(height * buffer.pitch) for height, buffer in pairs)


def spans_of(accesses: Accesses) -> dict[SSAValue, Span]:
    """Lifetimes: allocation of a block → its first and last use."""
    found: dict[SSAValue, Span] = {}
    for root, uses in accesses.by_root.items():
        if isinstance(root.owner, AllocOp) and accesses.is_local(root):
            positions = [use.position for use in uses]
            found[root] = Span(min(positions), max(positions), aligned_size(byte_size(root)))
    return found


@dataclass
class LinePlan:
    """
    A selection of chains, each with a schedule, extended until at most `limit` bytes are live at once.

    Live bytes are counted as `allocate` would find them if nothing else changed: the maximum over instructions.
    """

    spans: dict[SSAValue, Span]
    length: int
    """The number of positions in the block."""
    limit: int
    chosen: dict[Piece, Schedule] = field(default_factory=dict[Piece, Schedule])

    def live(self, chosen: dict[Piece, Schedule]) -> list[int]:
        """The live bytes at each position."""
        changes = [0] * (self.length + 1)
        for span in self._spans(chosen):
            changes[span.first] += span.size
            changes[span.last + 1] -= span.size
        return list(accumulate(changes))

    def _spans(self, chosen: dict[Piece, Schedule]) -> Iterator[Span]:
        """The lifetimes of all buffers once these chains are tiled."""
        spans = dict(self.spans)
        for piece, schedule in chosen.items():
            for root in piece.gone:
                spans.pop(root, None)
            for root in piece.around & spans.keys():
                span = spans[root]
                spans[root] = Span(min(span.first, piece.first), max(span.last, piece.last), span.size)
            yield Span(piece.first, piece.last, line_bytes(schedule))
        yield from spans.values()

    def excess(self, chosen: dict[Piece, Schedule]) -> tuple[int, int]:
        """The maximum excess over the limit, and the sum of the excess over all positions."""
        beyond = [max(0, size - self.limit) for size in self.live(chosen)]
        return max(beyond), sum(beyond)

    @property
    def peak(self) -> int:
        """The maximum number of live bytes."""
        return max(self.live(self.chosen))

    def grow(self, pieces: Sequence[Piece]) -> None:
        """
        Add chains greedily by least excess, then enlarge their blocks as long as the excess does not grow.

        A chain replaces the selected chains that share instructions with it.
        """
        excess = self.excess(self.chosen)
        while any(excess):
            tried = [self._with(piece) for piece in pieces if piece not in self.chosen]
            least = min(tried, key=self.excess, default=self.chosen)
            if self.excess(least) >= excess:
                break
            self.chosen, excess = least, self.excess(least)
        for piece in list(self.chosen):
            for schedule in reversed(piece.schedules):
                wider = {**self.chosen, piece: schedule}
                if self.excess(wider) <= excess:
                    self.chosen = wider
                    break

    def _with(self, piece: Piece) -> dict[Piece, Schedule]:
        """The selection with one more chain, in its smallest blocks."""
        others = {other: schedule for other, schedule in self.chosen.items() if not piece.overlaps(other)}
        return {**others, piece: piece.schedules[0]}

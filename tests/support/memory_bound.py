"""
The activations that a scheduled graph needs at least, from the graph alone: neither compiler analyses nor instructions.

What is taken for granted, so that it must cost no memory:

- Inputs, outputs, state and constants lie elsewhere, and so does what is saved; splats are numbers in the code.
- Reshapes and slices that walk forward are views.
- The parts of a concatenation and the inside of a constant pad are computed where they belong, each in one place.
- Consecutive elementwise operators of one shape are one loop: what only they use is never stored. Their results take
  the place of operands that die there; if an operand has no other use, it was computed in that place already.
- Every tensor begins at a multiple of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp, SplatOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, shape_of, size_of

ALIGNMENT = 64


def bytes_of(value: SSAValue) -> int:
    """Bytes of a tensor."""
    return size_of(value.type) * byte_width(element_of(value.type))


def is_view(op: Operation) -> bool:
    """Whether the result is memory of the operand."""
    return isinstance(op, ReshapeOp) or (isinstance(op, SliceOp) and all(taken.step > 0 for taken in op.ranges()))


def partitions_of(op: Operation) -> Sequence[SSAValue]:
    """The operands that are parts of the result as they are."""
    if isinstance(op, PadOp):
        return [op.input] if text(op.mode) == "constant" else []
    return op.parts if isinstance(op, ConcatOp) else []


def overwritten(op: Operation) -> Sequence[SSAValue]:
    """The first operand of an elementwise operator that has no other use and the size of the result."""
    if not isinstance(op, Elementwise):
        return []
    return [v for v in op.operands if v.has_one_use() and bytes_of(v) == bytes_of(op.results[0])][:1]


@dataclass
class MemoryBound:
    """The memory of one function: which tensor lies in which other, and when each is there."""

    function: FuncOp
    inside: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    elsewhere: set[SSAValue] = field(default_factory=set[SSAValue])
    time: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def owner(self, value: SSAValue) -> SSAValue:
        """The tensor in which `value` lies."""
        while value in self.inside:
            value = self.inside[value]
        return value

    def put(self, part: SSAValue, whole: SSAValue) -> None:
        """Let a tensor lie in another, if it does not lie anywhere yet."""
        owner = self.owner(part)
        taken = owner in self.elsewhere or owner is self.owner(whole) or bytes_of(owner) != bytes_of(part)
        if not taken:
            self.inside[owner] = whole

    def bytes(self) -> int:
        """The most bytes that are needed at one time."""
        ops = list(self.function.block.ops)
        self._set_times(ops)
        self._set_owners(ops)
        count = max(self.time.values(), default=0) + 1
        change = np.zeros(count + 1, np.int64)
        lives = self._lives(ops)
        for value, (begin, end) in lives.items():
            size = -(-bytes_of(value) // ALIGNMENT) * ALIGNMENT
            change[begin] += size
            change[end + 1] -= size
        return int((np.cumsum(change)[:count] - self._saved_in_place(ops, lives, count)).max(initial=0))

    def _set_times(self, ops: list[Operation]) -> None:
        now, shape = 0, None
        for op in ops:
            if not (is_view(op) or isinstance(op, GetOp | SaveOp | SplatOp)):
                before, shape = shape, shape_of(op.results[0]) if isinstance(op, Elementwise) else None
                now += shape is None or shape != before
            self.time[op] = now

    def _set_owners(self, ops: list[Operation]) -> None:
        for op in ops:
            if is_view(op):
                self.inside[op.results[0]] = op.operands[0]
            elif isinstance(op, GetOp | SplatOp):
                self.elsewhere.add(op.results[0])
        for op in ops:
            if isinstance(op, SaveOp):
                self._save(op)
        for op in ops:
            for part in partitions_of(op):
                self.put(part, op.results[0])
        for op in ops:
            for operand in overwritten(op):
                self.put(operand, op.results[0])

    def _save(self, op: SaveOp) -> None:
        placeholder = self.function.storage()[op.storage_name]
        owner = self.owner(op.input)
        if isinstance(placeholder, PlaceholderOp) and placeholder.role == "output":
            self.elsewhere |= {owner} if bytes_of(owner) == bytes_of(op.input) else set()

    def _is_stored(self, value: SSAValue) -> bool:
        """Whether a tensor outlives the loop that computes it."""
        times = {self.time[use.operation] for use in value.uses}
        return not isinstance(value.owner, Elementwise) or times != {self.time[value.owner]}

    def _lives(self, ops: list[Operation]) -> dict[SSAValue, tuple[int, int]]:
        """The first and last time of each tensor that needs memory of its own."""
        lives: dict[SSAValue, tuple[int, int]] = {}
        for op in ops:
            for value in (*op.results, *op.operands):
                owner = self.owner(value)
                if owner not in self.elsewhere and self._is_stored(value):
                    begin, _ = lives.get(owner, (self.time[op], 0))
                    lives[owner] = (begin, self.time[op])
        return lives

    def _saved_in_place(self, ops: list[Operation], lives: dict[SSAValue, tuple[int, int]], count: int) -> np.ndarray:
        """For each time the bytes of results that take the place of operands."""
        saved = np.zeros(count, np.int64)
        dying: dict[int, set[SSAValue]] = {}
        for op in ops:
            if isinstance(op, Elementwise):
                dying.setdefault(self.time[op], set()).update(self._dying(op, lives))
        free = {time: [bytes_of(owner) for owner in owners] for time, owners in dying.items()}
        for owner, (begin, _) in lives.items():
            sizes = free.get(begin, [])
            if isinstance(owner.owner, Elementwise) and self.time[owner.owner] == begin and bytes_of(owner) in sizes:
                sizes.remove(bytes_of(owner))
                saved[begin] += -(-bytes_of(owner) // ALIGNMENT) * ALIGNMENT
        return saved

    def _dying(self, op: Operation, lives: dict[SSAValue, tuple[int, int]]) -> Iterator[SSAValue]:
        """The operands that were there before and that nothing needs any more."""
        for owner in {self.owner(value) for value in op.operands}:
            begin, end = lives.get(owner, (0, -1))
            if begin < self.time[op] == end:
                yield owner


def memory_bound(function: FuncOp) -> int:
    """The bytes that any region for the activations of a scheduled function needs, see above."""
    return MemoryBound(function).bytes()

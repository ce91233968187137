"""
Repetitions in a sequence of operations: runs in which each operation agrees with the one a period later.

Two operations agree if they have the same form, and if their operands are the same value, or results of operations that
are a period apart, or storage for which `leaves_agree`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue

from glow_mlir.dialects.structure import blocks_of, structure_of
from glow_mlir.ir.traversal import inner_blocks, within
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import number_of

MAX_PERIODS = 12
"""The number of periods that are tried."""


@dataclass(frozen=True)
class Repetition:
    """`count` equal parts of `period` operations, from position `begin`."""

    begin: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """The position behind the last part."""
        return self.begin + self.period * self.count

    def part(self, number: int) -> range:
        """The positions of one part."""
        return range(self.begin + number * self.period, self.begin + (number + 1) * self.period)


def form_of(op: Operation) -> Hashable:
    """The key of operations that differ only in operands; `None` for one that holds other operations of the program."""
    if op.regions and any(True for _ in inner_blocks(op)):
        return None
    declared = sorted({**op.attributes, **op.properties}.items(), key=itemgetter(0))
    return (
        type(op),
        len(op.operands),
        tuple((name, number_of(value)) for name, value in declared),
        tuple(number_of(result.type) for result in op.results),
        structure_of(blocks_of(op.regions), lambda constant: constant.value) if op.regions else (),
    )


def _runs(flags: np.ndarray, least: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of at least `least` flags that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2).tolist():
        if end - begin >= max(least, 1):
            yield begin, end


@dataclass(frozen=True)
class OperationSequence:
    """Operations of one block, in order, without those that only name storage."""

    ops: Sequence[Operation]
    form: Callable[[Operation], Hashable]
    """The key on which equal operations agree, operands excepted; `None` for one that equals no other."""
    leaves_agree: Callable[[SSAValue, SSAValue], bool]
    """Whether two values from outside the sequence may be in the same place of equal parts."""

    @cached_property
    def positions(self) -> dict[Operation, int]:
        """Operation → its position."""
        return {op: position for position, op in enumerate(self.ops)}

    @cached_property
    def _forms(self) -> list[int]:
        """A number for each operation, which those of equal form share."""
        numbers: dict[Hashable, int] = {}
        forms = [self.form(op) for op in self.ops]
        return [
            -position if key is None else numbers.setdefault(key, 1 + len(numbers))
            for position, key in enumerate(forms)
        ]

    def position_of(self, value: SSAValue) -> int | None:
        """The position of the operation that defines a value; `None` if it is outside."""
        return self.positions.get(value.owner) if isinstance(value, OpResult) else None

    def last_use(self, position: int) -> int:
        """The position of the last operation that uses a result of one, or has such an operation inside."""
        op = self.ops[position]
        block = op.parent
        assert block is not None
        users = (within(block, use.operation) for result in op.results for use in result.uses)
        return max((self.positions[user] for user in users if user is not None), default=position)

    def longest(self, least: int, accepts: Callable[[Repetition], bool]) -> Repetition | None:
        """The accepted repetition of at least that many parts that has most operations; `None` if there is none."""
        found = [one for period in self._periods() for one in self._of_period(period, least)]
        found.sort(key=lambda one: (-one.period * one.count, -one.count))
        return next(filter(accepts, found), None)

    def _periods(self) -> list[int]:
        """The most frequent distances between operations of equal form."""
        last: dict[int, int] = {}
        distances: Counter[int] = Counter()
        for position, form in enumerate(self._forms):
            if form in last:
                distances[position - last[form]] += 1
            last[form] = position
        return [distance for distance, _ in distances.most_common(MAX_PERIODS)]

    def _of_period(self, period: int, least: int) -> Iterator[Repetition]:
        """The repetitions with that period."""
        forms = np.array(self._forms)
        for first, last in _runs(forms[:-period] == forms[period:], (least - 1) * period):
            begin = first
            for position in range(first, last + 1):
                if position < last and self._agree(position, position + period):
                    continue
                found = self._without_shared_parts(begin, position, period, least)
                if found is not None:
                    yield found
                begin = position + 1

    def _without_shared_parts(self, begin: int, end: int, period: int, least: int) -> Repetition | None:
        """
        The repetition whose operations at [begin, end) agree with those a period later, after the last operation that
        its parts share.
        """
        if (end - begin) // period + 1 < least:
            return None
        shared = max(
            (
                position
                for number in range(begin, end)
                for one, other in zip(self.ops[number].operands, self.ops[number + period].operands, strict=True)
                if one is other and (position := self.position_of(one)) is not None
            ),
            default=-1,
        )
        begin = max(begin, shared + 1)
        count = (end - begin) // period + 1
        return Repetition(begin, period, count) if count >= least else None

    def _agree(self, one: int, other: int) -> bool:
        """Whether the operands of two operations of equal form agree."""
        pairs = zip(self.ops[one].operands, self.ops[other].operands, strict=True)
        return all(self._values_agree(left, right, other - one) for left, right in pairs)

    def _values_agree(self, one: SSAValue, other: SSAValue, distance: int) -> bool:
        if one is other:
            return True
        left, right = self.position_of(one), self.position_of(other)
        if left is None or right is None:
            return left is right and self.leaves_agree(one, other)
        assert isinstance(one, OpResult)
        assert isinstance(other, OpResult)
        return right - left == distance and one.index == other.index

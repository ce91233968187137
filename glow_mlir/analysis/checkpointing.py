"""
What of a chain of stages is saved for the way back, and what is computed again, for the least work in a memory.

The dynamic programme is that of Beaumont et al., "Optimal checkpointing for heterogeneous chains: how to train deep
neural networks with limited memory" (2019): of all ways in which a value that is saved stays until the way back has
passed it, the plan is the one with the least work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from glow_mlir.support.dataclass import dataclass

UNITS = 256
"""Parts in which memory is counted."""


class Stage(NamedTuple):
    """One stage of a chain, on the way there and on the way back; sizes in bytes."""

    work: float
    """How long the way there takes, in any unit."""
    output: int
    """What the stages behind it read of what there is at its end."""
    saved: int
    """What its way back, and the stages behind it, read of what it computes."""
    forward: int
    """What the way there takes beyond what it saves."""
    backward: int
    """What the way back takes beyond what is saved."""
    arriving: int = 0
    """What has come back from the stages behind it, when its way back begins."""


class Action(Enum):
    """A step of a plan."""

    SAVE = "save"
    """Compute a stage, and keep all that its way back needs."""
    PASS = "pass"
    """Compute a stage for what the next one needs."""
    BACK = "back"
    """The way back through a stage."""


Plan = Sequence[tuple[Action, int]]
"""Actions on stages by number, in order."""


@dataclass
class Plans:
    """
    For each part of a chain of stages, and each memory of up to `memory` bytes beyond its input: the least work, and
    the choice that leads to it.
    """

    stages: Sequence[Stage]
    memory: int

    def __post_init__(self) -> None:
        count = len(self.stages)
        self._least = [[np.full(UNITS + 1, np.inf) for _ in range(count)] for _ in range(count)]
        self._choice = [[np.zeros(UNITS + 1, np.int64) for _ in range(count)] for _ in range(count)]
        """Where the second part begins, whose input alone is saved; the first stage itself where that saves all."""
        for length in range(count):
            for first in range(count - length):
                self._fill(first, first + length)

    def within(self, memory: int) -> Plan | None:
        """The plan of least work for the whole chain in so many bytes; `None` if there is none."""
        units, last = min(memory * UNITS // max(self.memory, 1), UNITS), len(self.stages) - 1
        if units < 0 or not self.stages or not math.isfinite(self._least[0][last][units]):
            return None
        return tuple(self._actions(0, last, units))

    def _units(self, size: int) -> int:
        """A size in parts of the memory, rounded up."""
        return min(-(-size * UNITS // max(self.memory, 1)), UNITS + 1)

    def _fill(self, first: int, last: int) -> None:
        """The best of all ways through the stages from one to another, whose input is there."""
        stage, arriving = self.stages[first], self.stages[last].arriving
        rest = 0.0 if first == last else self._behind(first + 1, last, self._units(stage.saved))
        taken = stage.saved + max(stage.forward + arriving, stage.backward)
        self._offer(first, last, first, rest + stage.work, self._units(taken))
        work, taken = 0.0, 0
        for second in range(first + 1, last + 1):
            passed = self.stages[second - 1]
            before = self.stages[second - 2].output if second - 1 > first else 0
            taken = max(taken, before + passed.output + passed.forward + arriving)
            work += passed.work
            found = work + self._behind(second, last, self._units(passed.output)) + self._least[first][second - 1]
            self._offer(first, last, second, found, self._units(taken))

    def _behind(self, first: int, last: int, kept: int) -> np.ndarray:
        """The least work of a part in what is left of each memory, where some is kept meanwhile."""
        found = np.full(UNITS + 1, np.inf)
        if kept <= UNITS:
            found[kept:] = self._least[first][last][: UNITS + 1 - kept]
        return found

    def _offer(self, first: int, last: int, choice: int, work: np.ndarray | float, taken: int) -> None:
        """Take a choice where it needs less work, in each memory that has room for it."""
        least = self._least[first][last]
        better = np.arange(UNITS + 1) >= taken
        better &= work < least
        self._choice[first][last][better] = choice
        least[better] = np.broadcast_to(work, least.shape)[better]

    def _actions(self, first: int, last: int, units: int) -> Iterator[tuple[Action, int]]:
        """The plan of a part of the chain."""
        second = int(self._choice[first][last][units])
        if second == first:
            yield Action.SAVE, first
            if first < last:
                yield from self._actions(first + 1, last, units - self._units(self.stages[first].saved))
            yield Action.BACK, first
            return
        yield from ((Action.PASS, number) for number in range(first, second))
        yield from self._actions(second, last, units - self._units(self.stages[second - 1].output))
        yield from self._actions(first, second - 1, units)

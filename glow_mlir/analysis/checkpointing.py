"""
Optimal checkpointing of a chain of stages: which values to save for the backward pass, and which to recompute.

Dynamic programming after Beaumont et al., "Optimal checkpointing for heterogeneous chains: how to train deep neural
networks with limited memory" (2019): the plan of least work among those that keep a saved value until the backward pass
has passed it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from glow_mlir.support.dataclass import dataclass

UNITS = 256
"""Number of units into which memory is discretized."""


class Stage(NamedTuple):
    """One stage of a chain, forward and backward; sizes in bytes."""

    work: float
    """Time of the forward computation, in any unit."""
    output: int
    """Bytes live at its end that later stages read."""
    saved: int
    """Bytes of its intermediate values that its backward computation, and later stages, read."""
    forward: int
    """Bytes that the forward computation needs beyond those it saves."""
    backward: int
    """Bytes that the backward computation needs beyond the saved ones."""
    arriving: int = 0
    """Bytes of gradients from later stages when its backward computation begins."""


class Action(Enum):
    """A step of a plan."""

    SAVE = "save"
    """Compute a stage, and save everything its backward computation needs."""
    PASS = "pass"
    """Compute a stage, and keep only the operands of the next one."""
    BACK = "back"
    """The backward computation of a stage."""


Plan = Sequence[tuple[Action, int]]
"""Actions on stages by number, in order."""


@dataclass
class Plans:
    """
    For each part of a chain and each memory of up to `memory` bytes beyond its input: the least work, and the choice
    that attains it.
    """

    stages: Sequence[Stage]
    memory: int

    def __post_init__(self) -> None:
        count = len(self.stages)
        self._least = [[np.full(UNITS + 1, np.inf) for _ in range(count)] for _ in range(count)]
        self._choice = [[np.zeros(UNITS + 1, np.int64) for _ in range(count)] for _ in range(count)]
        """
        Start of the second part, whose input alone is saved; the first stage itself if that saves everything.
        """
        for length in range(count):
            for first in range(count - length):
                self._fill(first, first + length)

    def within(self, memory: int) -> Plan | None:
        """The plan of least work for the whole chain in `memory` bytes; `None` if there is none."""
        units, last = min(memory * UNITS // max(self.memory, 1), UNITS), len(self.stages) - 1
        if units < 0 or not self.stages or not math.isfinite(self._least[0][last][units]):
            return None
        return tuple(self._actions(0, last, units))

    def _units(self, size: int) -> int:
        """A size in units of memory, rounded up."""
        return min(-(-size * UNITS // max(self.memory, 1)), UNITS + 1)

    def _fill(self, first: int, last: int) -> None:
        """Find the best plan from one stage to another, given the input of the first."""
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
        """The least work of a part in the memory that is left while other bytes are kept."""
        found = np.full(UNITS + 1, np.inf)
        if kept <= UNITS:
            found[kept:] = self._least[first][last][: UNITS + 1 - kept]
        return found

    def _offer(self, first: int, last: int, choice: int, work: np.ndarray | float, taken: int) -> None:
        """Record a choice for each memory size that it fits, where it needs less work."""
        least = self._least[first][last]
        better = np.arange(UNITS + 1) >= taken
        better &= work < least
        self._choice[first][last][better] = choice
        least[better] = np.broadcast_to(work, least.shape)[better]

    def _actions(self, first: int, last: int, units: int) -> Iterator[tuple[Action, int]]:
        """The actions of the best plan for a part of the chain."""
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

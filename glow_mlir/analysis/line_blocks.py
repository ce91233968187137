"""
Schedules of stencil chains in blocks of lines, each line of each image computed once.

Stage i computes the lines of image i from those of image i - 1, with its border. The last stage computes `R` lines per
block; an earlier stage computes as many as the next one consumes, and runs ahead by the lines that the filters of later
stages reach down. The first block (the head) computes these lines, too; the last (the tail) computes the rest. The
buffer between two stages holds the lines that the next block still needs, followed by the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class LineStage:
    """
    The access pattern of a stage: an output line reads `extent` lines, at steps of `stride`; it computes `lines` in
    all.
    """

    extent: int
    stride: int
    lines: int


@dataclass(frozen=True)
class LineBuffer:
    """The image between two stages: `top` border lines above it, and the bytes per line."""

    top: int
    pitch: int


@dataclass(frozen=True)
class Block:
    """The ranges of lines that each stage computes in one block: first, and one past the last."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Schedule:
    """A chain cut into blocks in which the last stage computes `lines` lines each."""

    stages: Sequence[LineStage]
    buffers: Sequence[LineBuffer]
    lines: int

    @property
    def steps(self) -> list[int]:
        """The number of lines that each stage computes in an inner block."""
        steps = [self.lines]
        for stage in reversed(self.stages[1:]):
            steps.insert(0, steps[0] * stage.stride)
        return steps

    @property
    def leads(self) -> list[int]:
        """The number of lines by which each stage is ahead after every block."""
        leads = [0]
        for stage, buffer in zip(reversed(self.stages[1:]), reversed(self.buffers), strict=True):
            leads.insert(0, max(0, leads[0] * stage.stride + stage.extent - stage.stride - buffer.top))
        return leads

    @property
    def kept(self) -> list[int]:
        """The number of lines of each buffer, border included, that the next block reads again."""
        leads = self.leads
        return [
            leads[i] + buffer.top - leads[i + 1] * self.stages[i + 1].stride for i, buffer in enumerate(self.buffers)
        ]

    @property
    def blocks(self) -> int:
        """The number of blocks in front of the tail."""
        whole = zip(self.stages, self.steps, self.leads, strict=True)
        return min((stage.lines - lead) // step for stage, step, lead in whole)

    @property
    def is_possible(self) -> bool:
        """Whether there is a head, and blocks are large enough that lines can move to the front of their buffer."""
        return self.blocks > 0 and all(0 <= kept <= step for kept, step in zip(self.kept, self.steps, strict=False))

    def head(self) -> Block:
        """The first block."""
        return Block(tuple((0, step + lead) for step, lead in zip(self.steps, self.leads, strict=True)))

    def inner(self) -> Block:
        """The second block; later ones, up to the tail, are shifted by `steps` lines each."""
        whole = zip(self.steps, self.leads, strict=True)
        return Block(tuple((step + lead, 2 * step + lead) for step, lead in whole))

    def tail(self) -> Block | None:
        """The last block; `None` if the last stage has no lines left."""
        if self.blocks * self.lines == self.stages[-1].lines:
            return None
        whole = zip(self.stages, self.steps, self.leads, strict=True)
        return Block(tuple((self.blocks * step + lead, stage.lines) for stage, step, lead in whole))

    def start(self, block: Block, index: int) -> int:
        """The first line in a buffer during a block, in lines of its image with border."""
        return block.ranges[index + 1][0] * self.stages[index + 1].stride

    def place(self, block: Block, index: int) -> int:
        """The line of a buffer at which a block writes its new lines."""
        return block.ranges[index][0] + self.buffers[index].top - self.start(block, index)

    def needed(self, block: Block, index: int) -> int:
        """The number of lines of a buffer that the next stage reads in a block."""
        first, last = block.ranges[index + 1]
        stage = self.stages[index + 1]
        return (last - first - 1) * stage.stride + stage.extent

    def heights(self) -> list[int]:
        """The number of lines of each buffer."""
        blocks = [block for block in (self.head(), self.inner() if self.blocks > 1 else None, self.tail()) if block]
        return [
            max(max(self.place(b, i) + b.ranges[i][1] - b.ranges[i][0], self.needed(b, i)) for b in blocks)
            for i in range(len(self.buffers))
        ]

    def bytes(self) -> int:
        """The size of all buffers."""
        return sum(height * buffer.pitch for height, buffer in zip(self.heights(), self.buffers, strict=True))

    def moved_bytes(self) -> int:
        """The bytes read and written by moving lines to the front of their buffers, over all blocks."""
        between = self.blocks - (self.tail() is None)
        lines = zip(self.kept, self.buffers, strict=True)
        return 2 * between * sum(kept * buffer.pitch for kept, buffer in lines)


def possible_schedules(stages: Sequence[LineStage], buffers: Sequence[LineBuffer]) -> list[Schedule]:
    """All schedules of a chain whose buffers are smaller than its images, the smallest blocks first."""
    found = (Schedule(stages, buffers, lines) for lines in range(1, stages[-1].lines + 1))
    return [schedule for schedule in found if schedule.is_possible]


def best_schedule(stages: Sequence[LineStage], buffers: Sequence[LineBuffer], held_bytes: int) -> Schedule | None:
    """The schedule with the largest blocks whose buffers take at most `held_bytes`; `None` where there is none."""
    best: Schedule | None = None
    for lines in range(1, stages[-1].lines + 1):
        schedule = Schedule(stages, buffers, lines)
        if schedule.blocks > 0 and schedule.bytes() > held_bytes:
            break
        if schedule.is_possible:
            best = schedule
    return best

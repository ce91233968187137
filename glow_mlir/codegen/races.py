"""The check for races of emulated blocks: who was at each unit of shared memory since the last barrier."""

from __future__ import annotations

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.types import i32, i64, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.nvptx import RACE

THREAD_BITS = 12
"""A tag is the number of a phase, and in so many low bits that of a thread and one; all of them set for several."""

SEVERAL = (1 << THREAD_BITS) - 1


class Shadow:
    """For each unit of shared memory, the tags of who wrote it last, and of who read it last."""

    def __init__(self, b: Builder, nbytes: int, unit: int) -> None:
        self._b, self._unit = b, unit
        units = -(-nbytes // unit)
        self._tags = b.stack(i64, 2 * units)
        self._tags_of_none(units)

    def _tags_of_none(self, units: int) -> None:
        b = self._b
        with b.loop(0, 2 * units) as number:
            self._tags.at(number, i64).store(b.constant(0, i64))

    def check(self, thread: Value, offset: Index, nbytes: int, phase: Value, *, writes: bool) -> None:
        """Note an access, and a race where another thread was there in this phase, and either writes."""
        b, count = self._b, max(1, nbytes // self._unit)
        name = b.module.shared(("race", writes), lambda name: _define(b, name, writes), "check_race")
        first = b.as_value(offset, i32) // self._unit
        b.call(name, [self._tags, b.cast(first, i64), count, b.cast(phase, i64), b.cast(thread, i64), self._unit])


def _define(b: Builder, name: str, writes: bool) -> None:
    """The function that checks an access of some units, and notes it."""
    parameters = [ptr, i64, i64, i64, i64, i64]
    with define_function(b.module, name, parameters, internal=True, inline=False) as (c, given):
        tags, first, count, phase, thread, unit = given
        own = (phase << THREAD_BITS) + (thread + 1)
        begin = phase << THREAD_BITS
        with c.loop(0, c.index(count)) as step:
            number = c.index(first) + step
            writer, reader = tags.at(number * 2, i64), tags.at(number * 2 + 1, i64)
            wrote, read = writer.load(i64), reader.load(i64)
            others = [wrote, read] if writes else [wrote]
            for other in others:
                with c.when((other > begin) & other.ne(own)):
                    _note(c, number * c.index(unit), own - begin, other - begin)
            if writes:
                writer.store(own)
            else:
                alone = (read <= begin) | read.eq(own)
                reader.store(c.select(alone, own, begin + SEVERAL))


def _note(b: Builder, offset: Value, first: Value, other: Value) -> None:
    """Keep a race, if it is the first."""
    race = b.symbol(RACE)
    with b.when(race.load(i64).eq(0)):
        for word, value in enumerate((b.constant(1, i64), b.cast(offset, i64), first - 1, other - 1)):
            race.at(word, i64).store(value)

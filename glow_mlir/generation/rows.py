"""Rows of calls: neighbouring tokens of several sequences, one behind the other, with the pages of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.generation.memory import Memory
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Rows:
    """
    Rows of a call for one sequence: `tokens` from position `start` on; the last `wanted` of them give logits.

    `pages` are those of the sequence, to which others are appended where its tokens need them. `memory` is what it
    attends to besides, if the decoder has an encoder.
    """

    pages: list[int]
    tokens: np.ndarray
    start: int
    wanted: int
    adapter: int = 0
    memory: Memory | None = None

    @property
    def end(self) -> int:
        """The position behind the last token."""
        return self.start + len(self.tokens)


def inputs_of(sequences: Sequence[Rows]) -> dict[str, np.ndarray]:
    """The inputs `tokens`, `positions`, `sequences` and `table` of a call, all of i64; `DecoderConfig.inputs`."""
    return {
        "tokens": np.concatenate([rows.tokens for rows in sequences]),
        "positions": np.concatenate([np.arange(rows.start, rows.end) for rows in sequences]),
        "sequences": np.repeat(np.arange(len(sequences)), [len(rows.tokens) for rows in sequences]),
        "table": _table([rows.pages for rows in sequences]),
    }


def memory_inputs_of(memories: Sequence[Memory]) -> dict[str, np.ndarray]:
    """The inputs `memory…` of a call with sequences that have these memories; rows are given where they are new."""
    # Forks have one memory, whose rows are written once.
    first = {id(memory): number for number, memory in reversed([*enumerate(memories)])}
    parts = [(number, rows) for number in first.values() if (rows := memories[number].rows) is not None]
    counts = [len(rows) for _, rows in parts]
    nothing = np.zeros(0, np.int64)
    found = {
        "memory_sequences": np.repeat(np.array([number for number, _ in parts], np.int64), counts),
        "memory_positions": np.concatenate([np.arange(count) for count in counts]) if counts else nothing,
        "memory_table": _table([memory.pages for memory in memories]),
        "memory_lengths": np.array([memory.count for memory in memories], np.int64),
    }
    if parts:
        found["memory"] = np.concatenate([rows for _, rows in parts])
    return found


def _table(pages: Sequence[Sequence[int]]) -> np.ndarray:
    """The pages of sequences [sequences, pages], with zeros behind the last ones."""
    table = np.zeros((len(pages), max(map(len, pages))), np.int64)
    for number, own in enumerate(pages):
        table[number, : len(own)] = own
    return table

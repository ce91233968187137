"""Rows of calls: neighbouring tokens of several sequences, one behind the other, with the pages of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Rows:
    """
    Rows of a call for one sequence: `tokens` from position `start` on; the last `wanted` of them give logits.

    `pages` are those of the sequence, to which others are appended where its tokens need them.
    """

    pages: list[int]
    tokens: np.ndarray
    start: int
    wanted: int
    adapter: int = 0

    @property
    def end(self) -> int:
        """The position behind the last token."""
        return self.start + len(self.tokens)


def inputs_of(sequences: Sequence[Rows]) -> dict[str, np.ndarray]:
    """The inputs `tokens`, `positions`, `sequences` and `table` of a call, all of i64; `DecoderConfig.inputs`."""
    table = np.zeros((len(sequences), max(len(rows.pages) for rows in sequences)), np.int64)
    for number, rows in enumerate(sequences):
        table[number, : len(rows.pages)] = rows.pages
    return {
        "tokens": np.concatenate([rows.tokens for rows in sequences]),
        "positions": np.concatenate([np.arange(rows.start, rows.end) for rows in sequences]),
        "sequences": np.repeat(np.arange(len(sequences)), [len(rows.tokens) for rows in sequences]),
        "table": table,
    }

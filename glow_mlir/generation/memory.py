"""What an encoder made of an input: rows to which sequences of a decoder attend, with keys and values in pages."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from glow_mlir.generation.engine import Engine


class Memory:
    """
    Rows [count, width] of f32 of an encoder, for any number of sequences.

    The first call with a sequence computes keys and values of the rows, which are kept in pages of their own until the
    memory is closed or forgotten, and then the rows are let go.
    """

    def __init__(self, engine: Engine, rows: np.ndarray) -> None:
        assert engine.memories is not None
        self.count = len(rows)
        self.rows: np.ndarray | None = np.ascontiguousarray(rows, np.float32)
        """The rows, until their keys and values are computed."""
        self.pages: list[int] = []
        self._engine = engine
        weakref.finalize(self, _leave, engine, self.pages)
        with engine.turn():
            engine.memories.grow(self.pages, self.count)

    @property
    def is_written(self) -> bool:
        """Whether keys and values are computed."""
        return self.rows is None

    @property
    def is_closed(self) -> bool:
        """Whether its pages are given back."""
        return not self.pages

    def close(self) -> None:
        """Give the pages back; no sequence may go on then."""
        _leave(self._engine, self.pages)


def _leave(engine: Engine, pages: list[int]) -> None:
    assert engine.memories is not None
    engine.memories.leave(list(pages))
    pages.clear()

"""Calls of decoders: rows of tokens of two sequences, whose keys and values are in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import glow_mlir
from glow_mlir.frontends.decoders.models import DecoderModel

VOCABULARY = 96
PAGE, PAGES = 8, 10
FORMS: dict[str, Any] = {"pages": PAGES, "page": PAGE, "rows": 32, "outputs": 32, "sequences": 2, "cache": "float32"}


class Caller:
    """Calls of a session, with two sequences in pages of their own."""

    def __init__(
        self,
        model: DecoderModel,
        backend: str = "interpreter",
        threads: int = 1,
        disable: Sequence[str] = (),
        **forms: Any,
    ) -> None:
        program: Any = model.program(**{**FORMS, **forms})
        keywords: dict[str, Any] = {"dimensions": program.dimensions, "backend": backend, "threads": threads}
        keywords["disable"] = list(disable)
        self.session = glow_mlir.InferenceSession(program, **keywords)
        self.table = np.array([[7, 1, 4, 2], [3, 0, 9, 5]])

    def call(self, tokens: np.ndarray, positions: np.ndarray, sequences: np.ndarray | int = 0) -> np.ndarray:
        """The logits of all rows."""
        count = len(tokens)
        feeds = {
            "tokens": tokens,
            "positions": positions,
            "sequences": np.broadcast_to(sequences, (count,)).astype(np.int64),
            "table": self.table,
            "last": np.arange(count),
        }
        return self.session.run(None, {name: np.ascontiguousarray(value, np.int64) for name, value in feeds.items()})[0]

    def chunks(self, tokens: np.ndarray, *sizes: int) -> np.ndarray:
        """The logits of a sequence that is given in chunks."""
        ends = np.cumsum(sizes)
        found = [
            self.call(tokens[end - size : end], np.arange(end - size, end))
            for size, end in zip(sizes, ends, strict=True)
        ]
        return np.concatenate(found)


def drawn(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, VOCABULARY, count)

"""A decoder for tests of the engine: a function of the tokens that its pages hold."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from glow_mlir.generation.sampler import Choice, RowRequest

VOCABULARY = 12
PAGE = 4


class PagedDecoder:
    """Keeps tokens in pages as a decoder keeps keys, and makes logits from all tokens that a row sees."""

    def __init__(self, pages: int) -> None:
        self._pages = np.full((pages, PAGE), -1, np.int64)
        self.calls: list[int] = []
        """The number of rows of each call."""

    def logits(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Logits of the rows of `last`."""
        table, positions, sequences = inputs["table"], inputs["positions"], inputs["sequences"]
        self.calls.append(len(positions))
        for row, (position, sequence) in enumerate(zip(positions, sequences, strict=True)):
            self._pages[table[sequence, position // PAGE], position % PAGE] = inputs["tokens"][row]
        return np.stack([self._row(table[sequences[row]], int(positions[row])) for row in inputs["last"]])

    def _row(self, pages: np.ndarray, position: int) -> np.ndarray:
        return logits_of(self._pages[pages].reshape(-1)[: position + 1])


def logits_of(tokens: np.ndarray) -> np.ndarray:
    """The logits behind tokens: the last three of them decide, and a little all of them."""
    recent = np.random.default_rng(zlib.crc32(tokens[-3:].tobytes())).normal(size=VOCABULARY)
    every = np.random.default_rng(zlib.crc32(tokens.tobytes())).normal(size=VOCABULARY)
    return (recent + 0.2 * every).astype(np.float32)


class MostLikely:
    """Chooses the largest logit; history and position must be those of the row, whose output may be longer."""

    def __init__(self, *, forgets: bool = False) -> None:
        self.forgets = forgets

    def choose(self, logits: np.ndarray, requests: list[RowRequest]) -> list[Choice]:
        """One choice for each row."""
        for row, request in zip(logits, requests, strict=True):
            np.testing.assert_array_equal(row, logits_of(request.history))
            forgotten = request.position - (len(request.history) - request.output_start)
            assert self.forgets or not forgotten
        return [Choice(int(row.argmax())) for row in logits]


def continued(prompt: list[int], count: int, end: int | None = None) -> list[int]:
    """The tokens that the engine must choose behind a prompt."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + count:
        tokens.append(int(logits_of(np.array(tokens, np.int64)).argmax()))
        if tokens[-1] == end:
            break
    return tokens[len(prompt) :]

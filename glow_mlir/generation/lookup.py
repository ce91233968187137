"""
Drafts by prompt look-up: tokens that followed the last ones earlier in the sequence (Saxena 2023).

A draft is checked by the same call that computes the next token, and a token is only taken where the sampler chooses it
too. So results are those without drafts.
"""

from __future__ import annotations

import numpy as np

LONGEST = 4
"""The number of last tokens that are looked for first; then fewer, down to `SHORTEST`."""

SHORTEST = 2

MIN_SHARE = 0.35
"""The share of drafted tokens that must be taken lately; below it, drafts pause."""

PAUSE = 16
"""The number of tokens without a draft after the share fell below the least one."""

DECAY = 0.8


class Lookup:
    """Drafts for one sequence, of up to `most` tokens."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._share = 1.0
        self._pause = 0

    def draft(self, tokens: np.ndarray, limit: int) -> np.ndarray:
        """The tokens that may follow `tokens` [length], at most `limit`; none where nothing like the end was there."""
        most = min(self.most, limit)
        if most < 1:
            return tokens[:0]
        if self._pause:
            self._pause -= 1
            return tokens[:0]
        for size in range(LONGEST, SHORTEST - 1, -1):
            end = _last_occurrence(tokens, size)
            if end is not None:
                return tokens[end : end + most]
        return tokens[:0]

    def learn(self, drafted: int, taken: int) -> None:
        """Record how many of the drafted tokens were taken."""
        if not drafted:
            return
        self._share = DECAY * self._share + (1 - DECAY) * taken / drafted
        if self._share < MIN_SHARE:
            self._pause, self._share = PAUSE, MIN_SHARE


def _last_occurrence(tokens: np.ndarray, size: int) -> int | None:
    """The index behind the last earlier occurrence of the last `size` tokens."""
    count = len(tokens) - size
    if count < 1:
        return None
    tail = tokens[-size:]
    equal = tokens[:count] == tail[0]
    for offset in range(1, size):
        equal &= tokens[offset : count + offset] == tail[offset]
    found = np.flatnonzero(equal)
    return int(found[-1]) + size if len(found) else None

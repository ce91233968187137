"""A request of the engine: a prompt, how its continuation is chosen, and the tokens chosen so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glow_mlir.generation.lookup import Lookup
from glow_mlir.generation.pages import Digest
from glow_mlir.generation.sampler import Choice
from glow_mlir.generation.sampling import Sampling
from glow_mlir.support.dataclass import dataclass

Sink = Callable[[Choice], str | None]
"""Takes a chosen token; returns why the request is finished, or `None` if it goes on."""

Mask = Callable[[np.ndarray], np.ndarray | None]
"""The allowed tokens behind the chosen ones [count], as the sampler takes them; `None` if all are."""


@dataclass(frozen=True)
class ContextShift:
    """
    What a sequence of `context` tokens forgets: half of those behind the first `keep`, the oldest ones.

    The tokens that are left are those of a new sequence: their keys depend on their positions, and what a layer made of
    them on what is forgotten, so that they are computed again.
    """

    context: int
    keep: int

    @property
    def dropped(self) -> int:
        """The number of tokens that are forgotten at a time."""
        return (self.context - self.keep + 1) // 2


class Request:
    """
    A prompt of token ids, continued by up to `max_tokens` tokens until `sink` says that it is finished.

    - `salt`: requests share computed prompts only with requests that have the same one.
    - `mask`: the allowed tokens, for grammars.
    - `draft`: the maximum number of tokens that are guessed by look-up and checked in one call; 0 for none.
    - `adapter`: the number of the adapter of its rows from 1 on; 0 for none.
    - `shift`: what is forgotten where the context is full; without it the sequence ends there.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        max_tokens: int,
        sink: Sink,
        *,
        salt: str = "",
        mask: Mask | None = None,
        draft: int = 0,
        adapter: int = 0,
        shift: ContextShift | None = None,
    ) -> None:
        self.sampling, self.max_tokens, self.sink, self.salt, self.mask = sampling, max_tokens, sink, salt, mask
        self.prompt_length = len(prompt)
        most = len(prompt) + max_tokens
        self.shift, self.adapter = shift, adapter
        self._tokens = np.empty(most if shift is None else min(most, max(shift.context, len(prompt))), np.int64)
        self._tokens[: len(prompt)] = prompt
        self.length = len(prompt)
        """The number of tokens: the prompt's and the chosen ones that are not forgotten."""
        self.output_start = len(prompt)
        """The number of tokens of the prompt that are not forgotten, and of those that are kept for good."""
        self.dropped = 0
        """The number of tokens that are forgotten."""
        self._earlier = self._tokens[:0]
        """The tokens that were chosen before some were forgotten last."""
        self._later_start = len(prompt)
        self.computed = 0
        """The number of tokens whose keys and values are in pages."""
        self.reused = 0
        """The number of tokens of the prompt that an earlier sequence had computed."""
        self.pages: list[int] = []
        self.digests: list[Digest] = []
        """The digests of the full pages."""
        self.lookup = Lookup(draft)
        self.reason: str | None = None
        """Why it is finished: `stop`, `length`, `cancelled` or `error`; `None` while it is not."""
        self.error: Exception | None = None
        self.is_cancelled = False
        self.listener: Callable[[], None] = _ignore
        """Called in the thread of the engine after each step that took part in it, and when it is cancelled."""

    @property
    def tokens(self) -> np.ndarray:
        """All tokens [length]."""
        return self._tokens[: self.length]

    @property
    def chosen(self) -> np.ndarray:
        """All chosen tokens."""
        later = self._tokens[self._later_start : self.length]
        return np.concatenate([self._earlier, later]) if len(self._earlier) else later

    @property
    def chosen_count(self) -> int:
        """The number of chosen tokens."""
        return len(self._earlier) + self.length - self._later_start

    @property
    def left(self) -> int:
        """The number of tokens that may be chosen before the sequence ends, or some tokens are forgotten."""
        return min(self.max_tokens - self.chosen_count, self.most - self.length)

    @property
    def most(self) -> int:
        """The number of tokens that it may have at once."""
        return len(self._tokens)

    @property
    def is_decoding(self) -> bool:
        """Whether all of its tokens but the last are computed."""
        return self.computed == self.length - 1

    def fail(self, error: Exception) -> None:
        """End with an error."""
        # Whoever reads the reason reads the error behind it.
        self.error = error
        self.reason = "error"

    def append(self, choice: Choice) -> None:
        """Take a chosen token."""
        self._tokens[self.length] = choice.token
        self.length += 1
        self.reason = self.sink(choice)
        if self.reason is None and self.chosen_count == self.max_tokens:
            self.reason = "length"

    @property
    def is_full(self) -> bool:
        """Whether some tokens have to be forgotten before it goes on."""
        return self.shift is not None and self.reason is None and self.length == self.shift.context

    def forget(self) -> None:
        """Forget tokens as `shift` says; none is computed then."""
        assert self.shift is not None
        keep, count = self.shift.keep, self.shift.dropped
        self._earlier = self.chosen.copy()
        kept = self._tokens[keep + count : self.length].copy()
        self.length -= count
        self._tokens[keep : self.length] = kept
        self._later_start, self.output_start = self.length, max(keep, self.output_start - count)
        self.dropped += count
        self.computed = 0
        self.digests = []


def _ignore() -> None:
    """Listen to nothing."""

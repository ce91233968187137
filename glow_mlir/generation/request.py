"""A request of the engine: a prompt, how its continuation is chosen, and the tokens chosen so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glow_mlir.generation.lookup import Lookup
from glow_mlir.generation.pages import Digest
from glow_mlir.generation.sampler import Choice
from glow_mlir.generation.sampling import Sampling

Sink = Callable[[Choice], str | None]
"""Takes a chosen token; returns why the request is finished, or `None` if it goes on."""

Mask = Callable[[np.ndarray], np.ndarray | None]
"""The allowed tokens behind the chosen ones [count], as the sampler takes them; `None` if all are."""


class Request:
    """
    A prompt of token ids, continued by up to `max_tokens` tokens until `sink` says that it is finished.

    - `salt`: requests share computed prompts only with requests that have the same one.
    - `mask`: the allowed tokens, for grammars.
    - `draft`: the maximum number of tokens that are guessed by look-up and checked in one call; 0 for none.
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
    ) -> None:
        self.sampling, self.max_tokens, self.sink, self.salt, self.mask = sampling, max_tokens, sink, salt, mask
        self.prompt_length = len(prompt)
        self._tokens = np.empty(len(prompt) + max_tokens, np.int64)
        self._tokens[: len(prompt)] = prompt
        self.length = len(prompt)
        """The number of tokens: the prompt's and the chosen ones."""
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
        """The chosen tokens."""
        return self._tokens[self.prompt_length : self.length]

    @property
    def most(self) -> int:
        """The number of tokens that it may have in the end."""
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
        if self.reason is None and self.length == self.most:
            self.reason = "length"


def _ignore() -> None:
    """Listen to nothing."""

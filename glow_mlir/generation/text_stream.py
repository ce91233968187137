"""Text of tokens as they come: whole characters only, and nothing that may turn out to be a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from glow_mlir.generation.tokenizer import Tokenizer


class TextStream:
    """
    Turns token ids into text, up to the first of the `stops`.

    What `put` and `finish` return is, joined, the text of all tokens decoded at once, cut where the first stop string
    begins: the one that ends first, and of several that end there the longest. So it does not depend on how the text is
    divided into tokens. A character whose bytes are in several tokens comes with the last of them. By default the text
    goes on after a prompt (`continued`), so that a space in front is kept, as in `Tokenizer.decode`.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = (), *, continued: bool = True) -> None:
        self._tokenizer = tokenizer
        self._matches = [_Match(stop) for stop in stops if stop]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips_space = tokenizer.strips_space and not continued
        self._held = ""
        """Decoded text that may be the beginning of a stop string."""
        self.stopped: str | None = None
        """The stop string that ended the text."""

    def put(self, token: int) -> str:
        """Take a token; returns the text that is certain."""
        if self.stopped is not None or token in self._tokenizer.controls:
            return ""
        return self._certain(self._decoder.decode(self._tokenizer.piece(token)))

    def finish(self) -> str:
        """The rest of the text; no token will come."""
        if self.stopped is not None:
            return ""
        text = self._certain(self._decoder.decode(b"", final=True))
        if self.stopped is not None:
            return text
        text, self._held = text + self._held, ""
        return text

    def _certain(self, text: str) -> str:
        """Take decoded text; hold back what may be the beginning of a stop string."""
        if self._strips_space and text:
            self._strips_space = False
            text = text.removeprefix(" ")
        before = self._held
        for position, character in enumerate(text, 1):
            ended = [match for match in self._matches if match.step(character)]
            if ended:
                stop = max((match.stop for match in ended), key=len)
                self.stopped, self._held = stop, ""
                return (before + text[:position])[: -len(stop)]
        whole = before + text
        end = len(whole) - max((match.length for match in self._matches), default=0)
        self._held = whole[end:]
        return whole[:end]


class _Match:
    """How much of a stop string the text ends with, after Knuth, Morris and Pratt."""

    def __init__(self, stop: str) -> None:
        self.stop, self.length = stop, 0
        self._shorter = [0] * len(stop)
        for place in range(1, len(stop)):
            self._shorter[place] = self._next(self._shorter[place - 1], stop[place])

    def step(self, character: str) -> bool:
        """Take a character; returns whether the text ends with the stop string."""
        self.length = self._next(self.length, character)
        return self.length == len(self.stop)

    def _next(self, length: int, character: str) -> int:
        """The length of the beginning that a text ends with, if a character comes behind so much of it."""
        while length and self.stop[length] != character:
            length = self._shorter[length - 1]
        return length + (self.stop[length] == character)

"""The text of a request as it is generated, and as it is in the end."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Self

from glow_mlir.errors import GlowError, InputError
from glow_mlir.generation.engine import Engine
from glow_mlir.generation.request import Request
from glow_mlir.generation.sampler import Choice
from glow_mlir.generation.text_stream import TextStream
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.support.activity import caution
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Piece:
    """Text that is certain, and the tokens that were chosen since the last piece."""

    text: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Completion:
    """
    The continuation of a prompt.

    - `finish_reason`: `stop` at the end of a turn or a stop string, `length` at `max_tokens`, or `cancelled`.
    - `choices`: each token with its log-probability, and the most likely ones if they were asked for.
    - `reused_tokens`: how many of the `prompt_tokens` an earlier request had computed.
    - `dropped_tokens`: how many tokens of prompt and text were forgotten, by `context_shift`, before the last one.
    """

    text: str
    finish_reason: str
    choices: tuple[Choice, ...]
    prompt_tokens: int
    reused_tokens: int
    dropped_tokens: int = 0

    @property
    def tokens(self) -> list[int]:
        """The chosen tokens."""
        return [choice.token for choice in self.choices]

    def __str__(self) -> str:
        return self.text


class Sink:
    """Turns chosen tokens into text, and ends a request at the end of a turn or at a stop string."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str], ends: frozenset[int]) -> None:
        self._stream = TextStream(tokenizer, stops)
        self._ends = ends
        self.texts: list[str] = []
        self.choices: list[Choice] = []

    def __call__(self, choice: Choice) -> str | None:
        """Take a token; `stop` if it ends the request."""
        self.choices.append(choice)
        if choice.token in self._ends:
            return "stop"
        self.texts.append(self._stream.put(choice.token))
        return None if self._stream.stopped is None else "stop"

    def finish(self) -> None:
        """Add the text that was held back."""
        self.texts.append(self._stream.finish())


class Generation:
    """
    A request that is being computed: iterate over its pieces, then read `completion`.

    A generation that is closed, left in a `with` statement, or forgotten, is cancelled if it is not finished.
    """

    def __init__(self, engine: Engine, request: Request, sink: Sink) -> None:
        self._engine, self.request, self._sink = engine, request, sink
        self._texts = self._choices = 0
        """The numbers of texts and of tokens that were taken."""
        self._is_complete = self._is_reported = False
        # Only a flag: whoever computes next lets the request go.
        weakref.finalize(self, setattr, request, "is_cancelled", True)

    def __iter__(self) -> Iterator[Piece]:
        """The pieces, as steps are computed."""
        for _ in self._engine.drive(self.request):
            if piece := self.take():
                yield piece
        if piece := self.take():
            yield piece

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will come."""
        return self.request.reason is not None

    def take(self) -> Piece | None:
        """The text and tokens since the last call, if there are any; computes nothing."""
        sink = self._sink
        if self.is_finished and not self._is_complete:
            self._is_complete = True
            sink.finish()
        if self.request.dropped and not self._is_reported:
            self._is_reported = True
            caution(self._shifted())
        # Another thread may add to both meanwhile.
        choices, texts = sink.choices[self._choices :], sink.texts[self._texts :]
        self._choices, self._texts = self._choices + len(choices), self._texts + len(texts)
        return Piece("".join(texts), tuple(choices)) if choices or any(texts) else None

    def _shifted(self) -> GlowError:
        """What is said where the context is full for the first time."""
        shift = self.request.shift
        assert shift is not None
        reason = f"the context of {shift.context} tokens is full: tokens behind the first {shift.keep} are forgotten"
        return InputError(reason, hint="give a larger context")

    @property
    def completion(self) -> Completion:
        """The result; what is not computed yet is computed."""
        if not self._is_complete:
            for _ in self:
                continue
        request, sink = self.request, self._sink
        assert request.reason is not None
        counts = request.prompt_length, request.reused, request.dropped
        return Completion("".join(sink.texts), request.reason, tuple(sink.choices), *counts)

    def close(self) -> None:
        """Cancel the request."""
        self._engine.cancel(self.request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

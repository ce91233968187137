"""
Calls of a network with the tokens of many texts, one behind the other without padding.

Each row of a call belongs to a text, whose keys and values are in pages. What is computed of a text does not depend on
the others in a call, to the bit. A decoder's text may be computed in several calls; an encoder's is in one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from threading import Condition

import numpy as np

from glow_mlir.errors import ExecutionError
from glow_mlir.generation.rows import Rows, inputs_of
from glow_mlir.support.dataclass import dataclass

ROWS = 512
"""The tokens of a call with several texts at most: their rows stay in caches."""

PAGE = 32
"""The tokens of a page."""

Call = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Inputs of the network by name → results [outputs, elements] of f32."""


class PackedText:
    """Tokens of a text, their types if there are several, and the rows that are computed of it."""

    def __init__(self, tokens: Sequence[int], types: Sequence[int] = ()) -> None:
        self.tokens = np.asarray(tokens, np.int64)
        self.types = np.asarray(types, np.int64) if len(types) else np.zeros(len(tokens), np.int64)
        self.computed = 0
        """The number of tokens that are computed."""
        self.pages: list[int] = []
        self.rows: list[np.ndarray] = []
        """Results [tokens, elements] of some neighbouring tokens each."""
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether it needs no further call."""
        return self.error is not None or self.computed == len(self.tokens)


@dataclass(frozen=True)
class PackedForm:
    """
    The bounds of calls, and what a network takes.

    - `tokens`: of a text; `sequences`: texts of a call.
    - `wanted`: the rows that results are wanted of: `first`, `last` or `all`; or `texts`, if a text has one result.
    - `is_causal`: whether a text may be cut; `inputs`: the names of the inputs.
    """

    tokens: int
    sequences: int
    wanted: str
    is_causal: bool
    inputs: frozenset[str]

    @property
    def rows(self) -> int:
        """The tokens of a call at most."""
        return ROWS if self.is_causal else max(ROWS, self.tokens)

    @property
    def outputs(self) -> int:
        """The results of a call at most."""
        return self.rows if self.wanted == "all" else self.sequences

    @property
    def pages(self) -> int:
        """The number of pages: those of the longest text, and of others beside it."""
        return -(-self.tokens // PAGE) + -(-ROWS // PAGE) + self.sequences


@dataclass(frozen=True)
class _Span:
    """The tokens of a text that are in a call, from `start` to `end`."""

    text: PackedText
    start: int
    end: int


class PackedTexts:
    """
    Computes texts; safe to use from several threads.

    Whoever waits for texts makes calls, one thread at a time, with the texts of all that wait.
    """

    def __init__(self, call: Call, form: PackedForm) -> None:
        self._call, self.form = call, form
        self._waiting: deque[PackedText] = deque()
        self._free = list(range(form.pages))
        self._turn = Condition()
        self._is_calling = False

    def compute(self, texts: Sequence[PackedText]) -> None:
        """Compute all of some texts, of which none is empty or too long; raises the error of a call."""
        with self._turn:
            # Long ones first: short ones fill the calls behind them.
            self._waiting.extend(sorted(texts, key=lambda text: -len(text.tokens)))
        try:
            for text in texts:
                while not text.is_done:
                    self._advance(text)
        finally:
            for text in texts:
                if not text.is_done:
                    text.error = ExecutionError("the call was interrupted")
        for text in texts:
            if text.error is not None:
                raise text.error

    def _advance(self, text: PackedText) -> None:
        """Make a call, or wait for that of another thread."""
        with self._turn:
            if self._is_calling:
                self._turn.wait_for(lambda: text.is_done or not self._is_calling)
                return
            if text.is_done:
                return
            self._is_calling = True
            spans = self._spans()
        try:
            self._compute(spans)
            for span in spans:
                span.text.computed = span.end
        except Exception as error:
            for span in spans:
                span.text.error = error
        finally:
            with self._turn:
                self._is_calling = False
                self._let_go([span.text for span in spans if span.text.is_done])
                self._turn.notify_all()

    def _spans(self) -> list[_Span]:
        """The texts of the next call: the one that waits for longest, and others that fit beside it."""
        form, left, found = self.form, ROWS, list[_Span]()
        self._let_go([text for text in self._waiting if text.is_done])
        for text in islice(self._waiting, 4 * form.sequences):
            count = len(text.tokens) - text.computed
            if form.is_causal:
                count = min(count, left)
            if found and count > left:
                continue
            found.append(_Span(text, text.computed, text.computed + count))
            left -= count
            if left <= 0 or len(found) == form.sequences:
                break
        for span in found:
            needed = -(-span.end // PAGE) - len(span.text.pages)
            span.text.pages += [self._free.pop() for _ in range(needed)]
        return found

    def _let_go(self, texts: Sequence[PackedText]) -> None:
        """Forget texts that are done; their pages are free again."""
        for text in texts:
            self._free += text.pages
            text.pages = []
            with suppress(ValueError):
                self._waiting.remove(text)

    def _compute(self, spans: Sequence[_Span]) -> None:
        """Make a call, and give each text its results."""
        counts = np.array([span.end - span.start for span in spans])
        begins = np.cumsum(counts) - counts
        rows: dict[str, np.ndarray] = {"first": begins, "last": begins + counts - 1, "all": np.arange(counts.sum())}
        rows["texts"] = np.arange(len(spans))
        parts = [Rows(span.text.pages, span.text.tokens[span.start : span.end], span.start, 0) for span in spans]
        given: dict[str, np.ndarray] = {
            **inputs_of(parts),
            "types": np.concatenate([span.text.types[span.start : span.end] for span in spans]),
            "lengths": np.array([span.end for span in spans]),
            "last": rows[self.form.wanted],
        }
        results = self._call({name: array for name, array in given.items() if name in self.form.inputs})
        sizes = counts if self.form.wanted == "all" else np.ones_like(counts)
        for span, begin, count in zip(spans, np.cumsum(sizes) - sizes, sizes, strict=True):
            if self.form.wanted == "last" and span.end < len(span.text.tokens):
                continue
            if self.form.wanted == "first" and span.start:
                continue
            span.text.rows.append(np.array(results[begin : begin + count]))

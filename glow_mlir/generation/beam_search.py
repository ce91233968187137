"""
Search for likely sequences: the most likely token each time, or beams.

Beams are those of transformers' `generate`: as many sequences are continued together as there are beams. One that ends
is kept with its score, the sum of its tokens' log-probabilities divided by a power of its length. The search is over
where none that goes on can become better; Freitag and Al-Onaizan (2017) compare such rules. Beams share pages of keys
and values, of which none is copied but the last one of a beam with several children.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.generation.token_sequence import TokenSequence, append
from glow_mlir.support.dataclass import dataclass

MAX_BEAMS = 8
"""The number of beams at most."""

Rule = Callable[[np.ndarray, Sequence[int]], None]
"""Changes scores [vocabulary] of the token behind those that a search has chosen, in place."""

MAX_PENALTY = 8.0
"""The largest power of a length, of either sign: beyond it, scores leave the range of f32."""

_NEVER = np.float32(-1e9)
"""The score of what cannot be chosen."""


@dataclass(frozen=True)
class SearchForm:
    """
    How a search goes on, and ends.

    - `beams`: the number of sequences that are continued together; one for the most likely token each time.
    - `max_tokens`: of a result; `ends`: tokens that end one, which it contains.
    - `length_penalty`: the power of the length that scores are divided by: above 0 for longer results.
    - `early_stopping`: `True` to stop with as many results as beams; `False` where none that goes on is better at its
      length; `"never"` where none can become better.

    Raises `OptionError` for values out of range.
    """

    max_tokens: int
    ends: frozenset[int]
    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False

    def __post_init__(self) -> None:
        check_beams(self.beams, MAX_BEAMS)
        if self.early_stopping not in (True, False, "never"):
            raise OptionError(f"early_stopping cannot be {self.early_stopping!r}", hint="True, False, or 'never'")
        penalty: Any = self.length_penalty
        is_number = isinstance(penalty, int | float | np.floating)
        if not is_number or not -MAX_PENALTY <= penalty <= MAX_PENALTY:
            hint = f"it is a number from -{MAX_PENALTY:g} to {MAX_PENALTY:g}"
            raise OptionError(f"length_penalty cannot be {penalty!r}", hint=hint)


@dataclass(frozen=True)
class Found:
    """A result: its tokens, and their score."""

    tokens: list[int]
    score: float


def check_beams(beams: Any, most: int) -> None:
    """Raise `OptionError` for a number of beams that is no whole number from 1 to `most`."""
    if not isinstance(beams, int | np.integer) or not 1 <= beams <= most:
        raise OptionError(f"num_beams cannot be {beams!r}", hint=f"it is from 1 to {most}, the beams of a Transcriber")


def search(sequence: TokenSequence, prompt: Sequence[int], form: SearchForm, rule: Rule) -> Found:
    """The best result behind a prompt, which is appended to a sequence; the search closes the sequence."""
    with sequence:
        logits = sequence.append(prompt)
        return _likeliest(sequence, logits, form, rule) if form.beams == 1 else _Beams(sequence, form, rule).run(logits)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The logarithms of probabilities along the last axis, in f32."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _likeliest(sequence: TokenSequence, logits: np.ndarray, form: SearchForm, rule: Rule) -> Found:
    """The most likely token each time."""
    tokens: list[int] = []
    score = 0.0
    while True:
        scores = log_softmax(logits[0])
        rule(scores, tokens)
        token = int(scores.argmax())
        tokens.append(token)
        score += float(scores[token])
        if token in form.ends or len(tokens) == form.max_tokens:
            return Found(tokens, score / len(tokens) ** form.length_penalty)
        logits = sequence.append([token])


@dataclass(frozen=True)
class _Beam:
    """A sequence that goes on, with the tokens that are chosen, and the sum of their log-probabilities."""

    sequence: TokenSequence
    tokens: list[int]
    score: np.float32


_Candidate = tuple[np.float32, _Beam, int]
"""A score, the beam, and the token behind it."""


@dataclass(frozen=True)
class _Ended:
    """A result, or nothing yet."""

    tokens: list[int]
    score: np.float32
    is_there: bool = True


class _Beams:
    """A search with beams."""

    def __init__(self, sequence: TokenSequence, form: SearchForm, rule: Rule) -> None:
        self._form, self._rule = form, rule
        self._running = [_Beam(sequence, [], np.float32(0))]
        self._ended = [_Ended([], _NEVER, is_there=False)] * form.beams
        self._can_improve = True

    def run(self, logits: np.ndarray) -> Found:
        """Search behind the logits [1, vocabulary] of the prompt."""
        try:
            while True:
                chosen = self._candidates(logits)
                length = len(self._running[0].tokens) + 1
                ends = [token in self._form.ends or length >= self._form.max_tokens for _, _, token in chosen]
                self._keep_ended(chosen, ends, length)
                going_on = [item for item, is_end in zip(chosen, ends, strict=True) if not is_end]
                if not going_on or self._is_over(going_on[0][0], length):
                    break
                self._fork(going_on[: self._form.beams])
                found = append({beam.sequence: beam.tokens[-1:] for beam in self._running})
                logits = np.concatenate([*found.values()])
        finally:
            for beam in self._running:
                beam.sequence.close()
        best = self._ended[0]
        return Found(best.tokens, float(best.score))

    def _candidates(self, logits: np.ndarray) -> list[_Candidate]:
        """The best continuations, by falling scores: so many that enough are left where some end."""
        scores = log_softmax(logits)
        for row, beam in zip(scores, self._running, strict=True):
            self._rule(row, beam.tokens)
            row += beam.score
        flat = scores.reshape(-1)
        count = min(max(2, 1 + len(self._form.ends)) * self._form.beams, flat.size)
        best = np.argpartition(flat, flat.size - count)[flat.size - count :]
        best = best[np.lexsort((best, -flat[best]))]
        size = scores.shape[1]
        return [(np.float32(flat[item]), self._running[item // size], item % size) for item in best.tolist()]

    def _keep_ended(self, chosen: list[_Candidate], ends: list[bool], length: int) -> None:
        """Keep the best results; only the first candidates, as many as beams, may become one."""
        form = self._form
        is_full = all(item.is_there for item in self._ended) and form.early_stopping is True
        if is_full or not self._can_improve:
            return
        divisor = np.float32(length**form.length_penalty)
        new = [
            _Ended([*beam.tokens, token], score / divisor)
            for (score, beam, token), is_end in zip(chosen[: form.beams], ends, strict=False)
            if is_end
        ]
        self._ended = sorted([*self._ended, *new], key=lambda item: -item.score)[: form.beams]

    def _is_over(self, best: np.float32, length: int) -> bool:
        """Whether no sequence that goes on is worth it."""
        form = self._form
        is_full = all(item.is_there for item in self._ended)
        is_patient = form.early_stopping == "never" and form.length_penalty > 0
        reach = np.float32((form.max_tokens if is_patient else length) ** form.length_penalty)
        self._can_improve = self._can_improve and (not is_full or bool(best / reach > self._ended[-1].score))
        return not self._can_improve or (is_full and form.early_stopping is True)

    def _fork(self, chosen: list[_Candidate]) -> None:
        """Go on with these candidates: the first child of a beam has its sequence, others have forks."""
        parents = {id(beam): beam for _, beam, _ in chosen}
        for beam in self._running:
            if id(beam) not in parents:
                beam.sequence.close()
        taken: set[int] = set()
        found: list[_Beam] = []
        for score, beam, token in chosen:
            own = beam.sequence if id(beam) not in taken else beam.sequence.fork()
            taken.add(id(beam))
            found.append(_Beam(own, [*beam.tokens, token], score))
        self._running = found

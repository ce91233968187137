"""Sequences of tokens with their keys and values, for loops that choose tokens themselves."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.generation.engine import Engine
from glow_mlir.generation.memory import Memory
from glow_mlir.generation.rows import Rows
from glow_mlir.generation.token_ids import token_ids


class TokenSequence:
    """
    Tokens whose keys and values are kept, beginning with none.

    ```python
    sequence = generator.sequence()
    logits = sequence.append(generator.tokens_of("Once upon a"))
    other = sequence.fork()
    ```

    Logits are those of a fresh computation to the bit, whatever was appended, truncated or forked before. One thread at
    a time uses a sequence; several sequences, and the generator, may be used beside each other.
    """

    def __init__(self, engine: Engine, vocabulary: int, adapter: int = 0, memory: Memory | None = None) -> None:
        self.adapter, self.memory = adapter, memory
        self.engine, self._vocabulary = engine, vocabulary
        self.numbers = np.empty(0, np.int64)
        self.pages: list[int] = []
        self.computed = 0
        """The number of tokens whose keys and values are in pages."""
        self._is_closed = False
        weakref.finalize(self, _leave, engine, self.pages)

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.numbers)

    @property
    def tokens(self) -> list[int]:
        """The ids of its tokens."""
        return self.numbers.tolist()

    def append(self, tokens: Iterable[int], *, wanted: int = 1) -> np.ndarray:
        """
        Append tokens; returns the logits [wanted, vocabulary] of f32 behind the last `wanted` of them.

        Raises `InputError` if there is no token, one is none of the vocabulary, or the context is too small, and
        `ExecutionError` if there are no pages left. The sequence is unchanged then.
        """
        return append({self: tokens}, wanted=wanted)[self]

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens; raises `InputError` if there are fewer."""
        if not 0 <= length <= len(self):
            raise InputError(f"a sequence of {len(self)} tokens cannot be truncated to {length}")
        self._check_open()
        with self.engine.turn():
            self.shorten(length)

    def fork(self) -> TokenSequence:
        """
        Another sequence with the same tokens.

        Both share full pages of keys and values, and the memory. The last page, if it is not full, is copied by the
        next call where the decoder does that; else its tokens are computed again with what is appended to the new one.
        """
        self._check_open()
        found = TokenSequence(self.engine, self._vocabulary, self.adapter, self.memory)
        size = self.engine.held.pool.tokens
        with self.engine.turn():
            full, rest = divmod(self.computed, size)
            found.pages += self.engine.held.share(self.pages[:full])
            copy = self.engine.copied(self.pages[full]) if rest else None
            found.pages += [] if copy is None else [copy]
        found.numbers, found.computed = self.numbers.copy(), full * size + (0 if copy is None else rest)
        return found

    def close(self) -> None:
        """Give keys and values back; a sequence that is forgotten does so as well."""
        self._is_closed = True
        _leave(self.engine, self.pages)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def checked(self, tokens: Iterable[int], wanted: int) -> list[int]:
        """Tokens that may be appended, with logits of so many wanted; raises the errors of `append`."""
        self._check_open()
        numbers, context = token_ids(tokens, self._vocabulary), self.engine.limits.context
        if not 1 <= wanted <= len(numbers):
            raise InputError(f"{len(numbers)} tokens are appended, and logits of {wanted} wanted")
        if len(self) + len(numbers) > context:
            reason = f"{len(self)} tokens and {len(numbers)} new ones are more than the context of {context}"
            raise InputError(reason, hint="truncate the sequence, or give a larger context")
        return numbers

    def extend(self, tokens: list[int]) -> None:
        """Append tokens that are not computed yet."""
        self.numbers = np.concatenate([self.numbers, np.array(tokens, np.int64)])

    def _check_open(self) -> None:
        if self._is_closed:
            raise InputError("the sequence is closed")
        if self.memory is not None and self.memory.is_closed:
            raise InputError("what the sequence attends to is closed")

    def shorten(self, length: int) -> None:
        """Forget tokens, in a turn."""
        held = self.engine.held
        size = held.pool.tokens
        self.numbers = self.numbers[:length]
        computed = min(self.computed, length)
        full, rest = divmod(computed, size)
        if rest and held.pool.is_shared(self.pages[full]):
            # Tokens that follow would be written to a page that another sequence has.
            computed, rest = full * size, 0
        held.leave(self.pages[full + bool(rest) :][::-1])
        del self.pages[full + bool(rest) :]
        self.computed = computed


def append(tokens: Mapping[TokenSequence, Iterable[int]], *, wanted: int = 1) -> dict[TokenSequence, np.ndarray]:
    """
    Append tokens to several sequences of one generator, of any lengths, in as few calls as possible.

    Returns the logits [wanted, vocabulary] of each, and raises the errors of `TokenSequence.append`; no sequence is
    changed then.
    """
    new = {sequence: sequence.checked(given, wanted) for sequence, given in tokens.items()}
    if not new:
        return {}
    engine = next(iter(new)).engine
    if any(sequence.engine is not engine for sequence in new):
        raise InputError("the sequences are those of several generators")
    before = {sequence: len(sequence) for sequence in new}
    logits: dict[TokenSequence, list[np.ndarray]] = {sequence: [] for sequence in new}
    with engine.turn():
        try:
            for sequence, numbers in new.items():
                sequence.extend(numbers)
            while rows := _rows(engine, new, wanted):
                found = engine.call([*rows.values()])
                for sequence, own in rows.items():
                    sequence.computed = own.end
                    logits[sequence].append(found[: own.wanted])
                    found = found[own.wanted :]
        except BaseException:
            for sequence, length in before.items():
                sequence.shorten(length)
            raise
    return {sequence: np.concatenate(parts) for sequence, parts in logits.items()}


def _rows(engine: Engine, sequences: Iterable[TokenSequence], wanted: int) -> dict[TokenSequence, Rows]:
    """The rows of the next call: of tokens that are not computed, in the order of the sequences."""
    limits, found = engine.limits, dict[TokenSequence, Rows]()
    rows, outputs = limits.rows, limits.outputs
    new: Memory | None = None
    for sequence in sequences:
        start, first_wanted = sequence.computed, len(sequence) - wanted
        end = min(start + rows, len(sequence), max(start, first_wanted) + outputs)
        if end == start or len(found) == limits.sequences:
            continue
        memory = sequence.memory
        if memory is not None and not memory.is_written:
            if new is not None and new is not memory:
                continue  # A call takes the rows of one.
            new = memory
        own = max(0, end - max(start, first_wanted))
        found[sequence] = Rows(sequence.pages, sequence.numbers[start:end], start, own, sequence.adapter, memory)
        rows, outputs = rows - (end - start), outputs - own
    return found


def _leave(engine: Engine, pages: list[int]) -> None:
    """Give pages back, the last ones first: those are forgotten before the ones that they follow."""
    engine.held.leave(pages[::-1])
    pages.clear()

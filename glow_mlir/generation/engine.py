"""
The engine: computes the tokens of many requests together.

A step is one call of the decoder: the last token of each sequence that is being continued, and a chunk of a prompt that
is not computed yet (continuous batching, Yu et al. 2022; chunked prefill, Agrawal et al. 2023). Rows of a call do not
influence each other: a request gets the same logits, to the bit, whatever runs beside it and however its prompt is
cut.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Condition, get_ident
from typing import Protocol

import numpy as np

from glow_mlir.errors import ExecutionError, InputError, QueueFullError
from glow_mlir.generation.pages import HeldPages, PagePool, digest_of, first_digest
from glow_mlir.generation.request import Request
from glow_mlir.generation.rows import Rows, inputs_of, memory_inputs_of
from glow_mlir.generation.sampler import Choice, RowRequest
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks

GAP = 0.12
"""The seconds that a chunk of a prompt may take while other sequences are continued."""

MIN_CHUNK = 16
"""The number of tokens of a chunk at least."""

IDLE = 0.5
"""The seconds after which an idle engine looks whether its work is over."""


class Decoder(Protocol):
    """Computes the logits of rows; keys and values are its state."""

    def logits(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Logits [outputs, vocabulary] of f32 for the inputs of `DecoderProgram`."""
        ...


class Chooser(Protocol):
    """Chooses tokens, as `Sampler` does."""

    def choose(self, logits: np.ndarray, requests: list[RowRequest]) -> list[Choice]:
        """One choice for each row of logits."""
        ...


@dataclass(frozen=True)
class EngineLimits:
    """
    Bounds of the engine.

    `rows`: tokens in a call; `sequences`: those that are continued together; `outputs`: rows of a call whose logits are
    wanted; `context`: tokens of a sequence; `queue`: requests that wait; `adapters`: adapters of the decoder, whose
    numbers calls have as an input if there are any; `memory`: the width of the rows of an encoder to which sequences
    attend, or 0 if they attend to none. Such a decoder copies up to `sequences` pages in a call.
    """

    rows: int
    sequences: int
    outputs: int
    context: int
    queue: int = 1024
    adapters: int = 0
    memory: int = 0


@dataclass(frozen=True)
class Span:
    """Rows of a call for a request."""

    request: Request
    rows: Rows


class EngineStatistics:
    """Counters since the engine was made."""

    def __init__(self) -> None:
        self.steps = 0
        self.prompt_tokens = 0
        """Tokens of prompts that were computed."""
        self.reused_tokens = 0
        """Tokens of prompts whose keys and values were there."""
        self.chosen_tokens = 0
        self.drafted_tokens = 0
        self.accepted_tokens = 0


class Engine:
    """
    Schedules requests on one decoder; safe to use from several threads.

    Whoever waits for a request computes steps, one thread at a time. A step advances all running requests.
    """

    def __init__(
        self,
        decoder: Decoder,
        chooser: Chooser,
        pool: PagePool,
        limits: EngineLimits,
        memories: PagePool | None = None,
    ) -> None:
        self._decoder, self._chooser, self._pool, self.limits = decoder, chooser, pool, limits
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._reserved = 0
        """The number of pages that running requests may need in the end."""
        self._row_seconds = 0.0
        """The time of a row of a prompt, averaged over the last chunks."""
        self._stepping: int | None = None
        """The thread that computes a step, or has a turn of its own; `None` if none does."""
        self._turns_wanted = 0
        """The number of threads that wait for a turn of their own, in front of all steps."""
        self.held = HeldPages(pool)
        self.memories = None if memories is None else HeldPages(memories)
        """The pages of an encoder's rows, where sequences attend to these."""
        self._copies: dict[int, int] = {}
        """Pages that the next call copies: target → source."""
        self.statistics = EngineStatistics()
        self._turn = Condition()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take a new lock in a child process; start over without requests if another thread computed, which is gone."""
        self._turn = Condition()
        if self._stepping in (None, get_ident()):
            return
        for request in (*self._running, *self._waiting):
            request.reason = request.reason or "cancelled"
            request.pages = []
        self._running, self._waiting, self._reserved, self._stepping, self._turns_wanted = [], deque(), 0, None, 0
        self.held.reset()

    @property
    def running(self) -> int:
        """The number of requests that are being computed."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def submit(self, request: Request) -> None:
        """
        Queue a request.

        Raises `InputError` if the prompt is empty or the sequence may get too long, `QueueFullError` if too many wait.
        """
        limits = self.limits
        if not request.length:
            raise InputError("the prompt is empty", hint="it has at least one token")
        if request.most > limits.context:
            left = limits.context - request.length
            hint = f"max_tokens can be {left} at most" if left > 0 else "give a larger context, or a shorter prompt"
            reason = f"{request.length} tokens of the prompt and {request.most - request.length} new ones"
            raise InputError(f"{reason} are more than the context of {limits.context}", hint=hint)
        if not request.left:
            request.reason = "length"
            return
        with self._turn:
            if len(self._waiting) >= limits.queue:
                raise QueueFullError(f"{len(self._waiting)} requests wait, as many as may")
            self._waiting.append(request)
            self._turn.notify_all()

    def cancel(self, request: Request) -> None:
        """End a request, at the latest behind the step that is being computed; one that is finished stays so."""
        with self._turn:
            request.is_cancelled = True
            if self._stepping is None:
                self._sweep()

    def cancel_all(self) -> None:
        """End all requests, as `cancel` does."""
        with self._turn:
            for request in (*self._running, *self._waiting):
                request.is_cancelled = True
            if self._stepping is None:
                self._sweep()

    def drive(self, request: Request) -> Iterator[int]:
        """Compute steps until a request is finished; gives the number of its tokens after each. Raises its error."""
        while request.reason is None:
            with self._turn:
                is_own = self._stepping is None and not self._turns_wanted
                if is_own:
                    self._stepping = get_ident()
                else:
                    self._turn.wait()
            if is_own:
                self._step()
            yield request.length
        if request.error is not None:
            raise request.error

    def work(self, is_over: Callable[[], bool]) -> None:
        """Compute steps for whatever is submitted until `is_over`, which is asked between steps, busy or idle."""
        while not is_over():
            with self._turn:
                is_busy = self._stepping is not None or self._turns_wanted
                if is_busy or not (self._running or self._waiting):
                    self._turn.wait(IDLE)
                    continue
                self._stepping = get_ident()
            self._step()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for the end of the step that is being computed; no other begins inside the `with` statement."""
        with self._turn:
            self._turns_wanted += 1
            try:
                self._turn.wait_for(lambda: self._stepping is None)
            except BaseException:
                # Whoever is interrupted here must not keep the others waiting.
                self._turn.notify_all()
                raise
            finally:
                self._turns_wanted -= 1
            self._stepping = get_ident()
        try:
            self.held.collect()
            if self.memories is not None:
                self.memories.collect()
            yield
        finally:
            self._end_turn()

    def call(self, rows: Sequence[Rows]) -> np.ndarray:
        """
        In a turn, the logits [wanted, vocabulary] of rows of sequences that are no requests, which hold their pages.

        Raises `ExecutionError` if there are not enough pages beside those that running requests may need.
        """
        wanted = sum(each.wanted for each in rows)
        new = sum(max(0, self._pool.needed(each.end) - len(each.pages)) for each in rows)
        if self._reserved + self.held.count + new > self._pool.count:
            hint = "close other sequences, or give a larger parallel"
            raise ExecutionError("all pages of keys and values are in use", hint=hint)
        for each in rows:
            self.held.grow(each.pages, each.end)
        return self._computed(rows)[:wanted]

    def copied(self, page: int) -> int | None:
        """
        In a turn, a new page that the next call gives the content of another, before it writes any.

        `None` if the decoder copies none, or not so many, or no page is left.
        """
        is_possible = self.limits.memory and len(self._copies) < self.limits.sequences
        if not is_possible or self._reserved + self.held.count + 1 > self._pool.count:
            return None
        found: list[int] = []
        self.held.grow(found, 1)
        self._copies[found[0]] = self._copies.get(page, page)
        return found[0]

    def _computed(self, rows: Sequence[Rows]) -> np.ndarray:
        """The logits [outputs, vocabulary] of rows."""
        logits = self._decoder.logits(self._inputs(rows))
        self._copies.clear()
        for each in rows:
            if each.memory is not None:
                each.memory.rows = None
        return logits

    def _end_turn(self) -> None:
        with self._turn:
            self._stepping = None
            self._sweep()
            self._turn.notify_all()

    def _step(self) -> None:
        """Compute one call for all running requests, in the turn of the caller, which ends with it."""
        try:
            self.held.collect()
            with self._turn:
                self._admit()
            spans = self._spans()
            if spans:
                self._compute(spans)
        except Exception as error:
            # Whatever fails here must not end the thread that computes for all.
            for request in self._running:
                request.fail(error)
                request.listener()
        finally:
            self._end_turn()

    def _compute(self, spans: list[Span]) -> None:
        """Compute a call; an error of the call ends the requests that take part, one of a request only itself."""
        try:
            logits = self._logits(spans)
        except Exception as error:
            for span in spans:
                span.request.fail(error)
        else:
            self._choose(spans, logits)
        for span in spans:
            span.request.listener()

    def _sweep(self) -> None:
        """Let the requests go that are finished or cancelled."""
        for request in [*self._running, *self._waiting]:
            if request.reason is None and request.is_cancelled:
                request.reason = "cancelled"
                request.listener()
            if request.reason is not None:
                self._leave(request)

    # ---- admission

    def _admit(self) -> None:
        """Let waiting requests run, in order, while there are pages for all of their tokens."""
        limits = self.limits
        most = min(limits.sequences, limits.outputs, limits.rows)
        while self._waiting and len(self._running) < most:
            request = self._waiting[0]
            needed = self._pool.needed(request.most)
            if self._running and self._reserved + self.held.count + needed > self._pool.count:
                return
            # The last token is computed in any case, since its logits are wanted.
            self._describe(request, request.length - 1)
            if any(self._is_computing(other, request) for other in self._running):
                return
            self._waiting.popleft()
            self._reserved += needed
            self._running.append(request)
            self._share(request)

    def _describe(self, request: Request, length: int) -> None:
        """Compute the digests of the full pages of the first `length` tokens, each once."""
        size = self._pool.tokens
        for page in range(len(request.digests), length // size):
            before = request.digests[-1] if request.digests else first_digest(request.salt, request.adapter)
            request.digests.append(digest_of(before, request.tokens[page * size : (page + 1) * size]))

    def _is_computing(self, other: Request, request: Request) -> bool:
        """Whether a running request still computes pages that another one can share, which waits for them."""
        equal = 0
        for one, two in zip(other.digests, request.digests, strict=False):
            if one != two:
                break
            equal += 1
        return other.reason is None and other.computed < equal * self._pool.tokens

    def _share(self, request: Request) -> None:
        """Begin with the pages that an earlier sequence with the same first tokens has computed."""
        request.pages = self._pool.shared(request.digests)
        request.computed = len(request.pages) * self._pool.tokens
        if not request.dropped:
            request.reused = request.computed
            self.statistics.reused_tokens += request.reused

    def _shift(self, request: Request) -> None:
        """Let a request whose context is full forget some tokens; the others are computed like a new prompt."""
        self._release(request)
        request.forget()
        self._describe(request, request.length - 1)
        self._share(request)

    def _leave(self, request: Request) -> None:
        """Take a request out of the queue, or give its pages back."""
        if request in self._waiting:
            self._waiting.remove(request)
        if request not in self._running:
            return
        self._running.remove(request)
        self._reserved -= self._pool.needed(request.most)
        self._release(request)

    def _release(self, request: Request) -> None:
        # The last pages first: those are forgotten before the ones that they follow.
        for page in reversed(request.pages):
            self._pool.release(page)
        request.pages = []

    # ---- a call

    def _spans(self) -> list[Span]:
        """The rows of the next call: continued sequences first, then chunks of prompts in the order of arrival."""
        limits, spans = self.limits, list[Span]()
        rows, outputs = limits.rows, limits.outputs
        decoding = [request for request in self._running if request.is_decoding]
        for number, request in enumerate(decoding):
            # Each of the others gets one row at least.
            limit = min(rows, outputs) - (len(decoding) - number - 1)
            spans.append(self._continued(request, limit))
            rows, outputs = rows - len(spans[-1].rows.tokens), outputs - spans[-1].rows.wanted
        if decoding:
            rows = min(rows, self._chunk())
        for request in self._running:
            count = min(rows, request.length - request.computed)
            if request.is_decoding or not count:
                continue
            is_last = request.computed + count == request.length
            if is_last and not outputs:
                continue
            tokens = request.tokens[request.computed : request.computed + count]
            spans.append(Span(request, Rows(request.pages, tokens, request.computed, int(is_last), request.adapter)))
            rows, outputs = rows - count, outputs - is_last
        return spans

    def _chunk(self) -> int:
        """The number of tokens of a prompt that may be computed beside sequences that are continued."""
        if not self._row_seconds:
            return MIN_CHUNK
        return max(MIN_CHUNK, int(GAP / self._row_seconds))

    def _continued(self, request: Request, limit: int) -> Span:
        """The last token of a sequence, and a draft of those that may follow, in `limit` rows."""
        draft = request.tokens[:0]
        if request.mask is None:
            draft = request.lookup.draft(request.tokens, min(limit, request.left) - 1)
        tokens = np.concatenate([request.tokens[-1:], draft])
        return Span(request, Rows(request.pages, tokens, request.length - 1, len(tokens), request.adapter))

    def _logits(self, spans: list[Span]) -> np.ndarray:
        """Compute the rows: the logits that are wanted [outputs, vocabulary]."""
        begin = time.perf_counter()
        logits = self._computed([span.rows for span in spans])
        prompt_rows = sum(len(span.rows.tokens) for span in spans if span.request.length == span.request.prompt_length)
        if prompt_rows >= MIN_CHUNK:
            taken = (time.perf_counter() - begin) / prompt_rows
            self._row_seconds = taken if not self._row_seconds else (self._row_seconds + taken) / 2
        self.statistics.steps += 1
        self.statistics.prompt_tokens += prompt_rows
        return logits

    def _choose(self, spans: list[Span], logits: np.ndarray) -> None:
        """Choose the tokens that are wanted; an error of a mask, a sampler or a sink ends its request alone."""
        first = 0
        for span in spans:
            own = logits[first : first + span.rows.wanted]
            first += span.rows.wanted
            try:
                rows = [self._row(span, number) for number in range(span.rows.wanted)]
                choices = self._chooser.choose(own, rows) if rows else []
                span.request.computed = span.rows.end
                self._take(span, choices)
                self._publish(span)
                if span.request.is_full:
                    self._shift(span.request)
            except Exception as error:
                span.request.fail(error)
            except BaseException:
                # How far it came is unknown; the other requests of the call are as before it.
                span.request.fail(ExecutionError("the choice of a token was interrupted"))
                raise

    def _inputs(self, spans: Sequence[Rows]) -> dict[str, np.ndarray]:
        """The inputs of the call; pages are taken where rows are written to new ones."""
        wanted: list[int] = []
        first = 0
        for span in spans:
            self._pool.grow(span.pages, span.end)
            first += len(span.tokens)
            wanted += range(first - span.wanted, first)
        found = {**inputs_of(spans), "last": np.array(wanted or [0], np.int64)}
        if self.limits.adapters:
            found["adapters"] = np.array([span.adapter for span in spans])[found["sequences"]]
        if self.limits.memory:
            found["memory"] = np.zeros((0, self.limits.memory), np.float32)
            found |= memory_inputs_of([span.memory for span in spans if span.memory is not None])
            found["copied"] = np.array([*self._copies.values()], np.int64)
            found["copies"] = np.array([*self._copies], np.int64)
        return found

    def _row(self, span: Span, number: int) -> RowRequest:
        """What a row of logits is asked for: the token behind the first `number + 1` ones of a span's wanted ones."""
        request, length = span.request, span.rows.end - span.rows.wanted + number + 1
        # Only tokens of a draft are not yet tokens of the request.
        drafted = span.rows.tokens[1 : 1 + length - request.length]
        history = np.concatenate([request.tokens[:length], drafted])
        mask = None if request.mask is None else request.mask(request.chosen)
        position = request.chosen_count + length - request.length
        return RowRequest(request.sampling, history, request.output_start, position, mask)

    def _take(self, span: Span, choices: list[Choice]) -> None:
        """Append chosen tokens: those behind a draft only as long as it is what was chosen."""
        request, taken = span.request, 0
        for number, choice in enumerate(choices):
            request.append(choice)
            self.statistics.chosen_tokens += 1
            if request.reason is not None or number == len(choices) - 1:
                break
            if choice.token != span.rows.tokens[len(span.rows.tokens) - span.rows.wanted + number + 1]:
                break
            taken += 1
        drafted = len(choices) - 1 if choices else 0
        if drafted:
            request.lookup.learn(drafted, taken)
            self.statistics.drafted_tokens += drafted
            self.statistics.accepted_tokens += taken
            # Keys of tokens that were not chosen are written again.
            request.computed = min(request.computed, request.length - 1)

    def _publish(self, span: Span) -> None:
        """Make the pages that this span has filled known by their tokens."""
        request, size = span.request, self._pool.tokens
        self._describe(request, request.computed)
        for page in range(span.rows.start // size, request.computed // size):
            self._pool.publish(request.pages[page], request.digests[page])

"""The sampler: chooses tokens for rows of logits, by compiled programs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, log
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.errors import ExecutionError, InputError
from glow_mlir.generation.program import Program, Shaped
from glow_mlir.generation.sampling import Sampling, uniform
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks

COUNTS = (64, 256, 2048)
"""The numbers of candidates that there are programs for, besides all tokens."""

HISTORIES = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
"""The numbers of tokens before that there are programs for."""

BIASES = 1 << 12
"""The number of biases that there are programs for; beyond it, for as many as there are tokens."""

MAX_INVERSE = 1e300
"""One divided by any lower temperature: still a number."""

_NOT_ENOUGH = -1


@dataclass(frozen=True)
class RowRequest:
    """
    How the token behind a row's tokens is chosen.

    - `history`: the ids of the tokens before it [count], of prompt and output; i64.
    - `output_start`: the number of tokens of the prompt.
    - `position`: the number of the draw, on which the random number depends besides the seed: the number of tokens of
      the output so far.
    - `mask`: the allowed tokens: `bool` or `uint8` [vocabulary], nonzero where a token is allowed, or bits from the
      lowest on as `int32` or `uint32` [⌈vocabulary / 32⌉]; `None` if all are.
    """

    sampling: Sampling
    history: np.ndarray
    output_start: int
    position: int
    mask: np.ndarray | None = None


@dataclass(frozen=True)
class Choice:
    """
    A chosen token.

    `logprob` is its logarithmic probability by the model's logits, before any option of the request, and `alternatives`
    are the most likely tokens with theirs, the first one first. Both are there only if `Sampling.logprobs` asks for
    them.
    """

    token: int
    logprob: float | None = None
    alternatives: list[tuple[int, float]] | None = None


class Sampler:
    """
    Chooses tokens from logits of a vocabulary.

    Each row is computed by itself, so a request gets the same tokens whatever is beside it. Programs are compiled when
    they are needed first; `keywords` are those of their sessions, such as `target`. Several threads may call it at
    once.
    """

    def __init__(self, vocabulary: int, **keywords: Any) -> None:
        self.vocabulary = vocabulary
        self._keywords = {"threads": 1, **keywords}
        self._runs: dict[tuple[object, ...], Run] = {}
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take a new lock in a child process, because another thread of the parent may hold the old one."""
        self._lock = Lock()

    def prepare(self) -> Sequence[Callable[[], object]]:
        """Steps that compile the programs of most requests, each by itself; `choose` compiles what they have not."""
        some = min(COUNTS[0], self.vocabulary)
        common = [("greedy",), ("drawn",), ("candidates", some, 0, 0), ("total",), ("candidates", some, 0, 1)]
        return [partial(self._run, str(name), *numbers) for name, *numbers in common]

    def choose(self, logits: np.ndarray, requests: Sequence[RowRequest]) -> list[Choice]:
        """
        Choose a token for each row of `logits` [rows, vocabulary], f32.

        Raises `InputError` for arrays of another shape or type and for ids outside of the vocabulary, and
        `ExecutionError` for logits that are NaN, or where no token is allowed.
        """
        if logits.shape != (len(requests), self.vocabulary) or logits.dtype != np.float32:
            given = f"{logits.dtype.name}{list(logits.shape)}"
            raise InputError(f"logits must be float32[{len(requests)}, {self.vocabulary}], not {given}")
        return [self._choice(row, request) for row, request in zip(logits, requests, strict=True)]

    def _choice(self, logits: np.ndarray, request: RowRequest) -> Choice:
        """The choice for one row."""
        wanted = request.sampling.logprobs
        token = self._token(self._adjusted(logits, request), request)
        return Choice(token) if wanted is None else self._with_logprobs(logits, token, min(wanted, self.vocabulary))

    # ---- tokens

    def _token(self, logits: np.ndarray, request: RowRequest) -> int:
        """The token by logits that are adjusted; raises `ExecutionError` where there is none."""
        sampling, words = request.sampling, self.vocabulary
        if sampling.is_greedy:
            return _checked(self._run("greedy")({"logits": logits})["token"])
        options = _options(sampling, request.position)
        given = {"logits": logits, "options": options}
        is_typical, is_whole = sampling.typical_p < 1, not 0 < sampling.top_k < words
        if is_whole and not is_typical:
            if sampling.top_p == 1:
                return _checked(self._run("drawn")(given)["token"])
            options[6] = self._run("total")(given)["total"]
        for count in (*(count for count in COUNTS if count < words), words):
            if is_whole or count >= sampling.top_k:
                token = _checked(self._run("candidates", count, int(is_typical), int(is_whole))(given)["token"])
                if token != _NOT_ENOUGH:
                    return token
        raise AssertionError("all tokens are enough")

    # ---- logits

    def _adjusted(self, logits: np.ndarray, request: RowRequest) -> np.ndarray:
        """The logits with bias, penalties and mask."""
        sampling, words = request.sampling, self.vocabulary
        given: dict[str, np.ndarray] = {}
        biases = history = 0
        if sampling.logit_bias:
            given["bias_ids"] = ids = np.array(list(sampling.logit_bias), np.int64)
            given["bias"] = np.array(list(sampling.logit_bias.values()), np.float32)
            _check_ids("logit_bias", ids, words)
            biases = BIASES if len(ids) <= BIASES else words
        if sampling.has_penalties and len(request.history):
            given["history"] = np.asarray(request.history, np.int64)
            _check_ids("the history", given["history"], words)
            penalties = sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty
            given["penalties"] = np.array(penalties, np.float64)
            given["times"] = _times(given["history"], request.output_start, words)
            history = next((size for size in HISTORIES if len(request.history) <= size), 0)
            if not history:
                raise InputError(f"the history has {len(request.history)} tokens, more than {HISTORIES[-1]}")
        if request.mask is not None:
            given["mask"] = _mask_bytes(request.mask, words)
        if not given:
            return logits
        return self._run("adjusted", biases, history, int("mask" in given))({"logits": logits, **given})["logits"]

    def _with_logprobs(self, logits: np.ndarray, token: int, wanted: int) -> Choice:
        """The choice of a token, with its logarithmic probability and those of the `wanted` most likely ones."""
        count = min(1 << (wanted - 1).bit_length(), self.vocabulary) if wanted else 0
        found = self._run("logprobs", count)({"logits": logits, "token": np.array(token, np.int64)})
        if not wanted:
            return Choice(token, float(found["own"]), [])
        listed = zip(found["ids"][:wanted].tolist(), found["logprobs"][:wanted].tolist(), strict=True)
        return Choice(token, float(found["own"]), list(listed))

    # ---- programs

    def _run(self, name: str, *numbers: int) -> Run:
        """The function that runs a program, compiled if it is not yet."""
        run = self._runs.get((name, *numbers))
        if run is None:
            with self._lock:
                run = self._runs.get((name, *numbers)) or self._compiled(name, *numbers)
                self._runs[name, *numbers] = run
        return run

    def _compiled(self, name: str, *numbers: int) -> Run:
        program, dimensions = _program(name, numbers, self.vocabulary)
        return ModelSession.of(program, dimensions=dimensions, **self._keywords).first.run


Run = Callable[[Mapping[str, Any]], dict[str, np.ndarray]]


def _program(name: str, numbers: tuple[int, ...], words: int) -> tuple[Program, dict[str, tuple[int, int]]]:
    """A program of `sampling_programs`, and the bounds of its free dimensions."""
    module = "glow_mlir.generation.sampling_programs"
    options: Shaped = {"options": ("float64", (7,))}
    row: Shaped = {"logits": ("float32", (words,))}
    token: Shaped = {"token": ("int64", ())}
    dimensions: dict[str, tuple[int, int]] = {}
    given: dict[str, tuple[str, tuple[int | str, ...]]] = {**row, **options}
    outputs: Shaped = token
    if name == "greedy":
        given = {**row}
    elif name == "total":
        outputs = {"total": ("float64", ())}
    elif name == "logprobs":
        given, outputs = {**row, **token}, {"own": ("float64", ())}
        if numbers[0]:
            outputs = {**outputs, "ids": ("int64", numbers), "logprobs": ("float64", numbers)}
    elif name == "adjusted":
        biases, history, is_masked = numbers
        given, outputs, numbers = {**row}, row, ()
        if biases:
            given |= {"bias_ids": ("int64", ("biases",)), "bias": ("float32", ("biases",))}
            dimensions["biases"] = 1, biases
        if history:
            given |= {
                "history": ("int64", ("history",)),
                "times": ("int64", ("history",)),
                "penalties": ("float64", (3,)),
            }
            dimensions["history"] = 1, history
        if is_masked:
            given["mask"] = "uint8", (words,)
    return Program(module, name, given, outputs, numbers), dimensions


def _options(sampling: Sampling, position: int) -> np.ndarray:
    """The input `options` of programs."""
    number = secrets.randbits(53) * 2.0**-53 if sampling.seed is None else uniform(sampling.seed, position)
    numbers = (
        min(1 / sampling.temperature, MAX_INVERSE),
        sampling.top_k or inf,
        sampling.top_p if sampling.top_p < 1 else inf,
        log(sampling.min_p) if sampling.min_p else -inf,
        sampling.typical_p,
        number,
        0.0,
    )
    return np.array(numbers, np.float64)


def _checked(token: np.ndarray) -> int:
    """A token as a number; raises `ExecutionError` where there is none."""
    found = int(token)
    if found < _NOT_ENOUGH:
        raise ExecutionError("no token can be chosen: all logits are -inf, or one is NaN or inf")
    return found


def _times(history: np.ndarray, start: int, words: int) -> np.ndarray:
    """
    How many times each token of the history is among those from `start` on [history].

    Occurrences are counted at the last one. Its offset is noted at the token in memory that need not be cleared, since
    only what is written is read: clearing counters of all tokens would take longer than all else.
    """
    noted = np.empty(words, np.int32)
    noted[history] = np.arange(len(history), dtype=np.int32)
    last = noted[history]
    return np.bincount(last[start:], minlength=len(history))[last]


def _check_ids(name: str, ids: np.ndarray, words: int) -> None:
    """Raise `InputError` for ids outside of the vocabulary."""
    least, most = int(ids.min()), int(ids.max())
    if least < 0 or most >= words:
        raise InputError(f"{name} has the token {least if least < 0 else most}, of a vocabulary of {words}")


def _mask_bytes(mask: np.ndarray, words: int) -> np.ndarray:
    """A mask as bytes [words]; raises `InputError` for another form."""
    if mask.dtype.name in ("bool", "uint8") and mask.shape == (words,):
        return mask.view(np.uint8)
    if mask.dtype.name in ("int32", "uint32") and mask.shape == (-(-words // 32),):
        return np.unpackbits(np.ascontiguousarray(mask, "<u4").view(np.uint8), bitorder="little", count=words)
    given = f"{mask.dtype.name}{list(mask.shape)}"
    raise InputError(f"a mask must be bool or uint8[{words}] or int32[{-(-words // 32)}], not {given}")

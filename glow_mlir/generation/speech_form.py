"""What a speech model's files say of its control tokens, and the prompts and rules that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, ModelError
from glow_mlir.frontends.checkpoints.folder import CONFIG, read_json
from glow_mlir.generation.beam_search import Rule
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping, is_sequence

GENERATION = "generation_config.json"


@dataclass(frozen=True)
class SpeechForm:
    """
    The control tokens of a speech model.

    - `start`: the first token of a prompt; `ends`: those that end a text.
    - `no_timestamps`: says that no times are wanted; `None` if the model has none. `first_time`: the token for the time
      0; those behind it are for later times, in steps of two hundredths of a second.
    - `languages`, `tasks`: name → token; empty for models of one language.
    - `forced`: the prompt behind `start` where files have neither; 0 stands for the language.
    - `suppressed`: tokens that are never chosen, `suppressed_first`: not as the first one.
    - `max_first_time`: the last time, in steps, at which a text may begin; `None` for any.
    - `max_tokens`: of a text.
    """

    start: int
    ends: frozenset[int]
    languages: Mapping[str, int]
    tasks: Mapping[str, int]
    forced: tuple[int, ...]
    no_timestamps: int | None
    first_time: int
    suppressed: tuple[int, ...]
    suppressed_first: tuple[int, ...]
    max_first_time: int | None
    max_tokens: int

    @staticmethod
    def of_folder(folder: Path, vocabulary: int, context: int) -> SpeechForm:
        """Read `generation_config.json`, or `config.json`; raises `ModelError` for entries that are no tokens."""
        path = folder / GENERATION if (folder / GENERATION).is_file() else folder / CONFIG
        return _Entries(path, read_json(path), vocabulary).form(context)

    def prompt(self, language: int | None, task: str | None, has_times: bool) -> list[int]:
        """The tokens in front of a text; raises `InputError` for a task that the model does not have."""
        found = [self.start, *(token if token else language or 0 for token in self.forced)]
        if language is not None:
            found[1:2] = [language]
        if self.tasks:
            name = task or "transcribe"
            if name not in self.tasks:
                raise InputError(f"the task cannot be '{name}'", hint=f"tasks are {', '.join(self.tasks)}")
            found = [token for token in found if token not in self.tasks.values()]
            found.append(self.tasks[name])
        elif task not in (None, "transcribe"):
            raise InputError(f"the model has no task '{task}'", hint="it has one language")
        found = [token for token in found if token != self.no_timestamps]
        if self.no_timestamps is not None and not has_times:
            found.append(self.no_timestamps)
        return found

    def language(self, name: str) -> int:
        """The token of a language by its code, such as `en`; raises `InputError` if the model does not have it."""
        token = self.languages.get(str(name).lower())
        if token is None:
            known = ", ".join(self.languages)
            hint = f"languages are {known}" if known else "it has one language: leave it out"
            raise InputError(f"the language cannot be '{name}'", hint=hint)
        return token

    def rule(self, has_times: bool) -> Rule:
        """What a search must not choose, or chooses only as a pair of times around a text."""

        def change(scores: np.ndarray, tokens: Sequence[int]) -> None:
            scores[[*self.suppressed, *(() if tokens else self.suppressed_first)]] = -np.inf
            if has_times:
                self._time(scores, tokens)

        return change

    def _time(self, scores: np.ndarray, tokens: Sequence[int]) -> None:
        """Times are in pairs, but in front of the end; they never fall; and one is taken where all are likelier."""
        first, end = self.first_time, min(self.ends)
        scores[first - 1] = -np.inf
        is_time = [token >= first for token in tokens[-2:]]
        was_time = bool(is_time) and is_time[-1]
        was_pair = len(is_time) < 2 or is_time[0]
        if was_time and was_pair:
            scores[first:] = -np.inf
        elif was_time:
            scores[:end] = -np.inf
        times = [token for token in tokens if token >= first]
        if times:
            scores[first : times[-1] + (0 if was_time and not was_pair else 1)] = -np.inf
        if not tokens:
            scores[:first] = -np.inf
            if self.max_first_time is not None:
                scores[first + self.max_first_time + 1 :] = -np.inf
        peak = scores[first:].max()
        if np.isfinite(peak) and peak + np.log(np.exp(scores[first:] - peak).sum()) > scores[:first].max():
            scores[:first] = -np.inf


class _Entries:
    """The entries of a file about control tokens; errors name file and entry."""

    def __init__(self, path: Path, entries: Mapping[str, Any], vocabulary: int) -> None:
        self._path, self._entries, self._vocabulary = path, entries, vocabulary

    def form(self, context: int) -> SpeechForm:
        """What they say."""
        start = self._token("decoder_start_token_id")
        if start is None:
            raise self._error("decoder_start_token_id", "the entry is missing")
        ends = frozenset(self._tokens("eos_token_id"))
        if not ends:
            raise self._error("eos_token_id", "the entry is missing")
        most = self._entries.get("max_length", context)
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise self._error("max_length", f"the entry must be a number from 1 on, not {most!r}")
        no_times = self._token("no_timestamps_token_id")
        return SpeechForm(
            start=start,
            ends=ends,
            languages={name.strip("<|>"): token for name, token in self._named("lang_to_id").items()},
            tasks=self._named("task_to_id"),
            forced=self._forced(),
            no_timestamps=no_times,
            first_time=self._vocabulary if no_times is None else no_times + 1,
            suppressed=self._tokens("suppress_tokens"),
            suppressed_first=self._tokens("begin_suppress_tokens"),
            max_first_time=self._token("max_initial_timestamp_index"),
            max_tokens=min(most, context),
        )

    def _error(self, name: str, reason: str) -> ModelError:
        return ModelError(reason, file=str(self._path), node=name)

    def _checked(self, name: str, token: Any) -> int:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < self._vocabulary:
            raise self._error(name, f"{token!r} is not one of {self._vocabulary} tokens")
        return token

    def _token(self, name: str) -> int | None:
        given = self._entries.get(name)
        return None if given is None else self._checked(name, given)

    def _tokens(self, name: str) -> tuple[int, ...]:
        given = self._entries.get(name)
        items = given if is_sequence(given) else [] if given is None else [given]
        # -1 stands for tokens that tools of other makers choose by their text.
        return tuple(self._checked(name, item) for item in items if item != -1)

    def _named(self, name: str) -> dict[str, int]:
        given = self._entries.get(name)
        if given is None:
            return {}
        if not is_mapping(given):
            raise self._error(name, "the entry must be an object")
        return {key: self._checked(name, token) for key, token in given.items()}

    def _forced(self) -> tuple[int, ...]:
        """The tokens at the positions from 1 on; 0 for one that is not given."""
        given: Any = self._entries.get("forced_decoder_ids") or ()
        if not is_sequence(given) or any(not is_sequence(pair) or len(pair) != 2 for pair in given):
            raise self._error("forced_decoder_ids", "the entry must be a list of pairs")
        if [pair[0] for pair in given] != list(range(1, len(given) + 1)):
            raise self._error("forced_decoder_ids", "positions must count up from 1")
        return tuple(0 if token is None else self._checked("forced_decoder_ids", token) for _, token in given)

"""A speech model that writes down what is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.generation.beam_search import MAX_BEAMS, SearchForm, check_beams, search
from glow_mlir.generation.encoder_decoder import EncoderDecoder
from glow_mlir.generation.log_mel import LogMel
from glow_mlir.generation.memory import Memory
from glow_mlir.generation.sound_files import read_wave
from glow_mlir.generation.speech_form import SpeechForm
from glow_mlir.generation.text_files import tokenizer_of
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks

ROWS = 64
"""The tokens of a call at most: a prompt is short."""

FRAMES_PER_STEP = 2
"""The frames between the times of two neighbouring tokens for times."""

Sound = np.ndarray | Sequence[float] | str | Path
"""Samples of mono sound, or the path of a WAV file."""


@dataclass(frozen=True)
class Segment:
    """A part of what is said: its text, tokens, and time from `start` to `end` in seconds."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Transcription:
    """
    What is said in a sound.

    - `language`: its code, if the model has several.
    - `segments`: parts with their times; only one, of the whole sound, if times were not asked for.
    """

    text: str
    language: str | None
    segments: tuple[Segment, ...]

    @property
    def tokens(self) -> list[int]:
        """The tokens of all segments, without prompt and end."""
        return [token for segment in self.segments for token in segment.tokens]

    def __str__(self) -> str:
        return self.text


class Transcriber:
    """
    Whisper in a folder of safetensors, or of graphs that optimum exports, ready to transcribe speech.

    ```python
    transcriber = glow_mlir.Transcriber("whisper-base")
    print(transcriber.transcribe("speech.wav", language="en"))
    ```

    - `context`: the number of tokens that a window may have with its prompt, by default the model's.
    - `beams`: the number of beams that searches may have, at most 8; memory is set aside for these.
    - `cache`: the element type of keys and values: `float16`, `bfloat16`, `float32`, or `int8`.
    - `activations`: `int15`, `int8` or `float32`: what rows are rounded to in front of quantized weights.
    - `tokenizer`: a `tokenizer.json` to use instead of the model's own.
    - `options`: further options of the sessions, such as `threads`.

    Threads may share it; they take turns. Raises `ModelError` for damaged files, and `OptionError` for options out of
    range or packages that are missing.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        beams: int = MAX_BEAMS,
        cache: str = "float16",
        activations: str | None = None,
        tokenizer: str | Path | None = None,
        **options: Any,
    ) -> None:
        check_beams(beams, MAX_BEAMS)
        self._beams = beams
        form: dict[str, Any] = {"context": context, "cache": cache, "activations": activations}
        self.network = EncoderDecoder(path, sequences=beams, rows=ROWS, **form, **options)
        decoder, encoder = self.network.decoder, self.network.encoder
        self.tokenizer: Tokenizer = tokenizer_of(decoder, tokenizer)
        self.form = SpeechForm.of_folder(decoder.path, decoder.config.vocabulary, decoder.config.context)
        self.mel = LogMel(encoder.network.features)
        self.frames = 2 * encoder.config.context
        """The frames of a window, which is what the encoder takes."""
        self._turn = Lock()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take a new lock in a child process."""
        self._turn = Lock()

    def transcribe(
        self,
        sound: Sound,
        *,
        language: str | None = None,
        task: str | None = None,
        timestamps: bool | None = None,
        max_tokens: int | None = None,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        early_stopping: bool | str = False,
    ) -> Transcription:
        """
        Write down what is said in mono sound of 16,000 samples a second, from -1 to 1, or in a WAV file of that.

        - `language`: its code, such as `en`; by default the likeliest one for the first window.
        - `task`: `transcribe`, or `translate` into English.
        - `timestamps`: whether segments have times, by default where the sound is longer than a window of 30 seconds.
          Such a sound is cut where a segment ends.
        - `max_tokens`: of a window.
        - `num_beams`, `length_penalty`, `early_stopping`: see `SearchForm`.

        Raises `InputError` for sounds and languages that the model cannot take, and `OptionError` for options out of
        range.
        """
        check_beams(num_beams, self._beams)
        samples = self.samples_of(sound)
        is_long = len(samples) > self.frames * self.mel.hop
        has_times = is_long if timestamps is None else timestamps
        if is_long and not has_times:
            seconds = self.frames * self.mel.hop / self.mel.rate
            hint = "leave timestamps out: they say where to cut it"
            raise InputError(f"the sound is longer than {seconds:g} seconds", hint=hint)
        if has_times and self.form.first_time >= self.network.decoder.config.vocabulary:
            raise InputError("the model has no tokens for times")
        frames = len(samples) // self.mel.hop if is_long else self.frames
        features = self.mel.features(samples, frames)
        chosen = None if language is None else self.form.language(language)
        with self._turn:
            window = self.network.encode(self._window(features, 0))
            if chosen is None and self.form.languages:
                chosen = self._likely_language(window)
            prompt = self.form.prompt(chosen, task, has_times)
            count = self._count(len(prompt), max_tokens)
            form = SearchForm(count, self.form.ends, num_beams, length_penalty, early_stopping)
            segments = tuple(self._segments(features, window, prompt, form, has_times))
        code = next((name for name, token in self.form.languages.items() if token == chosen), None)
        return Transcription("".join(segment.text for segment in segments), code, segments)

    def samples_of(self, sound: Sound) -> np.ndarray:
        """The samples of a sound as f32; raises `InputError` for what is no mono sound."""
        if isinstance(sound, str | Path):
            return read_wave(sound, self.mel.rate)
        try:
            found = np.asarray(sound)
            is_sound = found.ndim == 1 and found.size > 0 and found.dtype.kind == "f"
        except ValueError:
            is_sound, found = False, np.zeros(0)
        if not is_sound:
            hint = f"{self.mel.rate} samples a second, from -1 to 1: sound.astype(np.float32) / 32768 for int16"
            raise InputError("a sound is a vector of floats", hint=hint)
        if not (abs(found) <= np.finfo(np.float32).max).all():
            raise InputError("the sound has samples that are no numbers of 32 bits")
        return found.astype(np.float32)

    def _count(self, prompt: int, max_tokens: int | None) -> int:
        """The tokens that may follow a prompt."""
        left = self.network.decoder.config.context - prompt
        if left < 1:
            reason = f"the context of {prompt + left} tokens has no more than the {prompt} of the prompt"
            raise InputError(reason, hint="give a larger context")
        if max_tokens is None:
            return min(left, self.form.max_tokens)
        if max_tokens % 1 or not 1 <= max_tokens <= left:
            raise InputError(f"max_tokens cannot be {max_tokens}", hint=f"from 1 to {left}")
        return max_tokens

    def _window(self, features: np.ndarray, begin: int) -> np.ndarray:
        """The frames that the encoder takes from `begin` on, with zeros behind the last ones."""
        found = np.zeros((self.frames, features.shape[1]), np.float32)
        part = features[begin : begin + self.frames]
        found[: len(part)] = part
        return found

    def _likely_language(self, memory: Memory) -> int:
        """The token of the likeliest language."""
        with self.network.sequence(memory) as sequence:
            logits = sequence.append([self.form.start])[0]
        tokens = [*self.form.languages.values()]
        return tokens[int(logits[tokens].argmax())]

    def _segments(
        self, features: np.ndarray, memory: Memory, prompt: list[int], form: SearchForm, has_times: bool
    ) -> Iterator[Segment]:
        """The segments of all windows; the next one begins where the last segment ends."""
        rule, begin = self.form.rule(has_times), 0
        while True:
            with closing(memory):
                found = search(self.network.sequence(memory), prompt, form, rule).tokens
            tokens = found[:-1] if found[-1] in self.form.ends else found
            count = min(len(features) - begin, self.frames)
            if has_times:
                parts, step = self._cut(tokens, begin, count)
            else:
                parts, step = [self._segment(tokens, begin, 0, count // FRAMES_PER_STEP)], count
            yield from parts
            begin += step or count
            if begin >= len(features):
                return
            memory = self.network.encode(self._window(features, begin))

    def _cut(self, tokens: list[int], begin: int, count: int) -> tuple[list[Segment], int]:
        """The segments that the times of a window's tokens make, and the number of frames up to the next window."""
        first = self.form.first_time
        is_time = [token >= first for token in tokens]
        # Between two times that follow each other, a segment ends and another begins.
        cuts = [number + 1 for number in range(len(tokens) - 1) if is_time[number] and is_time[number + 1]]
        is_whole = is_time[-2:] == [False, True]
        if not cuts:
            last = next((token for token in reversed(tokens) if token > first), None)
            steps = count // FRAMES_PER_STEP if last is None else last - first
            return [self._segment(tokens, begin, 0, steps)], count
        bounds = [0, *cuts, *([len(tokens)] if is_whole else [])]
        parts = [tokens[start:end] for start, end in pairwise(bounds)]
        found = [self._segment(part, begin, part[0] - first, part[-1] - first) for part in parts]
        return found, count if is_whole else FRAMES_PER_STEP * (tokens[cuts[-1] - 1] - first)

    def _segment(self, tokens: list[int], begin: int, start: int, end: int) -> Segment:
        """A segment between two times, in steps behind the beginning of a window."""
        seconds = self.mel.hop / self.mel.rate
        text = self.tokenizer.decode([token for token in tokens if token < self.form.first_time], continued=True)
        first, last = (seconds * (begin + FRAMES_PER_STEP * step) for step in (start, end))
        return Segment(first, last, text, tuple(tokens))

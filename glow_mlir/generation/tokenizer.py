"""Tokenizers of models: text to token ids and back, from GGUF files and tokenizer.json files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from glow_mlir.errors import InputError, ModelError
from glow_mlir.generation.control_words import GUARD, without_words
from glow_mlir.generation.pieces import Pieces, decoder_pieces, gguf_pieces, raw
from glow_mlir.generation.tokenizer_models import built, guarded, package, pre_tokenizer_of
from glow_mlir.generation.turn_ends import ends_among
from glow_mlir.generation.vocabulary import CONTROL, ENDS, NAMED, UNKNOWN, Vocabulary
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping, is_sequence

T = TypeVar("T")

BOUNDARY = "\ufdd1\ufdd2"
"""Stands for a control token in what the package encodes."""

REPLACEMENT = "\ufffd"

MAX_GAPS = 1 << 16
"""The maximum number of ids in a vocabulary that have no token."""


@dataclass(frozen=True)
class Frame:
    """The special tokens before and behind a text, as the file says."""

    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairFrame:
    """The special tokens around and between two texts, and the type of the tokens from the second text on."""

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    type: int = 0


@dataclass(frozen=True)
class _Strips:
    """Control tokens that take the white space before or behind them."""

    before: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()


class Tokenizer:
    """
    Turns text into token ids, and token ids into text.

    - `size`: the number of ids; `begin`: the token that texts begin with, or none.
    - `frame` and `pair`: the special tokens around a text, and around a pair of texts.
    - `ends`: the tokens that end a turn; `controls`: all that are no text; `named`: texts by names such as `bos_token`.

    Threads may share it. Bytes that are not UTF-8 become U+FFFD in decoded text.
    """

    def __init__(
        self,
        encoder: Any,
        tokens: Sequence[str | None],
        pieces: Pieces,
        *,
        controls: Collection[int],
        named: Mapping[str, int],
        frame: Frame,
        pair: PairFrame,
        ends: Iterable[int],
        strips: _Strips = _Strips(),
    ) -> None:
        self.size = len(tokens)
        self.controls = frozenset(controls)
        self.ends = frozenset(ends)
        self.strips_space = pieces.strips_space
        self.frame, self.pair = frame, pair
        named_begin = named.get("bos_token")
        self.begin = frame.before[0] if frame.before else named_begin
        self.named: Mapping[str, str] = {name: tokens[number] or "" for name, number in named.items()}
        self._encoder, self._tokens, self._pieces, self._strips = encoder, tokens, pieces, strips
        self._controls = {text: number for number in self.controls if (text := tokens[number])}
        # Longest first: of several that begin at a character, the longest is meant.
        texts = sorted(self._controls, key=len, reverse=True)
        self._control_texts = re.compile("|".join(map(re.escape, texts)) or r"(?!)")
        encoder.encode_special_tokens = True
        encoder.add_tokens([*_fillers(encoder, len(tokens)), _plain(BOUNDARY)])
        self._boundary = encoder.token_to_id(BOUNDARY)
        self._ids: dict[str, int] | None = None
        self._known: dict[int, bytes] = {}

    @staticmethod
    def of_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
        """
        The tokenizer of a GGUF file.

        Raises `ModelError` for damaged metadata, `UnsupportedError` for other kinds and pre-tokenizers, `OptionError`
        if the package `tokenizers` is not installed.
        """
        vocabulary = Vocabulary.of_metadata(metadata)
        ends = ends_among(vocabulary.ids) | {vocabulary.named[name] for name in ENDS if name in vocabulary.named}
        by_type = np.flatnonzero(np.isin(vocabulary.types, (CONTROL, UNKNOWN))).tolist()
        controls = {*by_type, *ends, *(vocabulary.named[name] for name in NAMED if name in vocabulary.named)}
        encoder = built(vocabulary, controls)
        pieces, frame = gguf_pieces(vocabulary), _gguf_frame(vocabulary)
        return Tokenizer(
            encoder,
            vocabulary.tokens,
            pieces,
            controls=controls,
            named=vocabulary.named,
            frame=frame,
            pair=_gguf_pair(vocabulary, frame),
            ends=ends,
            strips=_gguf_strips(vocabulary, controls),
        )

    @staticmethod
    def of_file(path: Path, config: Mapping[str, Any] | None = None) -> Tokenizer:
        """
        The tokenizer of a tokenizer.json file.

        `config` is what files beside it say: tokenizer_config.json's and generation_config.json's entries, of which
        `bos_token` and the like, `eos_token_id` and `add_bos_token` are read. Raises the errors of `of_gguf`.
        """
        file = str(path)
        library = package()
        if not path.is_file():
            raise ModelError("is no file", file=file, hint="a tokenizer is a tokenizer.json")
        return guarded(lambda: _of_encoder(library.Tokenizer.from_file(file), config or {}, file), file)

    def encode(self, text: str, *, special: bool = False, begin: bool | None = None, end: bool = False) -> list[int]:
        """
        The token ids of a text.

        - `special`: whether control tokens in the text are these tokens, as in a chat that a template rendered. By
          default they are text like other text: nobody can write one. `guarded` marks those that are not meant.
        - `begin`: whether to add the tokens before a text as the file says, unless they are there; `end`: likewise
          those behind it, which embeddings are taken with.
        """
        ids = self._with_controls(text) if special else self._parts([text])[0]
        before = list(self.frame.before) if begin else []
        if before and ids[: len(before)] == before:
            before = []
        return [*before, *ids, *(self.frame.behind if end else ())]

    def decode(self, ids: Iterable[int], *, special: bool = False, continued: bool = False) -> str:
        """
        The text of token ids.

        `special`: whether control tokens are written out; by default they are left out. `continued`: whether the text
        goes on after another, so that a space in front is kept.
        """
        numbers = list(ids)
        if not special:
            numbers = [number for number in numbers if number not in self.controls]
        text = b"".join(map(self.piece, numbers)).decode("utf-8", "replace")
        return text[1:] if self.strips_space and not continued and text.startswith(" ") else text

    def piece(self, number: int) -> bytes:
        """The bytes that a token stands for inside a text; none for ids that a model has beyond the vocabulary."""
        if number < 0:
            raise InputError(f"there is no token {number}")
        if number >= self.size:
            return b""
        found = self._known.get(number)
        if found is None:
            text = self._tokens[number]
            found = raw(text or "") if number in self.controls else self._pieces.spell(number)
            self._known[number] = found
        return found

    def token(self, number: int) -> str:
        """The token as the vocabulary writes it; raises `InputError` for ids outside."""
        if not 0 <= number < self.size:
            raise InputError(f"there is no token {number} in a vocabulary of {self.size}")
        return self._tokens[number] or ""

    def id(self, token: str) -> int | None:
        """The id of a token as the vocabulary writes it, or none."""
        if self._ids is None:
            self._ids = {text: number for number, text in enumerate(self._tokens) if text is not None}
        return self._ids.get(token)

    def control_at(self, text: str) -> int | None:
        """The control token that a text begins with, or none."""
        found = self._control_texts.match(text)
        return None if found is None else self._controls[found.group()]

    def guarded(self, value: T) -> T:
        """
        A value of JSON whose strings have marks in what reads as a control token, for templates to render.

        `encode` with `special` takes the marks out again, and what they were in as text. So nobody's message becomes a
        control token, and the template's own are.
        """
        if isinstance(value, str):
            return self._marked(value)
        if isinstance(value, Mapping):
            return {self.guarded(key): self.guarded(item) for key, item in value.items()}  # pyright: ignore
        if isinstance(value, list | tuple):
            return [self.guarded(item) for item in value]  # pyright: ignore
        return value

    def with_ends(self, ends: Iterable[int]) -> Tokenizer:
        """This tokenizer with further tokens that end a turn."""
        found = object.__new__(Tokenizer)
        found.__dict__ = self.__dict__ | {"ends": self.ends | frozenset(ends)}
        return found

    def _parts(self, parts: Sequence[str]) -> list[list[int]]:
        """The ids of the parts of a text between control tokens."""
        plain = [part.replace(GUARD, "").replace(BOUNDARY, REPLACEMENT) for part in parts]
        text = BOUNDARY.join(plain)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError("the text has characters that are halves of others") from None
        # The package fails where a vocabulary has no token for what it lacks.
        ids = guarded(lambda: self._encoder.encode(text, add_special_tokens=False).ids, "")
        found: list[list[int]] = [[]]
        for number in ids:
            if number == self._boundary:
                found.append([])
            else:
                found[-1].append(number)
        return found

    def _with_controls(self, text: str) -> list[int]:
        """The ids of a text in which control tokens are written out."""
        parts, numbers, position = list[str](), list[int](), 0
        for match in self._control_texts.finditer(text):
            parts.append(text[position : match.start()])
            numbers.append(self._controls[match.group()])
            position = match.end()
        parts.append(text[position:])
        for place, number in enumerate(numbers):
            if number in self._strips.before:
                parts[place] = parts[place].rstrip()
            if number in self._strips.behind:
                parts[place + 1] = parts[place + 1].lstrip()
        first, *others = self._parts(parts)
        return first + [item for number, ids in zip(numbers, others, strict=True) for item in (number, *ids)]

    def _marked(self, text: str) -> str:
        """A text in which nothing reads as a control token."""
        plain = text.replace(GUARD, REPLACEMENT)
        return self._control_texts.sub(lambda match: match.group()[:1] + GUARD + match.group()[1:], plain)


def _plain(text: str) -> Any:
    """A token to add to an encoder."""
    return package().AddedToken(text, normalized=False, special=False)


def _fillers(encoder: Any, size: int) -> list[Any]:
    """
    Tokens for ids below `size` that the package would give to others: it continues a vocabulary with gaps inside it.

    No text has them. Raises `ModelError` for more than 65,536.
    """
    added: dict[int, Any] = encoder.get_added_tokens_decoder()
    first = max([encoder.get_vocab_size(with_added_tokens=False), *(number + 1 for number in added)])
    if size - first > MAX_GAPS:
        raise ModelError(f"the ids of {first} tokens go up to {size - 1}")
    return [_plain(f"{GUARD}gap{number}") for number in range(first, size)]


def _gguf_frame(vocabulary: Vocabulary) -> Frame:
    """The special tokens around a text of a GGUF file's vocabulary."""
    adds_begin = vocabulary.adds_begin
    if adds_begin is None:
        adds_begin = pre_tokenizer_of(vocabulary).adds_begin
    begin = vocabulary.named.get("bos_token", vocabulary.named.get("cls_token"))
    end = vocabulary.named.get("sep_token" if vocabulary.kind == "bert" else "eos_token")
    before = (begin,) if adds_begin and begin is not None else ()
    return Frame(before, (end,) if vocabulary.adds_end and end is not None else ())


def _gguf_pair(vocabulary: Vocabulary, frame: Frame) -> PairFrame:
    """The special tokens around a pair, as in llama.cpp; BERT has types of tokens, which that does not have."""
    separator = vocabulary.named.get("sep_token")
    between = (separator,) if vocabulary.adds_separator and separator is not None else ()
    return PairFrame(frame.before, (*frame.behind, *between), frame.behind, int(vocabulary.kind == "bert"))


def _gguf_strips(vocabulary: Vocabulary, controls: Collection[int]) -> _Strips:
    """Control tokens that take white space; files do not say which, so that it goes by the model, as in llama.cpp."""
    name = vocabulary.model_name.lower()
    if "phi-3" in name or "phi3" in name:
        kept = {vocabulary.ids.get(text) for text in ("<unk>", "<s>", "<|endoftext|>")}
        return _Strips(behind=frozenset(controls) - kept)
    mask = vocabulary.named.get("mask_token")
    return _Strips(before=frozenset(() if mask is None else (mask,)))


def _of_encoder(encoder: Any, config: Mapping[str, Any], file: str) -> Tokenizer:
    """The tokenizer of a file that the package has read."""
    encoder.no_truncation()
    encoder.no_padding()
    ids: dict[str, int] = encoder.get_vocab(with_added_tokens=True)
    if not ids:
        raise ModelError("the vocabulary has no tokens", file=file)
    if max(ids.values()) > len(ids) + MAX_GAPS:
        raise ModelError(f"the ids of {len(ids)} tokens go up to {max(ids.values())}", file=file)
    tokens: list[str | None] = [None] * (max(ids.values()) + 1)
    for text, number in ids.items():
        tokens[number] = text
    added: dict[int, Any] = encoder.get_added_tokens_decoder()
    named = {name: number for name in NAMED if (number := _number(config.get(name), ids)) is not None}
    ends = {*ends_among(ids), *_numbers(config.get("eos_token_id"), len(tokens))}
    ends |= {named[name] for name in ENDS if name in named}
    controls = {number for number, token in added.items() if token.special} | ends
    strips = _Strips(
        frozenset(number for number in controls if number in added and added[number].lstrip),
        frozenset(number for number in controls if number in added and added[number].rstrip),
    )
    decoder = encoder.decoder
    state = None if decoder is None else json.loads(decoder.__getstate__())
    pieces = decoder_pieces(state, tokens, added)
    frame, pair = _frame_of(encoder), _pair_of(encoder)
    encoder = without_words(encoder, {number: text for number in controls if (text := tokens[number]) is not None})
    if isinstance(wanted := config.get("add_bos_token"), bool) and "bos_token" in named:
        frame = replace(frame, before=(named["bos_token"],) if wanted else ())
    found: dict[str, Any] = {"controls": controls, "named": named, "ends": ends, "strips": strips}
    return Tokenizer(encoder, tokens, pieces, frame=frame, pair=pair, **found)


def _frame_of(encoder: Any) -> Frame:
    """The special tokens that an encoder puts around a text."""
    plain = encoder.encode("a", add_special_tokens=False).ids
    whole = encoder.encode("a", add_special_tokens=True).ids
    for begin in range(len(whole) - len(plain) + 1):
        if whole[begin : begin + len(plain)] == plain:
            return Frame(tuple(whole[:begin]), tuple(whole[begin + len(plain) :]))
    return Frame()


def _pair_of(encoder: Any) -> PairFrame:
    """The special tokens that an encoder puts around a pair of texts."""
    plain: list[int] = encoder.encode("a", add_special_tokens=False).ids
    whole = encoder.encode("a", "a", add_special_tokens=True)
    ids, count = list[int](whole.ids), len(plain)
    found = [begin for begin in range(len(ids) - count + 1) if ids[begin : begin + count] == plain]
    if not count or len(found) < 2 or found[-1] < found[0] + count:
        return PairFrame()
    first, second = found[0], found[-1]
    between, behind = ids[first + count : second], ids[second + count :]
    return PairFrame(tuple(ids[:first]), tuple(between), tuple(behind), whole.type_ids[second])


def _number(value: Any, ids: Mapping[str, int]) -> int | None:
    """The id of a token in a configuration: a text, or an object with its content."""
    text: Any = value.get("content") if is_mapping(value) else value
    return ids.get(text) if isinstance(text, str) else None


def _numbers(value: Any, size: int) -> list[int]:
    """Ids in a configuration: a number, or several."""
    values: Sequence[Any] = value if is_sequence(value) else [value]
    return [item for item in values if type(item) is int and 0 <= item < size]

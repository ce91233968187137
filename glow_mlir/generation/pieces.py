"""The bytes that tokens stand for: as GGUF files have them, and as decoders of tokenizer.json files do."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.generation.pre_tokenizers import PRE_TOKENIZERS
from glow_mlir.generation.vocabulary import BYTE, NORMAL, SPACE, UNUSED, Vocabulary
from glow_mlir.support.dataclass import dataclass

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def _printable_bytes() -> dict[int, int]:
    """Character → byte, as GPT-2 writes bytes: printable ones as they are in Latin 1, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {0x100 + place: byte for place, byte in enumerate(others)}


GPT2_BYTES = {chr(char): byte for char, byte in _printable_bytes().items()}
"""The characters with which GPT-2's vocabularies write bytes."""

Spelling = Callable[[str], bytes]
"""A token → the bytes that it stands for inside a text."""


@dataclass(frozen=True)
class Pieces:
    """The bytes of each token by id; `strips_space`: whether a text begins behind the first space of its tokens."""

    spell: Callable[[int], bytes]
    strips_space: bool


def raw(token: str) -> bytes:
    """A token as it is written; surrogates are bytes that are not UTF-8, and others are replaced."""
    try:
        return token.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return token.encode("utf-8", "replace")


def from_bytes(token: str) -> bytes:
    """A token of GPT-2's printable bytes."""
    try:
        return bytes(map(GPT2_BYTES.__getitem__, token))
    except KeyError:
        return raw(token)


def with_spaces(token: str) -> bytes:
    """A token of SentencePiece, or one for a byte."""
    if byte := _BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return raw(token.replace(SPACE, " "))


def gguf_pieces(vocabulary: Vocabulary) -> Pieces:
    """The pieces of a GGUF file's vocabulary: tokens that are not words are written as they are."""
    form = PRE_TOKENIZERS.get(vocabulary.pre or "default")
    in_bytes = vocabulary.kind == "gpt2" and (form is None or form.in_bytes)
    by_type: Mapping[int, Spelling] = {
        NORMAL: from_bytes if in_bytes else with_spaces, BYTE: with_spaces, UNUSED: lambda token: b""
    }  # fmt: skip
    tokens, types = vocabulary.tokens, vocabulary.types.tolist()
    strips = vocabulary.kind == "bert" or vocabulary.adds_space
    return Pieces(lambda number: by_type.get(types[number], raw)(tokens[number]), strips)


def decoder_pieces(state: Mapping[str, Any] | None, tokens: Sequence[str | None], added: Collection[int]) -> Pieces:
    """
    The pieces of a tokenizer.json file whose decoder has that state.

    `tokens` by id, none where there is no token; `added`: ids of tokens that are written as they are. Raises
    `UnsupportedError` for decoders that cannot be asked for one token.
    """
    steps = [_step(part) for part in _flat(state)]
    strips = any(strips for _, strips in steps)

    def spell(number: int) -> bytes:
        token: str | bytes | None = tokens[number]
        if token is None or number in added:
            return raw(token or "")
        for step, _ in steps:
            if isinstance(token, str):
                token = step(token)
        return token if isinstance(token, bytes) else raw(token)

    return Pieces(spell, strips)


Step = tuple[Callable[[str], str | bytes], bool]
"""What a part of a decoder makes of a token, bytes if it is done, and whether it strips a space."""


def _flat(state: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The parts of a decoder in their order."""
    if state is None:
        return [{"type": None}]
    if state.get("type") == "Sequence":
        return [part for item in state.get("decoders", ()) for part in _flat(item)]
    return [state]


def _step(state: Mapping[str, Any]) -> Step:
    """A part of a decoder."""
    kind = state.get("type")
    if kind not in _STEPS:
        reason = f"decoders of the kind '{kind}' are not supported"
        raise UnsupportedError(reason, hint=f"kinds are {', '.join(map(str, _STEPS))}")
    try:
        return _STEPS[kind](state)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"the decoder {kind} is damaged") from error


def _replace(state: Mapping[str, Any]) -> Step:
    pattern, content = state["pattern"], state["content"]
    if "String" not in pattern:
        raise UnsupportedError("decoders that replace regular expressions are not supported")
    return (lambda token: token.replace(pattern["String"], content)), False


def _byte_fallback(state: Mapping[str, Any]) -> Step:
    def step(token: str) -> str | bytes:
        byte = _BYTE.fullmatch(token)
        return bytes([int(byte[1], 16)]) if byte else token

    return step, False


def _strip(state: Mapping[str, Any]) -> Step:
    if (state["content"], state["start"], state["stop"]) != (" ", 1, 0):
        raise UnsupportedError("decoders that strip other than one space in front are not supported")
    return (lambda token: token), True


def _metaspace(state: Mapping[str, Any]) -> Step:
    replacement = state["replacement"]
    return (lambda token: token.replace(replacement, " ")), state.get("prepend_scheme", "always") != "never"


def _word_piece(state: Mapping[str, Any]) -> Step:
    prefix = state["prefix"]
    return (lambda token: token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"), True


_STEPS: Mapping[str | None, Callable[[Mapping[str, Any]], Step]] = {
    "ByteLevel": lambda state: (from_bytes, False),
    "ByteFallback": _byte_fallback,
    "Fuse": lambda state: ((lambda token: token), False),
    "Metaspace": _metaspace,
    "Replace": _replace,
    "Strip": _strip,
    "WordPiece": _word_piece,
    None: lambda state: ((lambda token: f" {token}"), True),
}
"""Kind of a decoder → what it makes of a token; without one, tokens are words."""

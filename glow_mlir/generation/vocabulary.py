"""The vocabulary of a GGUF file: tokens, their types and scores, and how texts begin and end, all checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.generation.precompiled import check_character_map
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_sequence

PREFIX = "tokenizer.ggml."
"""What names of entries about tokens begin with."""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of tokens, as numbers in the file."""

SPACE = "▁"
"""What stands for a space in SentencePiece's tokens."""

NAMED: Mapping[str, str] = {
    "bos_token": "bos_token_id", "eos_token": "eos_token_id", "eot_token": "eot_token_id",
    "eom_token": "eom_token_id", "unk_token": "unknown_token_id", "sep_token": "seperator_token_id",
    "pad_token": "padding_token_id", "mask_token": "mask_token_id", "cls_token": "cls_token_id",
}  # fmt: skip
"""Name of a token in templates → entry of the metadata behind `PREFIX`, in the format's spelling."""

ENDS = ("eos_token", "eot_token", "eom_token")
"""Named tokens that end a turn."""


SEPARATED = ("roberta-bpe", "jina-v1-en", "jina-v2-code")
"""Pre-tokenizers of models that have two tokens between the texts of a pair, if the file does not say it."""


@dataclass(frozen=True)
class _Kind:
    """What is true of a kind of tokenizer if the file has no entry that says otherwise."""

    named: Mapping[str, int]
    adds_begin: bool = False
    adds_end: bool = False
    adds_space: bool = False


KINDS: Mapping[str, _Kind] = {
    "gpt2": _Kind({}),
    "gemma4": _Kind({}),
    "llama": _Kind({"bos_token": 1, "eos_token": 2, "unk_token": 0}, adds_begin=True, adds_space=True),
    "bert": _Kind({"bos_token": 101, "unk_token": 100, "sep_token": 102}, adds_begin=True, adds_end=True),
    "t5": _Kind({"eos_token": 1, "unk_token": 2, "pad_token": 0}, adds_end=True),
}
"""Kind in `tokenizer.ggml.model` → its defaults."""


@dataclass(frozen=True)
class Vocabulary:
    """
    The vocabulary of a GGUF file.

    - `kind`: `gpt2` and `gemma4` (byte pairs), `llama` (SentencePiece's byte pairs), `bert` (WordPiece) or `t5`
      (Unigram); `pre`: the name of the pre-tokenizer, or empty.
    - `tokens` by id; bytes that are not UTF-8 are surrogates. `ids`: id by token.
    - `types` [size], and `scores` [size] or none; `merges`: pairs of tokens, most wanted first, or none.
    - `named`: id by name, such as `bos_token`.
    - `adds_begin`, `adds_end`: whether texts begin and end with special tokens; none: as the pre-tokenizer has it.
    - `adds_separator`: whether a further token stands between the two texts of a pair.
    - `adds_space`: whether a space stands before a text; `joins_spaces`: whether several are one.
    - `lower_case`, `strip_accents`: what is done to words before they are looked up in WordPiece.
    - `character_map`: replacements of characters in SentencePiece's format, or empty.
    - `model_name`: `general.name` of the file.
    """

    kind: str
    pre: str
    tokens: Sequence[str]
    ids: Mapping[str, int]
    types: np.ndarray
    scores: np.ndarray | None
    merges: Sequence[str] | None
    named: Mapping[str, int]
    adds_begin: bool | None
    adds_end: bool
    adds_separator: bool
    adds_space: bool
    joins_spaces: bool
    lower_case: bool
    strip_accents: bool
    character_map: bytes
    model_name: str

    @staticmethod
    def of_metadata(metadata: Mapping[str, Any]) -> Vocabulary:
        """Read it; raises `ModelError` if the entries are damaged, and `UnsupportedError` for other kinds."""
        entries = _Entries(metadata)
        kind = entries.text("model", None)
        if kind not in KINDS:
            reason = f"tokenizers of the kind '{kind}' are not supported"
            raise UnsupportedError(reason, node=f"{PREFIX}model", hint=f"kinds are {', '.join(KINDS)}")
        defaults = KINDS[kind]
        tokens = [token or f"[EMPTY_{number}]" for number, token in enumerate(entries.texts("tokens") or [])]
        if not tokens:
            raise entries.error("tokens", "the vocabulary has no tokens")
        ids = {token: number for number, token in enumerate(tokens)}
        if len(ids) != len(tokens):
            twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
            raise entries.error("tokens", f"the token '{twice}' is there twice")
        size = len(tokens)
        types = entries.numbers("token_type", size, np.integer)
        lower_case = entries.flag("normalizer.lowercase", True)
        return Vocabulary(
            kind,
            "gemma4" if kind == "gemma4" else entries.text("pre", ""),
            tokens,
            ids,
            np.full(size, NORMAL, np.int32) if types is None else types,
            entries.numbers("scores", size, np.number),
            entries.texts("merges"),
            entries.named(defaults.named, size),
            entries.flag("add_bos_token", None if kind in ("gpt2", "gemma4") else defaults.adds_begin),
            entries.flag("add_eos_token", defaults.adds_end),
            entries.flag("add_sep_token", entries.text("pre", "") in SEPARATED),
            entries.flag("add_space_prefix", defaults.adds_space),
            entries.flag("remove_extra_whitespaces", False),
            lower_case,
            entries.flag("normalizer.strip_accents", lower_case),
            entries.character_map() if kind == "t5" else b"",
            name if isinstance(name := metadata.get("general.name"), str) else "",
        )


class _Entries:
    """Entries of the metadata, checked when they are read."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata

    def error(self, key: str, reason: str) -> ModelError:
        """The error for an entry."""
        return ModelError(reason, node=PREFIX + key, hint="check that the download is complete")

    def text(self, key: str, default: str | None) -> str:
        """A string."""
        found = self._metadata.get(PREFIX + key, default)
        if not isinstance(found, str):
            raise self.error(key, "is missing" if found is None else f"is {_described(found)}, and no string")
        return found

    def flag(self, key: str, default: Any) -> Any:
        """A truth value."""
        found = self._metadata.get(PREFIX + key, default)
        if not isinstance(found, bool) and found is not default:
            raise self.error(key, f"is {_described(found)}, and no truth value")
        return found

    def texts(self, key: str) -> Sequence[str] | None:
        """An array of strings, or none."""
        found = self._metadata.get(PREFIX + key)
        if found is None:
            return None
        if not is_sequence(found) or set(map(type, found)) - {str}:
            raise self.error(key, f"is {_described(found)}, and no array of strings")
        return found

    def numbers(self, key: str, size: int, kind: type) -> np.ndarray | None:
        """A number a token, or none."""
        found = self._metadata.get(PREFIX + key)
        if found is None:
            return None
        if not _is_array(found) or not np.issubdtype(found.dtype, kind):
            raise self.error(key, f"is {_described(found)}, and no array of numbers")
        if len(found) != size:
            raise self.error(key, f"has {len(found)} numbers for {size} tokens")
        if not np.isfinite(found).all():
            raise self.error(key, "has numbers that are not finite")
        return found

    def named(self, defaults: Mapping[str, int], size: int) -> dict[str, int]:
        """Ids by name; defaults that the vocabulary is too small for are left out."""
        found = {name: number for name, number in defaults.items() if number < size}
        for name, key in NAMED.items():
            given = self._metadata.get(PREFIX + key)
            if given is None:
                continue
            if isinstance(given, bool) or not isinstance(given, int):
                raise self.error(key, f"is {_described(given)}, and no number of a token")
            if not 0 <= given < size:
                raise self.error(key, f"is {given}, and the vocabulary has {size} tokens")
            found[name] = given
        return found

    def character_map(self) -> bytes:
        """The map of characters, or nothing."""
        key = "precompiled_charsmap"
        found = self._metadata.get(PREFIX + key)
        if found is None:
            return b""
        if not _is_array(found) or found.dtype.itemsize != 1:
            raise self.error(key, f"is {_described(found)}, and no array of bytes")
        data = found.tobytes()
        reason = check_character_map(data)
        if reason:
            raise self.error(key, reason)
        return data


def _is_array(value: object) -> TypeGuard[np.ndarray]:
    """Whether a value is an array with one axis."""
    return isinstance(value, np.ndarray) and value.ndim == 1


def _described(value: object) -> str:
    """A value of the wrong type, in few words."""
    if _is_array(value) or is_sequence(value):
        return f"an array of {len(value)} values"
    return f"{value!r:.40}"

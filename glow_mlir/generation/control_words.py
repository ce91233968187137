"""
Control tokens that are words of a tokenizer.json's vocabulary, so that a text could be one.

The package leaves added tokens alone where texts have them as text, but not the words of its models: one that looks up
whole words, or any part of a text, finds `</s>` there as well. They get names that no text has, as SentencePiece looks
for none of its control symbols in texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from glow_mlir.generation.tokenizer_models import package

GUARD = "\ufdd0"
"""Stands inside the text of a control token that is no control token: a noncharacter, which no text has."""

SEARCHED = ("Unigram", "WordLevel")
"""Kinds of models that find a word of their vocabulary wherever it is in a text."""

Rename = Callable[[str], str]
"""The new name of a token of the vocabulary, which may be the old one."""


def without_words(encoder: Any, controls: Mapping[int, str]) -> Any:
    """A tokenizer of the package with the same ids that makes none of `controls` [id → text] of texts."""
    if not _may_be_words(encoder, controls):
        return encoder
    names = {text: f"{GUARD}{number}" for number, text in controls.items()}
    state: dict[str, Any] = json.loads(encoder.to_str())

    def rename(text: str) -> str:
        return names.get(text, text)

    model = state["model"]
    _RENAMED[model["type"]](model, rename)
    if isinstance(unknown := model.get("unk_token"), str):
        model["unk_token"] = rename(unknown)
    for token in state["added_tokens"]:
        token["content"] = rename(token["content"])
    return package().Tokenizer.from_str(json.dumps(state))


def _may_be_words(encoder: Any, controls: Mapping[int, str]) -> bool:
    """Whether a text may become a control token."""
    words: Mapping[str, int] = encoder.get_vocab(with_added_tokens=False)
    own = {number: text for number, text in controls.items() if text in words}
    if type(encoder.model).__name__ in SEARCHED:
        return bool(own)
    encoder.encode_special_tokens = True
    return any(number in encoder.encode(text, add_special_tokens=False).ids for number, text in own.items())


def _rename_pieces(model: dict[str, Any], rename: Rename) -> None:
    model["vocab"] = [[rename(piece), score] for piece, score in model["vocab"]]


def _rename_words(model: dict[str, Any], rename: Rename) -> None:
    model["vocab"] = {rename(word): number for word, number in model["vocab"].items()}


def _rename_pairs(model: dict[str, Any], rename: Rename) -> None:
    """Rename words of byte pairs; those that are renamed have no merges any more."""
    _rename_words(model, rename)
    pairs = [pair.split(" ", 1) if isinstance(pair, str) else pair for pair in model["merges"]]
    parts = ((*pair, "".join(pair)) for pair in pairs)
    model["merges"] = [pair for pair, texts in zip(pairs, parts, strict=True) if all(rename(t) == t for t in texts)]


_RENAMED: Mapping[str, Callable[[dict[str, Any], Rename], None]] = {
    "Unigram": _rename_pieces,
    "WordLevel": _rename_words,
    "WordPiece": _rename_words,
    "BPE": _rename_pairs,
}
"""Kind of a model → what renames its words."""

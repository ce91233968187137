"""onnxruntime's Tokenizer, to which scikit-learn's text vectorizers are converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from glow_mlir.frontends.onnx.host_operators.registry import Attributes, strings_of
from glow_mlir.frontends.onnx.host_operators.strings import expression, padded

_BEGIN, _END = "\x02", "\x03"
"""The tokens that mark the start and end of a string."""

_SPECIAL = frozenset(r"\.^$*+?()[]{}|")
"""The characters that do not stand for themselves in an expression."""


def tokenizer(attributes: Attributes, words: np.ndarray) -> np.ndarray:
    """
    Split each string of [C] or [N, C] into tokens along a new last axis, padded with `pad_value`.

    Tokens are the matches of an expression, or the parts between separators; those shorter than `mincharnum` are
    dropped.
    """
    if words.ndim not in (1, 2):
        raise attributes.failed(f"it takes [C] or [N, C], not {list(words.shape)}")
    if not words.size:
        return strings_of([], words.shape)
    least, parts = attributes.int("mincharnum"), _splits(attributes)
    first, last = ([_BEGIN], [_END]) if attributes.int("mark") else ([], [])

    def tokens(word: str) -> list[str]:
        return [*first, *(token for token in parts(word) if token and len(token) >= least), *last]

    filled, counts = padded(words, tokens, attributes.text("pad_value"))
    if counts.max() == len(first) + len(last):
        return strings_of([], (*words.shape, 0))
    return filled


def _splits(attributes: Attributes) -> Callable[[str], Iterable[str]]:
    """The function that gives the parts of a string, of which some may be empty."""
    if attributes.has("tokenexp"):
        finds = expression(attributes, attributes.text("tokenexp")).finditer
        return lambda word: (match.group() for match in finds(word))
    if (separators := attributes.texts("separators")) in ([], [""]):
        return list
    splits = [_split(attributes, separator) for separator in separators]

    first, *others = splits

    def parts(word: str) -> list[str]:
        found = first(word)
        for split in others:
            found = [part for token in found for part in split(token)]
        return found

    return parts


def _split(attributes: Attributes, separator: str) -> Callable[[str], list[str]]:
    """The function that splits at an expression; Python splits faster at one that stands for itself."""
    if separator and _SPECIAL.isdisjoint(separator):
        return lambda word: word.split(separator)
    return expression(attributes, separator).split

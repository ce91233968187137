"""onnxruntime's Tokenizer, to which scikit-learn's text vectorizers are converted."""

from __future__ import annotations

import numpy as np

from glow_mlir.frontends.onnx.host_operators.registry import Attributes, strings_of
from glow_mlir.frontends.onnx.host_operators.strings import expression

_BEGIN, _END = "\x02", "\x03"
"""The tokens that mark the start and end of a string."""


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
    least = attributes.int("mincharnum")
    tokens = [_tokens(attributes, word, least) for word in words.ravel().tolist()]
    if not any(tokens):
        return strings_of([], (*words.shape, 0))
    if attributes.int("mark"):
        tokens = [[_BEGIN, *found, _END] for found in tokens]
    width, pad = max(map(len, tokens)), attributes.text("pad_value")
    return strings_of([t for found in tokens for t in [*found, *[pad] * (width - len(found))]], (*words.shape, width))


def _tokens(attributes: Attributes, word: str, least: int) -> list[str]:
    """The tokens of one string."""
    if attributes.has("tokenexp"):
        found = [match.group() for match in expression(attributes, attributes.text("tokenexp")).finditer(word)]
    elif (separators := attributes.texts("separators")) in ([], [""]):
        found = list(word)
    else:
        found = [word]
        for separator in separators:
            splits = expression(attributes, separator).split
            found = [part for token in found for part in splits(token)]
    return [token for token in found if token and len(token) >= least]

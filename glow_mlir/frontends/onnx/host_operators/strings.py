"""ONNX's operators on strings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.host_operators.registry import Attributes, of_each, strings_of
from glow_mlir.support.optional_packages import imported

MAX_EXPRESSIONS = 256
"""How many compiled expressions are kept."""


def string_concat(attributes: Attributes, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Concatenate strings elementwise; shapes are broadcast."""
    left, right = np.broadcast_arrays(left, right)
    words = [one + other for one, other in zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)]
    return strings_of(words, left.shape)


def string_split(attributes: Attributes, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of each string along a new last axis, padded with empty strings; and the numbers of parts."""
    delimiter, most = attributes.text("delimiter", ""), attributes.int("maxsplit", -1)
    filled, counts = padded(words, lambda word: _parts(word, delimiter, most), "")
    return filled, counts.reshape(words.shape)


def padded(words: np.ndarray, split: Callable[[str], list[str]], pad: str) -> tuple[np.ndarray, np.ndarray]:
    """
    The parts of each string along a new last axis, padded to the length of the longest, and the numbers of parts.

    `split` is called once for each distinct string.
    """
    given: list[str] = words.ravel().tolist()
    distinct = dict.fromkeys(given)
    parts = list(map(split, distinct))
    lengths = list(map(len, parts))
    width = max(lengths, default=0)
    rows = np.empty((len(parts), width), object)
    if width:
        rows[:] = [[*part, *[pad] * (width - len(part))] for part in parts]
    if len(parts) == len(given):
        return rows.reshape(*words.shape, width), np.array(lengths, np.int64)
    number_of = dict(zip(distinct, range(len(parts)), strict=True))
    numbers = np.fromiter(map(number_of.__getitem__, given), np.intp, len(given))
    return rows[numbers].reshape(*words.shape, width), np.array(lengths, np.int64)[numbers]


def _parts(word: str, delimiter: str, most: int) -> list[str]:
    """Split like `str.split`; an empty string has no parts."""
    return word.split(delimiter or None, most) if word else []


def expression(attributes: Attributes, text: str) -> Any:
    """
    Compile a regular expression with RE2, which ONNX requires and which takes linear time (the extra `strings`).

    The result has the methods of `re.Pattern`. Raises `ModelError` for an invalid expression.
    """
    re2 = _re2()
    try:
        return _compiled(re2, text)
    except re2.error as error:
        reason = str(error.args[0], errors="replace")
        hint = "see github.com/google/re2"
        raise attributes.wrong(f"'{text}' is not a regular expression of RE2: {reason}", hint) from error


@cache
def _re2() -> Any:
    return imported("re2", "strings", "regular expressions need RE2", error=UnsupportedError)


@lru_cache(MAX_EXPRESSIONS)
def _compiled(re2: Any, text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def regex_full_match(attributes: Attributes, words: np.ndarray) -> np.ndarray:
    """Whether a regular expression matches the whole of each string."""
    matches = expression(attributes, attributes.text("pattern", "")).fullmatch
    # Python's wrapper of RE2 counts the letters of strings, but not of bytes.
    found = of_each(words, lambda word: matches(word.encode()) is not None)
    return np.array(found, np.bool_).reshape(words.shape)


def string_normalizer(attributes: Attributes, words: np.ndarray) -> np.ndarray:
    """Remove stopwords from a vector of strings, or a matrix with one row, and convert to lower or upper case."""
    case = attributes.text("case_change_action", "NONE")
    changes = {"NONE": str, "LOWER": str.lower, "UPPER": _upper}
    if case not in changes:
        raise attributes.wrong(f"case_change_action is '{case}'", "it is NONE, LOWER or UPPER")
    if words.ndim not in (1, 2) or (words.ndim == 2 and words.shape[0] != 1):
        raise attributes.failed(f"it takes [C] or [1, C], not {list(words.shape)}")
    alike = str if attributes.int("is_case_sensitive", 0) else str.lower
    stops = set(map(alike, attributes.texts("stopwords")))
    changed = of_each(words, lambda word: None if alike(word) in stops else changes[case](word))
    kept = [word for word in changed if word is not None] or [""]
    return strings_of(kept, (*words.shape[:-1], len(kept)))


def _upper(word: str) -> str:
    """Upper case letter by letter; unlike in `str.upper`, letters that would become several are unchanged."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in word)


def unique(attributes: Attributes, words: np.ndarray) -> tuple[np.ndarray, ...]:
    """
    The unique strings, sorted or in order of occurrence.

    Further results are their first positions, the inverse mapping, and the numbers of occurrences.
    """
    if attributes.has("axis") and words.ndim != 1:
        raise attributes.failed("unique rows of strings are not supported", "leave out 'axis'")
    values, first, inverse, counts = np.unique(
        words.ravel().astype(str), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.arange(len(values)) if attributes.int("sorted", 1) else np.argsort(first)
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    made = strings_of(values[order].tolist(), (len(values),))
    return made, first[order].astype(np.int64), positions[inverse].astype(np.int64), counts[order].astype(np.int64)

"""Words that are gone: names, docstrings, comments and documents use the field's term instead."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

from checkout import files, name_of, offenders, text_of

IN_NAMES: Mapping[str, str] = {
    "codes": "quantized, quantized values",
    "told": "given, reported, known",
    "said": "given, chosen, declared",
    "unsaid": "default",
    "room": "capacity, or a package",
    "rooms": "capacities, or packages",
    "places": "positions, offsets, slots, targets",
    "beside": "in the background, in the same folder",
    "anew": "reset",
}
"""A word in names of the product → the terms to choose from."""

IN_TEXT: Mapping[str, str] = {
    "MOST_": "MAX_",
    "LEAST_": "MIN_",
    "What joins what": "fusion",
    "codes in 8 bits": "8-bit quantized values",
    "nothing says": "is unknown",
    "nobody says": "by default",
}
"""Words in docstrings, comments and documents → the term."""

OF_DIALECTS = frozenset({"codes", "depth_codes"})
"""An operand and a cost that dialects declare: their names are text of the product."""

PRODUCT = ("glow_mlir/", "dialects/", "tools/")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def words_of(name: str) -> list[str]:
    """The words of a name in snake case, camel case or capitals."""
    return [word.lower() for word in _WORD.findall(name)]


def wrong_names(path: Path) -> list[str]:
    """Line, name and better terms of each name of a file with a word that is gone."""
    return [
        f"{line}: {name}: {IN_NAMES[word]}"
        for line, name in _names(text_of(path))
        if name not in OF_DIALECTS
        for word in words_of(name)
        if word in IN_NAMES
    ]


def _names(text: str) -> Iterator[tuple[int, str]]:
    found = dict.fromkeys(
        (item.start[0], item.string)
        for item in tokenize.generate_tokens(io.StringIO(text).readline)
        if item.type == tokenize.NAME
    )
    return iter(found)


def wrong_text(path: Path) -> list[str]:
    """Line, word and term of each word that is gone from the text of a file."""
    return [
        f"{number}: {word}: {term}"
        for number, line in enumerate(text_of(path).splitlines(), 1)
        for word, term in IN_TEXT.items()
        if re.search(rf"\b{word}", line)
    ]


def test_names_have_no_word_that_is_gone() -> None:
    product = (path for path in files(".py") if name_of(path).startswith(PRODUCT))
    assert not offenders(product, wrong_names)


def test_texts_have_no_word_that_is_gone() -> None:
    own = Path(__file__).name
    assert not offenders((path for path in files(".py", ".md") if path.name != own), wrong_text)


def test_the_check_finds_a_name(tmp_path: Path) -> None:
    path = tmp_path / "names.py"
    path.write_text("def convolvedCodes(self, known_places): return 'codes'\n", encoding="utf-8")
    assert [line.partition(": ")[2].partition(":")[0] for line in wrong_names(path)] == [
        "convolvedCodes",
        "known_places",
    ]

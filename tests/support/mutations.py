"""Small changes of a text in MLIR's syntax and of its weights, of kinds that a slip of the hand or a program makes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from random import Random

import numpy as np

from glow_mlir.constants.weights import Digest, add_weights, known_digest

NUMBERS = (0, 1, -1, 2, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, 1 << 64)
ELEMENTS = ("f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64", "ui8", "ui64", "i7", "index", "none")
NOISE = "(){}[]<>%@#!\"'\\,:=-+*0aZ\0\n\t é\U0001f600"

_NUMBER = re.compile(r"(?<![\w.%@#:])-?\d+(?![\w.])|(?<=[<x])\d+(?=x)")
_TOKEN = re.compile(r"[%@#!^]?[\w.$-]+|\"[^\"\n]*\"|->|\S")
_TYPE = re.compile(r"(?:tensor|memref)<[^<>\n]*(?:<[^<>\n]*>)?[^<>\n]*>")
_ELEMENT = re.compile(r"(?<=[x<: ])(?:f16|f32|f64|i1|i8|i32|i64)\b")
STORED = re.compile(r"(?<=constant @)\w+ : \S+ \{weights = \"([^\"\n]+)\"")
"""A constant with stored weights that are not packed: those of packed ones may be padded."""

_PROPERTY = re.compile(r"\w+ = (?:\[[^\]\n]*\]|\"[^\"\n]*\"|\{[^}\n]*\}|[^,}\n]+)(?:, )?|(?<=[{ ])\w+(?=[,}])")


def mutated(text: str, random: Random) -> str:
    """The text with one change, now and then with two or three."""
    for _ in range(random.choice((1, 1, 1, 1, 2, 3))):
        text = random.choices(KINDS, WEIGHTS)[0](text, random)
    return text


def _other_number(text: str, random: Random) -> str:
    def change(found: str) -> str:
        number = int(found)
        others = re.findall(_NUMBER, text)
        return str(random.choice((*NUMBERS, number + 1, number - 1, 2 * number, -number, int(random.choice(others)))))

    return _replace(text, _NUMBER, random, change)


def _replace(text: str, pattern: re.Pattern[str], random: Random, change: Callable[[str], str]) -> str:
    """One of the matches of a pattern, changed."""
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = random.choice(places)
    return text[: place.start()] + change(place.group()) + text[place.end() :]


def _other(pattern: str) -> Callable[[str, Random], str]:
    """A change of one match of a pattern to another of the text."""
    compiled = re.compile(pattern)

    def change(text: str, random: Random) -> str:
        known = sorted({match.group() for match in compiled.finditer(text)})
        return _replace(text, compiled, random, lambda _: random.choice(known))

    return change


def _line_deleted(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[random.randrange(len(lines))]
    return "".join(lines)


def _line_repeated(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(random.randrange(len(lines)), random.choice(lines))
    return "".join(lines)


def _lines_swapped(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    one = random.randrange(len(lines))
    other = min(max(0, one + random.choice((-3, -2, -1, 1, 2, 3))), len(lines) - 1)
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _truncated(text: str, random: Random) -> str:
    return text[: random.randrange(len(text))]


def _noise(text: str, random: Random) -> str:
    place = random.randrange(len(text))
    return text[:place] + random.choice(NOISE) + text[place + random.randrange(2) :]


def _tokens_swapped(text: str, random: Random) -> str:
    one, other = sorted(random.sample(list(_TOKEN.finditer(text)), 2), key=lambda match: match.start())
    between = text[one.end() : other.start()]
    return text[: one.start()] + other.group() + between + one.group() + text[other.end() :]


def _dropped(pattern: re.Pattern[str]) -> Callable[[str, Random], str]:
    return lambda text, random: _replace(text, pattern, random, lambda _: "")


def _other_element(text: str, random: Random) -> str:
    return _replace(text, _ELEMENT, random, lambda _: random.choice(ELEMENTS))


def _renamed(text: str, random: Random) -> str:
    """All uses of one name become another: one that is there, or that means something elsewhere."""
    names = sorted(set(re.findall(r"[%@]\w+", text)))
    name = random.choice(names)
    fresh = random.choice((*names, f"{name[0]}parallel_for", f"{name[0]}memcpy", f"{name[0]}_", f"{name[0]}0"))
    return re.sub(re.escape(name) + r"\b", fresh, text)


def _other_weights(text: str, random: Random) -> str:
    """Elements of stored weights become others."""

    def change(found: str) -> str:
        (name,) = re.findall(STORED, f"constant @{found}") or [""]
        known = known_digest(name)
        return found if known is None else found.replace(name, _kept(changed_weights(known.weights.array(), random)))

    return _replace(text, STORED, random, change)


def changed_weights(array: np.ndarray, random: Random) -> np.ndarray:
    """An array with other elements: integers that lead nowhere, floats that are no number."""
    array = array.copy()
    flat = array.reshape(-1)
    if array.dtype.kind in "iu" and flat.size:
        places = random.choice((slice(None), random.randrange(flat.size), random.randrange(flat.size)))
        limits = np.iinfo(array.dtype)
        wanted = (*NUMBERS, flat.size, int(limits.min), int(limits.max))
        flat[places] = random.choice([number for number in wanted if limits.min <= number <= limits.max])
    elif array.dtype.kind != "b":
        # Packed forms repeat elements, and sums of huge numbers depend on their order.
        flat *= random.choice((0, -1, 2, np.nan))
    return array


def _kept(array: np.ndarray) -> str:
    """The digest of weights that stay in the store as long as some of the last mutants."""
    _KEPT.append(add_weights(array))
    return str(_KEPT[-1])


_KEPT: deque[Digest] = deque(maxlen=16)

MUTATIONS: tuple[tuple[Callable[[str, Random], str], int], ...] = (
    (_other_number, 30),
    (_other_weights, 12),
    (_other(r"%\w+"), 12),  # Operands.
    (_other(r"@\w+"), 8),  # Symbols and qualifiers.
    (_other(_TYPE.pattern), 8),
    (_other_element, 5),
    (_other(r"\"[^\"\n]*\""), 3),
    (_other(r"\b(?:glow_low|glow_high|arith|math|llvm)\.\w+"), 4),
    (_dropped(_PROPERTY), 6),
    (_line_deleted, 8),
    (_line_repeated, 5),
    (_lines_swapped, 6),
    (_renamed, 2),
    (_dropped(_TOKEN), 3),
    (_tokens_swapped, 3),
    (_truncated, 1),
    (_noise, 2),
)
"""The kinds of changes, and how often each is made."""

KINDS = [kind for kind, _ in MUTATIONS]
WEIGHTS = [weight for _, weight in MUTATIONS]

"""Mutants of JSON: values that nobody expects, at any place of a value or of its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

NUMBERS = (0, -1, 1, 2, 3, 255, 1 << 16, 1 << 31, 1 << 32, 1 << 60, (1 << 63) - 1, 1 << 64, 10**400, -(1 << 63))
FLOATS = (0.5, -0.0, 1e-320, 1e39, 1e308, float("nan"), float("inf"), -float("inf"))
TEXTS = (
    "",
    "a",
    "\0",
    "\n",
    "\udcff",
    "é☃",
    "a" * 5000,
    "..",
    "/etc/passwd",
    "<|im_end|>",
    "llama",
    "bert",
    "gpt2",
    "{{",
)

DEPTHS = (70, 3000, 100_000)
"""How deep lists are nested in the text of some mutants."""

_DEEP = "@deep@"
"""What stands for a deep list in a value."""


def odd(random: Random) -> Any:
    """A value of any kind."""
    kind = random.randrange(8)
    if kind < 3:
        return random.choice(NUMBERS)
    if kind == 3:
        return random.choice(FLOATS)
    if kind == 4:
        return random.choice(TEXTS)
    return random.choice([None, True, False, [], {}, [[]], ["a"], {"a": 1}, [None] * 999, _DEEP])


def changed(value: Any, random: Random) -> Any:
    """A value of JSON of which one part, at any depth, is another, gone, or there twice."""
    if isinstance(value, Mapping) and value and random.randrange(8):
        found: dict[str, Any] = dict(value)
        key = random.choice(sorted(found))
        kind = random.randrange(12)
        if kind == 0:
            del found[key]
        elif kind == 1:
            found[str(odd(random))] = found[key]
        elif kind == 2:
            found[key] = found[random.choice(sorted(found))]
        else:
            found[key] = changed(found[key], random)
        return found
    if isinstance(value, list) and value and random.randrange(8):
        items: list[Any] = list(value)
        place, kind = random.randrange(len(items)), random.randrange(8)
        if kind == 0:
            del items[place]
        elif kind == 1:
            items = items[:place] + items[place : place + 3] * random.choice([2, 50]) + items[place:]
        else:
            items[place] = changed(items[place], random)
        return items
    if type(value) is int and abs(value) < 1 << 64 and random.randrange(2):
        return random.choice([value + 1, value - 1, -value, 2 * value, value << 20, value / 2, str(value)[:4000]])
    return odd(random)


def text_of(value: Any, random: Random) -> bytes:
    """The text of a mutant of a value of JSON, of which some bytes may be damaged as well."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        value = changed(value, random)
    depth, opening = random.choice(DEPTHS), random.choice(["[", '{"a":'])
    deep = opening * depth + "1" + {"[": "]"}.get(opening, "}") * depth
    text = json.dumps(value, ensure_ascii=random.random() < 0.5).replace(f'"{_DEEP}"', deep)
    data = text.encode("utf-8", "surrogatepass")
    return damaged(data, random) if random.randrange(8) == 0 else data


PIECES: Sequence[bytes] = (
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b",",
    b"null",
    b"1e999",
    b"NaN",
    b"-",
    b"9" * 5000,
    b"\xff",
    b"\0",
)


def damaged(data: bytes, random: Random) -> bytes:
    """Bytes of which some are others, gone, or there twice."""
    found = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        place, size = random.randrange(len(found) + 1), random.choice([0, 1, 1, 9, 300])
        kind = random.randrange(4)
        if kind == 0:
            found[place : place + size] = random.choice(PIECES)
        elif kind == 1:
            del found[place : place + size]
        elif kind == 2:
            found[place:place] = found[place : place + size]
        else:
            del found[place:]
    return bytes(found)

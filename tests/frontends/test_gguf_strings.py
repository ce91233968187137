"""Arrays of strings in GGUF files are found and decoded as one string after the other is."""

from __future__ import annotations

import random
import struct

import pytest

from glow_mlir.frontends.gguf.strings import strings_at


def one_by_one(data: bytes, position: int, count: int) -> list[str] | int:
    """The strings, or the number of the first one that is not whole."""
    found: list[str] = []
    for number in range(count):
        begin = position + 8
        if begin > len(data):
            return number
        position = begin + struct.unpack_from("<Q", data, position)[0]
        if position > len(data):
            return number
        found.append(str(data[begin:position], "utf-8", "surrogateescape"))
    return found


def some_bytes(choose: random.Random, most: int) -> bytes:
    """Mostly text; also zeros, bytes that are in no UTF-8, parts of characters, and what looks like a length."""
    if choose.random() < 0.05:
        return struct.pack("<Q", choose.randrange(20)) + b"x"
    odd = (0, 1, 65, 130, 200, 226, 255) if most > 20 else (0, 65, 130, 226)
    return bytes(choose.choice(odd) if choose.random() < 0.1 else choose.randrange(32, 127) for _ in range(most))


@pytest.mark.parametrize("seed", range(100))
def test_strings_are_those_one_by_one(seed: int) -> None:
    choose = random.Random(seed)
    sizes = [
        choose.choice((0, 1, 255, 256, 300)) if choose.random() < 0.1 else choose.randrange(1, 20) for _ in range(40)
    ]
    texts = [some_bytes(choose, size) for size in sizes[: choose.randrange(40)]]
    before = bytes(choose.randrange(5))
    data = before + b"".join(struct.pack("<Q", len(text)) + text for text in texts)
    data += choose.choice((b"", bytes(9), struct.pack("<Q", 3) + b"abc"))
    data = data[: choose.randrange(len(before), len(data) + 1)] if choose.random() < 0.2 else data
    found: list[str] | int
    try:
        found = strings_at(memoryview(data), len(before), len(texts)).decoded()
    except IndexError as error:
        found = error.args[0]
    assert found == one_by_one(data, len(before), len(texts))


def test_strings_longer_than_a_window() -> None:
    texts = [b"a" * 100] * 3000 + [b"b" * 300_000, b""] + [b"c"] * 5000
    data = b"".join(struct.pack("<Q", len(text)) + text for text in texts)
    assert strings_at(memoryview(data), 0, len(texts)).decoded() == [text.decode() for text in texts]

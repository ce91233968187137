"""Parsers of command-line numbers that are finite and bounded."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)

MOST = 10**9
"""The largest count that options accept."""

DAY = 86_400.0
"""The largest number of seconds that options accept."""


def ranged(kind: Callable[[str], Number], least: Number, most: Number, what: str) -> Callable[[str], Number]:
    """Return a parser of numbers from `least` to `most`; errors describe the range as `what`."""

    def parse(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        # NaN fails both comparisons.
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected {what}, got '{text}'")
        return value

    return parse


MAX_BYTES = 1 << 40
"""The largest number of bytes that options accept."""

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
"""Unit suffix → number of bytes."""


def _bytes(text: str) -> int:
    """Parse a number of bytes with an optional unit, such as 256K."""
    unit = UNITS.get(text[-1:].upper())
    return int(text) if unit is None else int(text[:-1]) * unit


def byte_count_to(most: int) -> Callable[[str], int]:
    """Return a parser of byte counts up to `most`, a multiple of 1 GiB."""
    return ranged(_bytes, 1, most, f"bytes from 1 to {most >> 30}G, such as 4096, 256K or 1M")


byte_count = byte_count_to(MAX_BYTES)
count = ranged(int, 1, MOST, f"a whole number from 1 to {MOST}")
natural = ranged(int, 0, MOST, f"a whole number from 0 to {MOST}")
finite = ranged(float, -math.nextafter(math.inf, 0), math.nextafter(math.inf, 0), "a finite number")
amount = ranged(float, 0.0, math.nextafter(math.inf, 0), "a finite number from 0 on")
seconds = ranged(float, 0.0, DAY, f"seconds from 0 to {DAY:.0f}, a day")
milliseconds = ranged(float, 0.0, DAY * 1e3, f"milliseconds from 0 to {DAY * 1e3:.0f}, a day")

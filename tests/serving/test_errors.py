"""Which status tells of which error."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time

import pytest

from glow_mlir.errors import (
    CancelledError,
    ExecutionError,
    GlowError,
    InputError,
    OptionError,
    QueueFullError,
    TimeLimitError,
    UnsupportedError,
)
from glow_mlir.serving.errors import MAX_WORDS, OverloadError, Status, UnknownModelError, status_of, words_of
from glow_mlir.serving.packages import package


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("a"), Status(400, "INVALID_ARGUMENT")),
        (UnknownModelError("a"), Status(404, "NOT_FOUND")),
        (QueueFullError("a"), Status(503, "RESOURCE_EXHAUSTED")),
        (OverloadError("a"), Status(503, "RESOURCE_EXHAUSTED")),
        (TimeLimitError("a"), Status(504, "DEADLINE_EXCEEDED")),
        (TimeoutError(), Status(504, "DEADLINE_EXCEEDED")),
        (CancelledError("a"), Status(499, "CANCELLED")),
        (asyncio.CancelledError(), Status(499, "CANCELLED")),
        (concurrent.futures.CancelledError(), Status(499, "CANCELLED")),
        (ExecutionError("a"), Status(500, "INTERNAL")),
        (UnsupportedError("a"), Status(500, "INTERNAL")),
        (GlowError("a"), Status(500, "INTERNAL")),
        (ZeroDivisionError("a"), Status(500, "INTERNAL")),
    ],
)
def test_status(error: BaseException, status: Status) -> None:
    assert status_of(error) == status


def test_nothing_is_told_of_errors_that_are_not_ours() -> None:
    assert words_of(ZeroDivisionError("secret")) == "the server failed"
    assert words_of(GlowError("it is wrong", hint="do this")) == "it is wrong (hint: do this)"
    assert words_of(concurrent.futures.CancelledError()) == "the request ended: CANCELLED"


def test_a_package_that_is_missing() -> None:
    with pytest.raises(OptionError, match=r"hint: pip install 'grpcio>="):
        package("nothing_of_that_name.inner")


@pytest.mark.parametrize("char", ["a", "é", "%", "\n", "\x07", "\ud800", "😀"])
def test_long_texts_are_shortened(char: str) -> None:
    begin = time.perf_counter()
    words = words_of(InputError(f"begin {char * (4 << 20)} end", hint="do this"))
    assert time.perf_counter() - begin < 1.0  # To print all of it takes longer.
    assert len(words) <= MAX_WORDS
    assert words.startswith("begin ")
    assert words.endswith(" end (hint: do this)")
    assert " ... " in words
    assert words.isprintable()

"""Streams of text: whole characters, and as much as all tokens decoded at once have up to the first stop string."""

from __future__ import annotations

from typing import Any

import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from glow_mlir.generation.text_stream import TextStream

END = 4


class Bytes:
    """A tokenizer of a few tokens, among them parts of characters."""

    controls = frozenset((END,))
    strips_space = False
    pieces = (
        b"a",
        b"b",
        b"ab",
        b"ba\n",
        b"<end>",
        "é".encode(),
        "☃𝕏".encode(),
        b"\xc3",
        b"\xa9",
        b"\xe2\x98",
        b"\x83",
        b"a\xf0",
        b"",
    )

    def piece(self, number: int) -> bytes:
        """The bytes of a token."""
        return self.pieces[number]

    def text(self, ids: list[int]) -> str:
        """All tokens at once."""
        return b"".join(self.pieces[number] for number in ids if number != END).decode("utf-8", "replace")


def cut(text: str, stops: list[str]) -> tuple[str, str | None]:
    """A text up to the stop string that ends first, of several that end there the longest."""
    for end in range(1, len(text) + 1):
        ended = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if ended:
            stop = max(ended, key=len)
            return text[: end - len(stop)], stop
    return text, None


STOPS = st.lists(st.text("ab\né☃\ufffd", max_size=4), max_size=3)


@settings(max_examples=examples(400), deadline=None)
@given(ids=st.lists(st.integers(0, len(Bytes.pieces) - 1), max_size=24), stops=STOPS)
def test_a_stream_is_the_text_up_to_the_first_stop(ids: list[int], stops: list[str]) -> None:
    tokenizer: Any = Bytes()
    stream, given_out = TextStream(tokenizer, stops), ""
    wanted, stop = cut(tokenizer.text(ids), stops)
    for number in ids:
        given_out += stream.put(number)
        # What is out is never taken back.
        assert wanted.startswith(given_out)
    given_out += stream.finish()
    assert given_out == wanted
    assert (stream.stopped is None) == (stop is None)
    assert stream.stopped in (None, *stops)


@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(max_size=12), stops=STOPS)
def test_no_character_is_cut(text: str, stops: list[str]) -> None:
    tokenizer: Any = Bytes()
    tokenizer.pieces = [bytes([byte]) for byte in range(256)]
    tokenizer.controls = frozenset()
    stream = TextStream(tokenizer, stops)
    parts = [stream.put(byte) for byte in text.encode()]
    wanted, stop = cut(text, stops)
    assert "".join([*parts, stream.finish()]) == wanted
    assert stop is not None or "\ufffd" in text or not any("\ufffd" in part for part in parts)


@pytest.mark.parametrize(("stops", "held"), [(["abc"], "ab"), (["b", "ab"], ""), ([], "")])
def test_only_the_beginning_of_a_stop_is_held_back(stops: list[str], held: str) -> None:
    tokenizer: Any = Bytes()
    stream = TextStream(tokenizer, stops)
    assert stream.put(0) == ("a" if not stops else "")
    stream.put(1)
    assert stream.finish() == held

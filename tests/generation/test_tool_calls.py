"""Calls of tools in text: found whatever pieces the text comes in, and nothing else is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.generation.tool_calls import ToolCall, ToolCallStream

CALL = '{"name": "weather", "arguments": {"city": "Zürich"}}'
WEATHER = ToolCall("weather", '{"city": "Zürich"}')
LLAMA = '{"name": "weather", "parameters": {"city": "Zürich"}}'

CASES: list[tuple[str, str, list[ToolCall]]] = [
    ("The sky is blue.", "The sky is blue.", []),
    (f"<tool_call>\n{CALL}\n</tool_call>", "", [WEATHER]),
    (f"Let me look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", "Let me look.\n", [WEATHER] * 2),
    (f"<tool_call>\n{CALL}", "", [WEATHER]),
    (LLAMA, "", [WEATHER]),
    (f"<|python_tag|>{LLAMA}", "", [WEATHER]),
    (f"[TOOL_CALLS][{CALL}, {CALL}]", "", [WEATHER] * 2),
    (f"  [{CALL}]", "", [WEATHER]),
    ('{"city": "Zürich"}', '{"city": "Zürich"}', []),
    ("[1, 2] is a list", "[1, 2] is a list", []),
    ("<tool_call>nothing</tool_call> more", "<tool_call>nothing</tool_call> more", []),
    ("a < b and <tool", "a < b and <tool", []),
    ("", "", []),
]


def split(text: str, cuts: list[int]) -> tuple[str, list[ToolCall]]:
    """Content and calls of a text that comes in parts."""
    stream, content = ToolCallStream(), ""
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    for begin, end in pairwise(places):
        content += stream.put(text[begin:end])
    return content + stream.finish(), stream.calls


@pytest.mark.parametrize(("text", "content", "calls"), CASES)
@given(cuts=st.lists(st.integers(0, 120), max_size=12))
def test_parts_do_not_matter(text: str, content: str, calls: list[ToolCall], cuts: list[int]) -> None:
    assert split(text, cuts) == (content, calls)


@given(text=st.text(alphabet='<tool_call>/{}[]" name', max_size=40), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_text_without_calls_is_kept(text: str, cuts: list[int]) -> None:
    content, calls = split(text, cuts)
    assert calls == []
    assert content == text


def test_content_comes_as_soon_as_it_is_certain() -> None:
    stream = ToolCallStream()
    assert stream.put("It is ") == "It is "
    assert stream.put("<too") == ""
    assert stream.put(" late") == "<too late"

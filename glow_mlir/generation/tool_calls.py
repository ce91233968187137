"""
Calls of tools in generated text, in the forms that templates of models ask for.

Two forms cover most models. Hermes, Qwen and others write `<tool_call>{"name": …, "arguments": …}</tool_call>`, among
other text; Llama 3 and Mistral write nothing but such an object, with `parameters` or `arguments`, or a list of them.
"""

from __future__ import annotations

import json
from typing import Any

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.json_values import is_mapping, is_sequence

BEGIN, END = "<tool_call>", "</tool_call>"

PREFIXES = ("<|python_tag|>", "[TOOL_CALLS]")
"""Texts in front of an object, or of a list of objects."""


@dataclass(frozen=True)
class ToolCall:
    """A call of the tool `name`; `arguments` is the text of a JSON object."""

    name: str
    arguments: str


class ToolCallStream:
    """Splits text, as it comes, into content and calls."""

    def __init__(self) -> None:
        self._held = ""
        """Text that is a call, or may become one."""
        self._has_content = False
        self.calls: list[ToolCall] = []

    def put(self, text: str) -> str:
        """Take text; returns content that is certain to be part of no call."""
        self._held += text
        content = ""
        while True:
            if not self._has_content and _may_be_object(self._held):
                return content
            begin = self._held.find(BEGIN)
            if begin < 0:
                count = len(self._held) - _common(self._held, BEGIN)
                return content + self._split(count)
            content += self._split(begin)
            end = self._held.find(END)
            if end < 0:
                return content
            whole = self._held[: end + len(END)]
            found = _calls(whole[len(BEGIN) : end])
            self._held = self._held[len(whole) :]
            self.calls += found
            if not found:
                content += whole
            self._has_content = True

    def finish(self) -> str:
        """The content that was held back; nothing more will come."""
        held, self._held = self._held, ""
        text = held.removeprefix(BEGIN).strip()
        if not self._has_content or held.startswith(BEGIN):
            found = _calls(text)
            self.calls += found
            if found:
                return ""
        return "" if self.calls and not held.strip() else held

    def _split(self, count: int) -> str:
        """Take `count` characters of the held text as content; white space alone waits for what follows."""
        content, rest = self._held[:count], self._held[count:]
        if not content.strip() and (self.calls or not self._has_content):
            if rest.startswith(BEGIN):
                self._held = rest
            return ""
        self._has_content, self._held = True, rest
        return content


def _may_be_object(text: str) -> bool:
    """Whether a text may be, as a whole, an object or a list of such."""
    text = text.lstrip()
    if not text:
        return True
    if any(prefix.startswith(text) or text.startswith(prefix) for prefix in PREFIXES):
        return True
    return text[0] in "{["


def _common(text: str, word: str) -> int:
    """The length of the longest end of a text that begins a word."""
    return next((size for size in range(min(len(text), len(word) - 1), 0, -1) if text.endswith(word[:size])), 0)


def _calls(text: str) -> list[ToolCall]:
    """The calls in JSON; none if it is anything else."""
    text = text.strip()
    for prefix in PREFIXES:
        text = text.removeprefix(prefix)
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = [_call(item) for item in (data if is_sequence(data) else [data])]
    return [] if None in found else [call for call in found if call is not None]


def _call(item: Any) -> ToolCall | None:
    """The call of an object; `None` if it is none."""
    if not is_mapping(item) or not isinstance(item.get("name"), str):
        return None
    arguments: Any = item.get("arguments", item.get("parameters"))
    if isinstance(arguments, str):
        return ToolCall(item["name"], arguments)
    return ToolCall(item["name"], json.dumps(arguments, ensure_ascii=False)) if isinstance(arguments, dict) else None

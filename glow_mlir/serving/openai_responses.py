"""Responses in OpenAI's format: objects of completions and of the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from glow_mlir.generation.sampler import Choice
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.generation.tool_calls import ToolCall, ToolCallStream
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Usage:
    """The numbers of tokens of a request."""

    prompt: int
    reused: int
    chosen: int
    dropped: int

    def data(self) -> dict[str, Any]:
        """As JSON data; OpenAI has no `dropped_tokens`, which are there only if a full context forgot some."""
        dropped = {"dropped_tokens": self.dropped} if self.dropped else {}
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.chosen,
            "total_tokens": self.prompt + self.chosen,
            "prompt_tokens_details": {"cached_tokens": self.reused},
            **dropped,
        }


@dataclass(frozen=True)
class Format:
    """
    The objects of one request, for a chat or for a completion.

    `id`, `created` (seconds) and `model` are in each of them. `logprobs` is the number of alternatives of each token;
    `None` for no log-probabilities.
    """

    is_chat: bool
    id: str
    created: int
    model: str
    tokenizer: Tokenizer
    logprobs: int | None
    has_tools: bool = False
    """Whether the text may call tools."""

    def whole(self, choices: Sequence[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        """The object of a response that is not streamed."""
        kind = "chat.completion" if self.is_chat else "text_completion"
        return {**self._head(kind), "choices": list(choices), "usage": usage.data()}

    def chunk(self, choices: Sequence[dict[str, Any]], usage: Usage | None = None) -> dict[str, Any]:
        """An object of a stream."""
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        tail = {} if usage is None else {"usage": usage.data()}
        return {**self._head(kind), "choices": list(choices), **tail}

    def choice(self, index: int, text: str, choices: Sequence[Choice], reason: str) -> dict[str, Any]:
        """A finished continuation."""
        content: dict[str, Any] = {"text": text}
        if self.is_chat:
            message, reason = self._message(text, reason)
            content = {"message": message}
        return {"index": index, **content, "logprobs": self._logprobs(choices, 0), "finish_reason": reason}

    def _message(self, text: str, reason: str) -> tuple[dict[str, Any], str]:
        """The message of a chat, and why it ends."""
        message = {"role": "assistant", "content": text, "refusal": None}
        if not self.has_tools:
            return message, reason
        stream = ToolCallStream()
        content = stream.put(text) + stream.finish()
        if not stream.calls:
            return message, reason
        calls = [_call_data(call) for call in stream.calls]
        return {**message, "content": content or None, "tool_calls": calls}, "tool_calls"

    def calls(self, index: int, calls: Sequence[ToolCall], sent: int) -> dict[str, Any]:
        """The calls of tools in a continuation behind the first `sent` ones."""
        delta = {"tool_calls": [{"index": at, **_call_data(call)} for at, call in enumerate(calls) if at >= sent]}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def first(self, index: int) -> dict[str, Any]:
        """The beginning of a continuation in the stream of a chat."""
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def piece(self, index: int, text: str, choices: Sequence[Choice], offset: int) -> dict[str, Any]:
        """A part of a continuation, whose text begins at `offset`."""
        content: dict[str, Any] = {"delta": {"content": text}} if self.is_chat else {"text": text}
        return {"index": index, **content, "logprobs": self._logprobs(choices, offset), "finish_reason": None}

    def last(self, index: int, reason: str) -> dict[str, Any]:
        """The end of a continuation."""
        content: dict[str, Any] = {"delta": {}} if self.is_chat else {"text": ""}
        return {"index": index, **content, "logprobs": None, "finish_reason": reason}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _logprobs(self, choices: Sequence[Choice], offset: int) -> dict[str, Any] | None:
        if self.logprobs is None:
            return None
        if self.is_chat:
            return {"content": [self._token(choice) for choice in choices], "refusal": None}
        texts = [self._text(choice.token) for choice in choices]
        offsets = [offset + sum(map(len, texts[:number])) for number in range(len(texts))]
        return {
            "tokens": texts,
            "token_logprobs": [choice.logprob for choice in choices],
            "top_logprobs": [
                {self._text(token): value for token, value in choice.alternatives or ()} for choice in choices
            ],
            "text_offset": offsets,
        }

    def _token(self, choice: Choice) -> dict[str, Any]:
        others = [self._entry(token, value) for token, value in choice.alternatives or ()]
        return {**self._entry(choice.token, choice.logprob), "top_logprobs": others}

    def _entry(self, token: int, logprob: float | None) -> dict[str, Any]:
        piece = self.tokenizer.piece(token)
        return {"token": piece.decode(errors="replace"), "logprob": logprob, "bytes": list(piece)}

    def _text(self, token: int) -> str:
        return self.tokenizer.piece(token).decode(errors="replace")


def _call_data(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{uuid4().hex[:24]}", "type": "function", "function": function}


def model_data(name: str, created: int, context: int, parent: str | None) -> dict[str, Any]:
    """The object of a model; `parent` is the name of the one that an adapter is added to."""
    entry = {"id": name, "object": "model", "created": created, "owned_by": "glow-mlir"}
    return {**entry, "max_model_len": context, "parent": parent}


def list_data(items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The object of a list."""
    return {"object": "list", "data": list(items)}

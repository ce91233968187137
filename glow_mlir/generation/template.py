"""Templates of chats: the messages of a conversation as one text, as a model was trained to read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from glow_mlir.errors import InputError, ModelError
from glow_mlir.generation.bounded_jinja import TooMuchError, bounded, environment
from glow_mlir.support.json_values import is_mapping, is_sequence
from glow_mlir.support.optional_packages import imported

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning; templates read the first or the second one."""

MAX_MESSAGES = 1 << 12


class ChatTemplate:
    """
    A template in Jinja, as tokenizer_config.json and GGUF files have it, rendered in a sandbox with bounds.

    `tokens` are texts of special tokens by name, such as `bos_token`, which templates write out. Raises `ModelError`
    for text that is no template.
    """

    def __init__(self, text: str, tokens: Mapping[str, str]) -> None:
        self.text, self._tokens = text, dict(tokens)
        errors: Any = imported("jinja2", "generate", "templates of chats need the package jinja2")
        try:
            self._template = environment().from_string(text)
        except (errors.TemplateError, RecursionError, ValueError, SyntaxError) as error:
            raise ModelError(f"the template of chats is damaged: {_words(error)}") from None

    def render(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """
        The text of messages, by default with the beginning of an answer.

        A message is an object with `role` and `content`: text, or a list of parts `{"type": "text", "text": …}`.
        `tools` are descriptions of functions that the answer may call. Raises `InputError` for conversations that the
        template refuses, for other messages, and for templates that go on for too long.
        """
        given = {
            **self._tokens,
            "messages": [_checked(number, message) for number, message in enumerate(_bounded(messages))],
            "tools": None if not tools else list(tools),
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **variables,
        }
        try:
            return bounded(lambda: self._template.render(**given))
        except TooMuchError as error:
            raise InputError(str(error), hint="give another template") from None
        except RecursionError:
            raise InputError("the template calls itself too often", hint="give another template") from None
        except MemoryError:
            raise
        except Exception as error:
            # Templates compute anything with messages: whatever fails is theirs, or the conversation's.
            raise InputError(f"the template refuses the messages: {_words(error)}") from None


def _words(error: Exception) -> str:
    """The text of an error in one line."""
    return f"{' '.join(str(error).split()) or type(error).__name__:.300}"


def _bounded(messages: Sequence[Any]) -> Sequence[Any]:
    if len(messages) > MAX_MESSAGES:
        raise InputError(f"a chat of {len(messages)} messages is longer than {MAX_MESSAGES}")
    return messages


def _checked(number: int, message: Any) -> dict[str, Any]:
    """A message as templates read it; raises `InputError` for anything else."""
    if not is_mapping(message) or not isinstance(message.get("role"), str):
        raise InputError(f"message {number} has no role", hint="{'role': 'user', 'content': 'text'}")
    content: Any = message.get("content")
    if is_sequence(content):
        wrong: Any = next((part for part in content if not _is_text(part)), None)
        if wrong is not None:
            kind: Any = wrong.get("type") if is_mapping(wrong) else wrong
            raise InputError(f"message {number} has content of the kind {kind!r:.40}", hint="only text is read")
    elif content is not None and not isinstance(content, str):
        raise InputError(f"the content of message {number} is no text")
    elif content is None and not message.get("tool_calls"):
        raise InputError(f"message {number} has no content", hint="{'role': 'user', 'content': 'text'}")
    reasoning: Any = next((message[key] for key in REASONING if message.get(key) is not None), None)
    if reasoning is None:
        return dict(message)
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _is_text(part: Any) -> bool:
    """Whether a part of a content is text."""
    return is_mapping(part) and part.get("type") == "text" and "text" in part

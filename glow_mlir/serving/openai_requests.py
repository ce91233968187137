"""
Requests in OpenAI's format: bodies of chat completions, completions and embeddings, checked and as options.

Every field is in one table: it is an option of the generator, has no influence on results, or is refused with its name.
https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.generation.tool_grammar import FREE, REQUIRED, name_of
from glow_mlir.options.generation import ANY_OBJECT
from glow_mlir.serving.json_text import is_list, is_object
from glow_mlir.serving.openai_errors import FieldError
from glow_mlir.support.dataclass import dataclass

MAX_CHOICES = 16
"""The maximum number of continuations of one prompt."""

MAX_PROMPTS = 64
"""The maximum number of prompts of a request."""

MAX_STOPS = 16

MAX_TOOLS = 1024
"""The maximum number of tools of a request."""

MAX_SHIFTED = 1 << 17
"""The maximum number of tokens of a text that goes on where the context is full."""


@dataclass(frozen=True)
class TextRequest:
    """A request for text: prompts, and options of `Generator.stream`."""

    model: str
    prompts: list[Any]
    """Text, token ids, or the messages of a chat."""
    options: dict[str, Any]
    count: int
    """The number of continuations of each prompt."""
    is_streamed: bool
    has_usage: bool
    """Whether a stream ends with the numbers of tokens."""
    logprobs: int | None


def _number(least: float, most: float) -> Callable[[str, Any], float]:
    def check(field: str, value: Any) -> float:
        if type(value) not in (int, float) or not least <= value <= most:
            raise FieldError(field, f"must be a number from {least:g} to {most:g}")
        return float(value)

    return check


def whole(least: int, most: int) -> Callable[[str, Any], int]:
    """A check of fields: they must be whole numbers from `least` to `most`, else it raises `FieldError`."""

    def check(field: str, value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise FieldError(field, f"must be a whole number from {least} to {most}")
        return value

    return check


def flag(field: str, value: Any) -> bool:
    """A field that must be true or false; raises `FieldError`."""
    if type(value) is not bool:
        raise FieldError(field, "must be true or false")
    return value


def text(field: str, value: Any) -> str:
    """A field that must be a string; raises `FieldError`."""
    if type(value) is not str:
        raise FieldError(field, "must be a string")
    return value


def _stops(field: str, value: Any) -> list[str]:
    found: list[Any] = value if is_list(value) else [value]
    if len(found) > MAX_STOPS or not all(type(item) is str and item for item in found):
        raise FieldError(field, f"must be a string, or up to {MAX_STOPS}, none of them empty")
    return found


def _bias(field: str, value: Any) -> dict[int, float]:
    if not is_object(value):
        raise FieldError(field, "must be an object of token ids and numbers")
    found: dict[int, float] = {}
    for token, bias in value.items():
        if not token.isdecimal() or len(token) > 9 or type(bias) not in (int, float) or not -100 <= bias <= 100:
            raise FieldError(field, "must have token ids, and numbers from -100 to 100")
        found[int(token)] = -float("inf") if bias == -100 else float(bias)
    return found


def _tools(field: str, value: Any) -> list[Any]:
    if not is_list(value) or len(value) > MAX_TOOLS or not all(is_object(item) for item in value):
        raise FieldError(field, f"must be a list of up to {MAX_TOOLS} objects")
    return value


def _choice(field: str, value: Any) -> Any:
    """A choice of tools; raises `FieldError` for an object that names no function, and for other words."""
    try:
        return value if value in (*FREE, REQUIRED) else {"type": "function", "function": {"name": name_of(value)}}
    except InputError as error:
        raise FieldError(field, error.reason.removeprefix(f"{field} ")) from None


def _format(field: str, value: Any) -> Any:
    """The schema of a response format; `None` for text."""
    kind: Any = value.get("type") if is_object(value) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return ANY_OBJECT
    described: Any = value.get("json_schema") if kind == "json_schema" else None
    if not is_object(described) or not is_object(described.get("schema")):
        raise FieldError(field, "must be text, json_object, or json_schema with a schema")
    return described["schema"]


LONGEST = 1 << 24

OPTIONS: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "max_tokens": ("max_tokens", whole(0, LONGEST)),
    "max_completion_tokens": ("max_tokens", whole(1, LONGEST)),
    "temperature": ("temperature", _number(0, 2)),
    "top_p": ("top_p", _number(0, 1)),
    "top_k": ("top_k", whole(0, LONGEST)),
    "min_p": ("min_p", _number(0, 1)),
    "typical_p": ("typical_p", _number(0, 1)),
    "repetition_penalty": ("repetition_penalty", _number(1e-3, 1e3)),
    "presence_penalty": ("presence_penalty", _number(-2, 2)),
    "frequency_penalty": ("frequency_penalty", _number(-2, 2)),
    "logit_bias": ("logit_bias", _bias),
    "seed": ("seed", whole(-(2**63), 2**63 - 1)),
    "stop": ("stop", _stops),
    "ignore_eos": ("ignore_end", flag),
    "cache_salt": ("salt", text),
    "context_shift": ("context_shift", flag),
    "n_keep": ("keep", whole(0, LONGEST)),
    "tools": ("tools", _tools),
    "tool_choice": ("tool_choice", _choice),
    "parallel_tool_calls": ("parallel_tool_calls", flag),
    "response_format": ("schema", _format),
}
"""
Field → the option of `Generator.stream`, and its check.

Those that OpenAI does not have are named as in vLLM, or as in llama.cpp.
"""

WITHOUT_EFFECT = frozenset(("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"))
"""Fields that do not change what is generated."""

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "echo": (False,),
    "best_of": (1,),
    "suffix": ("",),
    "modalities": (["text"],),
    "reasoning_effort": (),
    "functions": (),
    "function_call": (),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "verbosity": ("medium",),
    "truncate_prompt_tokens": (),
}
"""Fields that are not supported → the values that ask for nothing."""

STREAM_FIELDS = ("model", "stream", "stream_options", "n", "logprobs")


def chat_request(data: Mapping[str, Any]) -> TextRequest:
    """The body of a chat completion; raises `FieldError`."""
    messages = data.get("messages")
    if not is_list(messages) or not messages or not all(is_object(item) for item in messages):
        raise FieldError("messages", "must be a list of messages")
    count: Any = data.get("top_logprobs")
    wants = data.get("logprobs")
    logprobs = None
    if wants is not None and flag("logprobs", wants):
        logprobs = 0 if count is None else whole(0, 20)("top_logprobs", count)
    elif count:
        raise FieldError("top_logprobs", "needs logprobs")
    return _request(data, [messages], logprobs, ("messages", "top_logprobs"))


def completion_request(data: Mapping[str, Any]) -> TextRequest:
    """The body of a completion; raises `FieldError`."""
    logprobs = data.get("logprobs")
    if logprobs is not None:
        logprobs = whole(0, 20)("logprobs", logprobs)
    return _request({"max_tokens": 16, **data}, prompts_of("prompt", data.get("prompt")), logprobs, ("prompt",))


def prompts_of(field: str, value: Any, most: int = MAX_PROMPTS) -> list[Any]:
    """Prompts: a text, a list of token ids, or a list of up to `most` such."""
    if type(value) is str or (is_list(value) and value and type(value[0]) is int):
        value = [value]
    if not is_list(value) or not value or len(value) > most:
        raise FieldError(field, f"must be a string, a list of token ids, or up to {most} of these")
    for item in value:
        is_ids = is_list(item) and item and all(type(token) is int for token in item)
        if type(item) is not str and not is_ids:
            raise FieldError(field, "must be strings or lists of token ids")
    return value


def _request(data: Mapping[str, Any], prompts: list[Any], logprobs: int | None, own: tuple[str, ...]) -> TextRequest:
    """The fields that chats and completions share."""
    options: dict[str, Any] = {}
    for field, value in data.items():
        if field in STREAM_FIELDS or field in own or field in WITHOUT_EFFECT or value is None:
            continue
        if field in OPTIONS:
            name, check = OPTIONS[field]
            options[name] = check(field, value)
        elif field not in NEUTRAL:
            raise FieldError(field, "is unknown")
        elif value not in NEUTRAL[field]:
            raise FieldError(field, "is not supported here")
    if options.get("context_shift") and options.get("max_tokens", LONGEST) > MAX_SHIFTED:
        raise FieldError("context_shift", f"needs max_tokens of up to {MAX_SHIFTED}")
    is_streamed = flag("stream", data.get("stream") or False)
    stream_options: Any = data.get("stream_options") or {}
    if not is_object(stream_options):
        raise FieldError("stream_options", "must be an object")
    if stream_options and not is_streamed:
        raise FieldError("stream_options", "needs stream")
    has_usage = flag("include_usage", stream_options.get("include_usage") or False)
    count = whole(1, MAX_CHOICES)("n", 1 if data.get("n") is None else data["n"])
    model = text("model", data.get("model"))
    return TextRequest(model, prompts, options, count, is_streamed, has_usage, logprobs)

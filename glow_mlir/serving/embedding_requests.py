"""
Requests for embeddings in OpenAI's format, and for ranked documents in that of Cohere and Jina, checked.

https://platform.openai.com/docs/api-reference/embeddings, https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from glow_mlir.serving.json_text import is_list, is_object
from glow_mlir.serving.openai_errors import FieldError
from glow_mlir.serving.openai_requests import flag, prompts_of, text, whole
from glow_mlir.support.dataclass import dataclass

MAX_TEXTS = 2048
"""The maximum number of texts of a request."""

FORMATS = ("float", "base64")


@dataclass(frozen=True)
class EmbeddingRequest:
    """A request for the vectors of `texts`: text, or token ids."""

    model: str
    texts: list[Any]
    is_base64: bool
    dimensions: int | None
    truncates: bool
    """Whether longer texts are cut to the context."""


@dataclass(frozen=True)
class RankRequest:
    """A request for the best `count` of some documents for a query."""

    model: str
    query: str
    documents: list[str]
    count: int
    returns_documents: bool


def embedding_request(data: Mapping[str, Any]) -> EmbeddingRequest:
    """The body of a request for embeddings; raises `FieldError`."""
    known = ("model", "input", "encoding_format", "dimensions", "user", "truncate_prompt_tokens")
    given = _given(data, known)
    form = given.get("encoding_format", "float")
    if form not in FORMATS:
        raise FieldError("encoding_format", f"must be {' or '.join(FORMATS)}")
    dimensions = given.get("dimensions")
    if given.get("truncate_prompt_tokens", -1) != -1:
        raise FieldError("truncate_prompt_tokens", "must be -1, which cuts texts to the context")
    return EmbeddingRequest(
        text("model", given.get("model")),
        prompts_of("input", given.get("input"), MAX_TEXTS),
        form == "base64",
        None if dimensions is None else whole(1, 1 << 24)("dimensions", dimensions),
        "truncate_prompt_tokens" in given,
    )


def rank_request(data: Mapping[str, Any]) -> RankRequest:
    """The body of a request for ranked documents; raises `FieldError`."""
    given = _given(data, ("model", "query", "documents", "top_n", "return_documents", "user"))
    documents: Any = given.get("documents")
    if not is_list(documents) or not 0 < len(documents) <= MAX_TEXTS:
        raise FieldError("documents", f"must be a list of up to {MAX_TEXTS} texts")
    texts: list[Any] = [item.get("text") if is_object(item) else item for item in documents]
    if not all(type(item) is str for item in texts):
        raise FieldError("documents", "must be strings, or objects with text")
    return RankRequest(
        text("model", given.get("model")),
        text("query", given.get("query")),
        texts,
        whole(1, 1 << 24)("top_n", given.get("top_n", len(texts))),
        flag("return_documents", given.get("return_documents", False)),
    )


def _given(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The fields that are given; raises `FieldError` for unknown ones."""
    for field in data:
        if field not in known:
            raise FieldError(field, "is unknown")
    return {field: value for field, value in data.items() if value is not None}

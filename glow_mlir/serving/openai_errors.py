"""
Errors as OpenAI's clients read them, on all paths below /v1.

https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from glow_mlir.errors import InputError, QueueFullError
from glow_mlir.serving.errors import OverloadError, words_of
from glow_mlir.serving.http_responses import error_response, logged
from glow_mlir.serving.json_text import write_json

PATHS = "/v1"
"""What the paths of OpenAI's API begin with."""

INVALID = "invalid_request_error"

KINDS: Mapping[int, tuple[str, str | None]] = {
    401: ("authentication_error", "invalid_api_key"),
    404: (INVALID, "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "overloaded"),
}
"""Status → type and code of an error; others are `invalid_request_error`."""


class FieldError(InputError):
    """A field of a request that cannot be taken; `field` is its name."""

    def __init__(self, field: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{field} {reason}", hint=hint)
        self.field = field


def error_data(message: str, kind: str, field: str | None, code: str | None) -> dict[str, Any]:
    """The object of an error."""
    return {"error": {"message": message, "type": kind, "param": field, "code": code}}


def error_of(error: BaseException) -> tuple[int, dict[str, Any]]:
    """The status and the object of an error; that of too many requests is 429, which clients repeat after a while."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return error_of(group.exceptions[0])
    status = 429 if isinstance(error, QueueFullError | OverloadError) else logged(error).http
    kind, code = KINDS.get(status, (INVALID, None))
    return status, error_data(words_of(error), kind, error.field if isinstance(error, FieldError) else None, code)


def failed(error: BaseException) -> tuple[int, bytes]:
    """The status and the JSON text of an error."""
    status, data = error_of(error)
    return status, write_json(data)


def failed_at(path: str, error: BaseException) -> tuple[int, bytes]:
    """The status and the JSON text of an error in the form of its path: OpenAI's, or that of the inference protocol."""
    return failed(error) if path.startswith(PATHS) else error_response(error)
